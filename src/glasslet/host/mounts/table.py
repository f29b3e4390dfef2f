"""The kernel's table of mounts, parsed. It is read instead of the paths themselves, which may hang."""

from __future__ import annotations

import errno
import os
import re
from functools import cached_property

from msgspec import Struct

_PATH = 4
"""The field of a line that has the place."""
_LEAST_FIELDS = 6
_MOST_DIGITS = 10
"""Of a mount's number, which has 32 bits."""
_OCTAL = re.compile(rb"\\([0-7]{3})")


class MountTableUnreadable(OSError):
    """A line of the table has another form than the kernel's: what is mounted is not known, so nothing may be removed
    or unmounted by it."""

    def __init__(self, line: bytes) -> None:
        super().__init__(errno.EBADMSG, f"mountinfo has a line of an unknown form: {line[:200]!r}")


class MountEntry(Struct, frozen=True, kw_only=True):
    """One line of mountinfo. `options` are those of the file system (`size=...`, `pagesize=...`); `shared`: mounts
    below it reach other namespaces."""

    mount_id: int
    device: str
    root: str
    path: str
    fs_type: str
    source: str
    options: tuple[str, ...] = ()
    shared: bool = False

    def option(self, name: str) -> str:
        """Value of `name=value` among the options, "" if absent."""
        return next((o.partition("=")[2] for o in self.options if o.startswith(f"{name}=")), "")


class MountTable:
    """All mounts of this process's mount namespace at one moment. Paths are as the kernel knows them: resolved."""

    def __init__(self, text: bytes) -> None:
        """`text` is that of mountinfo. The kernel escapes the newline in names and no other line separator, so a line
        ends at a newline only. Raises MountTableUnreadable.

        A node with many pods has a thousand lines, of which one is wanted: only that one is parsed."""
        self._lines = [(_path_in(line), line) for line in text.split(b"\n") if line]

    @cached_property
    def entries(self) -> tuple[MountEntry, ...]:
        """All mounts."""
        return tuple(_parse(line) for _, line in self._lines)

    def at(self, path: str) -> MountEntry | None:
        """The mount exactly there: of mounts stacked on one path, the last is the one that is seen."""
        wanted = os.fsencode(path)
        found = [line for there, line in self._lines if there == wanted]
        return _parse(found[-1]) if found else None

    def at_or_below(self, path: str) -> tuple[MountEntry, ...]:
        """Everything mounted there or deeper, innermost first: the order in which it can be unmounted."""
        top = os.fsencode(path)
        prefix = top.rstrip(b"/") + b"/"
        inside = [_parse(line) for there, line in self._lines if there == top or there.startswith(prefix)]
        return tuple(sorted(inside, key=lambda e: (e.path.count("/"), e.mount_id), reverse=True))

    def holder(self, path: str) -> MountEntry | None:
        """The mount that a path is on: the deepest, of mounts stacked there the last."""
        wanted = os.fsencode(path)
        above = [
            (len(there), number)
            for number, (there, _) in enumerate(self._lines)
            if wanted == there or wanted.startswith(there.rstrip(b"/") + b"/")
        ]
        return _parse(self._lines[max(above)[1]][1]) if above else None


def read_mount_table(path: str = "/proc/self/mountinfo") -> MountTable:
    """The table of now. Raises OSError, MountTableUnreadable among them."""
    with open(path, "rb") as file:
        return MountTable(file.read())


def resolved(path: str) -> str:
    """The path as the mount table knows it. The last element is kept as it is: looking at it could hang."""
    parent, name = os.path.split(path.rstrip("/") or "/")
    return os.path.join(os.path.realpath(parent), name) if name else parent


def _path_in(line: bytes) -> bytes:
    fields = line.split(b" ", _LEAST_FIELDS)
    if len(fields) <= _LEAST_FIELDS or not fields[0].isdigit() or b" - " not in line:
        raise MountTableUnreadable(line)
    return _unescaped(fields[_PATH])


def _parse(line: bytes) -> MountEntry:
    before, _, after = line.partition(b" - ")
    fields, tail = before.split(b" "), after.split(b" ")
    if len(fields) < _LEAST_FIELDS or len(tail) < 3 or len(fields[0]) > _MOST_DIGITS:
        raise MountTableUnreadable(line)
    return MountEntry(
        mount_id=int(fields[0]),
        device=_text(fields[2]),
        root=_text(fields[3]),
        path=_text(fields[_PATH]),
        fs_type=_text(tail[0]),
        source=_text(tail[1]),
        options=tuple(_text(tail[2]).split(",")),
        shared=any(tag.startswith(b"shared:") for tag in fields[_LEAST_FIELDS:]),
    )


def _text(field: bytes) -> str:
    return os.fsdecode(_unescaped(field))


def _unescaped(field: bytes) -> bytes:
    return _OCTAL.sub(lambda m: bytes((int(m[1], 8) & 0xFF,)), field) if b"\\" in field else field
