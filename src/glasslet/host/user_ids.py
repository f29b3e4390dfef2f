"""Ids for pods with a user namespace of their own (KEP-127): one block of the node's ids for each, the same while the
pod lives.

A pod's block stands in the file `userns` of its folder, in the Go kubelet's form, so that an agent that starts, of
either kind, takes over what is in use. The first block is the host's own and never given away.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import random
import re
import shutil
import subprocess
from collections.abc import Iterable

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.host.files.layout import RootLayout
from glasslet.host.files.small_files import make_directory, read_regular, write_atomically

UNIT = 65536
"""Blocks begin at multiples of this number, and their sizes are multiples."""
LAST_ID = 2**32
SUBORDINATE_USER = "kubelet"
"""The user whose ids in /etc/subuid and /etc/subgid the administrator set aside for pods."""
_GETSUBIDS_SECONDS = 10.0
_PRIVATE = 0o750
_MAX_FILE = 65536
"""Bytes of a `userns` file; one has about 150."""


class NoUserIds(Exception):
    """A pod cannot get ids: the text says why."""


class SpareIds(Struct, frozen=True, kw_only=True):
    """The ids that pods may have: `first` to `first + count - 1`, in blocks of `per_pod`."""

    first: int = UNIT
    count: int = LAST_ID - UNIT
    per_pod: int = UNIT

    def problem(self, pods: int) -> str | None:
        """Returns why they do not fit so many pods, None if they do."""
        if self.first % self.per_pod:
            return f"kubelet user assigned ID {self.first} is not a multiple of {self.per_pod}"
        if self.first < self.per_pod:
            return f"kubelet user assigned ID {self.first} must be greater or equal to {self.per_pod}"
        if self.count % self.per_pod:
            return f"kubelet user assigned IDs length {self.count} is not a multiple of {self.per_pod}"
        if self.count // self.per_pod < pods:
            return f"kubelet user assigned IDs are not enough to support {pods} pods"
        return None


def spare_ids(*, per_pod: int, pods: int) -> SpareIds:
    """The ids that the administrator set aside for `pods` pods; without any, all but the first block, which is the
    host's. Raises NoUserIds."""
    try:
        own = subordinate_ids()
    except SubordinateIdsUnusable as error:
        raise NoUserIds(str(error)) from error
    first, count = own if own is not None else (per_pod, LAST_ID - LAST_ID % per_pod - per_pod)
    spare = SpareIds(first=first, count=count, per_pod=per_pod)
    if problem := spare.problem(pods):
        raise NoUserIds(problem)
    return spare


