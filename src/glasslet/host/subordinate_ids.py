"""The ids that the machine's administrator set aside for pods: those of user `kubelet` in /etc/subuid and /etc/subgid,
as getsubids(1) tells them, wherever they come from."""

from __future__ import annotations

import pwd
import re
import shutil
import subprocess

USER = "kubelet"
_PATIENCE = 10.0
_ID = re.compile("[0-9]{1,10}")


class SubordinateIdsUnusable(Exception):
    """There are ids for the user, but not in a form that can be used."""


def subordinate_ids() -> tuple[int, int] | None:
    """First id and how many there are; None where there is no such user or no getsubids: then all ids above the host's
    block count. Raises SubordinateIdsUnusable."""
    try:
        pwd.getpwnam(USER)
    except KeyError:
        return None
    program = shutil.which("getsubids")
    if program is None:
        return None
    users, groups = _ask(program, USER), _ask(program, "-g", USER)
    if users != groups:
        raise SubordinateIdsUnusable(f'mismatched subuids and subgids for user "{USER}"')
    return parse_ids(users)


def parse_ids(output: str) -> tuple[int, int]:
    """`0: kubelet 65536 7208960`: exactly one range. Raises SubordinateIdsUnusable."""
    lines = output.strip("\n").split("\n")
    if len(lines) != 1:
        raise SubordinateIdsUnusable(f"error parsing line {output!r}: it must contain only one line")
    parts = lines[0].split()
    if len(parts) != 4 or not all(
        part.isascii() and part.isdigit() and len(part) <= 10 and int(part) < 2**32 for part in parts[2:]
    ):
        raise SubordinateIdsUnusable(f"invalid line {lines[0]!r}: want `<n>: <user> <first id> <count>`")
    return int(parts[2]), int(parts[3])


def _ask(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_PATIENCE)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise SubordinateIdsUnusable(f'error retrieving additional ids for user "{USER}": {error}') from error
    return done.stdout
