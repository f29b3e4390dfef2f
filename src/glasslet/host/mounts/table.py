"""What is mounted where: the kernel's table, parsed. It is asked instead of the paths themselves, which may hang."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct

_PATH = 4
"""The field of a line that has the place."""
_OCTAL = re.compile(r"\\([0-7]{3})")


class MountEntry(Struct, frozen=True, kw_only=True):
    """One line of mountinfo. `options` are those of the file system (`size=...`, `pagesize=...`)."""

    mount_id: int
    device: str
    root: str
    path: str
    fs_type: str
    source: str
    options: tuple[str, ...] = ()

    def option(self, name: str) -> str:
        """Value of `name=value` among the options, "" if absent."""
        return next((o.partition("=")[2] for o in self.options if o.startswith(f"{name}=")), "")


class MountTable:
    """All mounts of this process's mount namespace at one moment. Paths are as the kernel knows them: resolved."""

    def __init__(self, lines: Iterable[str]) -> None:
        """`lines` of mountinfo. On a node with many pods there are a thousand, of which one is wanted: only that one is
        parsed."""
        self._lines = [(_path_in(line), line) for line in lines]

    @cached_property
    def entries(self) -> tuple[MountEntry, ...]:
        """All of them."""
        return tuple(entry for _, line in self._lines if (entry := _parse(line)) is not None)

    def at(self, path: str) -> MountEntry | None:
        """What is mounted exactly there: of mounts stacked on one path, the last is the one that is seen."""
        found = [entry for there, line in self._lines if there == path and (entry := _parse(line)) is not None]
        return found[-1] if found else None

    def at_or_below(self, path: str) -> tuple[MountEntry, ...]:
        """Everything mounted there or deeper, innermost first: the order in which it can be unmounted."""
        prefix = path.rstrip("/") + "/"
        inside = [
            entry
            for there, line in self._lines
            if (there == path or there.startswith(prefix)) and (entry := _parse(line)) is not None
        ]
        return tuple(sorted(inside, key=lambda e: (e.path.count("/"), e.mount_id), reverse=True))


def parse_mount_table(text: str) -> MountTable:
    """Parses the form of /proc/self/mountinfo; lines of any other form are left out."""
    return MountTable(text.splitlines())


def read_mount_table(path: str = "/proc/self/mountinfo") -> MountTable:
    """The table of now."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return parse_mount_table(file.read())


def resolved(path: str) -> str:
    """The path as the mount table knows it. The last element is kept as it is: looking at it could hang."""
    parent, name = os.path.split(path.rstrip("/") or "/")
    return os.path.join(os.path.realpath(parent), name) if name else parent


def _path_in(line: str) -> str:
    fields = line.split(" ", _PATH + 1)
    return _unescaped(fields[_PATH]) if len(fields) > _PATH else ""


def _parse(line: str) -> MountEntry | None:
    before, separator, after = line.partition(" - ")
    fields, tail = before.split(" "), after.split(" ")
    if not separator or len(fields) < 6 or len(tail) < 3 or not fields[0].isdigit():
        return None
    return MountEntry(
        mount_id=int(fields[0]),
        device=fields[2],
        root=_unescaped(fields[3]),
        path=_unescaped(fields[_PATH]),
        fs_type=tail[0],
        source=_unescaped(tail[1]),
        options=tuple(tail[2].split(",")),
    )


def _unescaped(field: str) -> str:
    return _OCTAL.sub(lambda m: chr(int(m[1], 8)), field) if "\\" in field else field
