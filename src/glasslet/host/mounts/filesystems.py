"""File systems on disks: detection, check, creation on an empty disk, mount.

All of this may hang on a sick device: call it from `HostThreads` only.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from glasslet.host.mounts.program import MountFailed, mount_by_program, run_program

_log = logging.getLogger(__name__)

PARTITIONS = "unknown data, probably partitions"

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_AS_LONG_AS_IT_TAKES = 7 * 24 * 3600.0
"""Seconds. A killed one would leave the disk in an unknown state."""
_NOTHING_FOUND = 2
_ERRORS_LEFT = 4
_MAKE = {"ext3": ("-F", "-m0"), "ext4": ("-F", "-m0"), "xfs": ("-f",)}


def mount_disk(device: str, target: str, *, fs_type: str, options: Iterable[str]) -> None:
    """Mounts a disk. An empty one gets a file system first, unless it is to be read only; another one is checked and
    repaired. Raises MountFailed."""
    if not _NAME.fullmatch(fs_type):
        raise MountFailed(f"file system type {fs_type!r} is not a name")
    wanted = (*options, "defaults")
    found = format_of(device)
    read_only = "ro" in wanted
    if not found:
        if read_only:
            raise MountFailed(f"cannot mount unformatted disk {device} as we are manipulating it in read-only mode")
        _make(device, target, fs_type, wanted)
    elif not read_only:
        _repair(device)
    mount_by_program(device, target, fs_type, wanted)


def format_of(device: str) -> str:
    """The type of file system on a disk, "" for an empty one, `PARTITIONS` for one that is not to be touched. Raises
    MountFailed."""
    ended = run_program(("blkid", "-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device))
    if ended.code == _NOTHING_FOUND:
        return ""
    if ended.problem:
        raise MountFailed(f"failed to get disk format of disk {device}: {ended.problem}")
    found = dict(line.split("=", 1) for line in ended.output.split("\n") if "=" in line)
    return PARTITIONS if "PTTYPE" in found else found.get("TYPE", "")


def _make(device: str, target: str, fs_type: str, options: Iterable[str]) -> None:
    _log.info("disk is empty, a file system is made", extra={"device": device, "type": fs_type})
    ended = run_program((f"mkfs.{fs_type}", *_MAKE.get(fs_type, ()), device), within=_AS_LONG_AS_IT_TAKES)
    if ended.problem:
        raise MountFailed(
            f'format of disk "{device}" failed: type:("{fs_type}") target:("{target}") '
            f'options:("{",".join(options)}") errcode:({ended.problem}) output:({ended.output}) '
        )


def _repair(device: str) -> None:
    ended = run_program(("fsck", "-a", device), within=_AS_LONG_AS_IT_TAKES)
    if ended.code == _ERRORS_LEFT:
        raise MountFailed(f"'fsck' found errors on device {device} but could not correct them: {ended.output}")
    if ended.problem:
        # Without the program, or with errors that it corrected, the disk is mounted.
        _log.info("disk was not found clean", extra={"device": device, "problem": ended.problem})