class UserIds:
    """Blocks by pod. The only writer of the `userns` files."""

    def __init__(self, *, root: RootLayout, spare: SpareIds) -> None:
        self._root = root
        self._spare = spare
        self._used: dict[PodUID, int] = {}

    @property
    def per_pod(self) -> int:
        """Number of ids of a pod."""
        return self._spare.per_pod

    def load(self, uids: Iterable[PodUID]) -> list[str]:
        """Takes over the blocks of pods that have a folder. Returns one text for each file that is wrong. Such a file
        stays: its pod gets the error when it needs its ids again."""
        problems = []
        for uid in uids:
            try:
                self._read(uid)
            except (NoUserIds, OSError) as error:
                problems.append(f"user namespace of pod {uid}: {error}")
        return problems

    def ensure(self, uid: PodUID) -> int:
        """The first id of the pod's block; a free one is taken at random and noted. Raises NoUserIds, OSError."""
        known = self._read(uid)
        if known is not None:
            return known
        first = self._free_block()
        self._write(uid, first)
        self._used[uid] = first
        return first

    def release(self, uid: PodUID) -> None:
        """Frees the block of a pod that ended."""
        if self._used.pop(uid, None) is not None:
            # The file goes with the pod's folder at the latest.
            with contextlib.suppress(OSError):
                os.unlink(self._path(uid))

    def _free_block(self) -> int:
        spare = self._spare
        taken = set(self._used.values())
        if len(taken) >= spare.count // spare.per_pod:
            # Folders of unknown pods are removed elsewhere.
            self._used = {uid: first for uid, first in self._used.items() if os.path.exists(self._path(uid))}
            taken = set(self._used.values())
        free = spare.count // spare.per_pod - len(taken)
        if free <= 0:
            raise NoUserIds("could not find an empty slot to allocate a user namespace")
        # At random, so that a block is not used again soon after its last pod ended.
        while True:
            first = spare.first + spare.per_pod * random.randrange(spare.count // spare.per_pod)
            if first not in taken:
                return first

    def _read(self, uid: PodUID) -> int | None:
        try:
            text = read_regular(self._path(uid), most=_MAX_FILE).decode("utf-8", "replace")
        except FileNotFoundError:
            return None
        if not text:
            return None
        first = _first_id(text, self._spare.per_pod)
        self._record(uid, first)
        return first

    def _record(self, uid: PodUID, first: int) -> None:
        spare = self._spare
        if self._used.get(uid, first) != first:
            raise NoUserIds(f'different user namespace range already used by pod "{uid}"')
        if not spare.first <= first <= spare.first + spare.count - spare.per_pod:
            raise NoUserIds(f"id {first} is out of range")
        if uid not in self._used and first in self._used.values():
            raise NoUserIds(f'range picked for pod "{uid}" already taken')
        self._used[uid] = first

    def _write(self, uid: PodUID, first: int) -> None:
        mapping = [{"hostId": first, "containerId": 0, "length": self._spare.per_pod}]
        make_directory(self._root.pod(uid), _PRIVATE)
        write_atomically(self._path(uid), json.dumps({"uidMappings": mapping, "gidMappings": mapping}).encode())

    def _path(self, uid: PodUID) -> str:
        return self._root.user_namespace(uid)


def _first_id(text: str, per_pod: int) -> int:
    """The block that a `userns` file names."""
    try:
        content = json.loads(text)
        uids, gids = content["uidMappings"], content["gidMappings"]
        [mapping] = uids
        first, inside, length = (int(mapping[key]) for key in ("hostId", "containerId", "length"))
    except (ValueError, ArithmeticError, TypeError, LookupError, RecursionError) as error:
        raise NoUserIds("invalid user namespace mappings file: want one mapping of uids and one of gids") from error
    if uids != gids:
        raise NoUserIds("invalid user namespace configuration: GID and UID mapping should be identical")
    if inside != 0:
        raise NoUserIds("invalid user namespace configuration: UID 0 must be mapped")
    if length != per_pod:
        raise NoUserIds(f"wrong user namespace length {length}")
    if first % per_pod:
        raise NoUserIds(f"wrong user namespace offset specified {first}")
    return first


_ID = re.compile("[0-9]{1,10}")


class SubordinateIdsUnusable(Exception):
    """There are ids for the user, but not in a form that can be used."""


def subordinate_ids() -> tuple[int, int] | None:
    """First id and how many there are; None where there is no such user or no getsubids: then all ids above the host's
    block count. Raises SubordinateIdsUnusable."""
    try:
        pwd.getpwnam(SUBORDINATE_USER)
    except KeyError:
        return None
    program = shutil.which("getsubids")
    if program is None:
        return None
    users, groups = _getsubids(program, SUBORDINATE_USER), _getsubids(program, "-g", SUBORDINATE_USER)
    if users != groups:
        raise SubordinateIdsUnusable(f'mismatched subuids and subgids for user "{SUBORDINATE_USER}"')
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


def _getsubids(*command: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=True, timeout=_GETSUBIDS_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SubordinateIdsUnusable(
            f'error retrieving additional ids for user "{SUBORDINATE_USER}": {error}'
        ) from error
    return done.stdout
