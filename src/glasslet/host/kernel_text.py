"""The few forms in which the kernel writes figures into files. Pure; what cannot be read is absent, never an error."""

from __future__ import annotations

import os
from collections.abc import Mapping

from glasslet.host.cgroups.figures import NO_PRESSURE, Pressure, Stall

MOST_DIGITS = 20
"""Of a number with 64 bits: what is longer is none of the kernel's."""
UNLIMITED = 1 << 62
"""The kernel rounds "no limit" to pages: anything above this is none."""
_READ = 1 << 16
_MOST = 1 << 22
"""Bytes of one file. A list of the processes or interfaces that a container made may be longer; its end is left out."""
_WHOLE = 1 << 11
"""The kernel gives lists (processes, interfaces) by pages of 4 kB, to the last entry that fits: what is this much
shorter is the whole file, anything else may go on."""


class Folder:
    """A folder of which many files are read: opening it once, with the first, makes each of them a third cheaper. To be
    closed; without files if it is not there."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def contents(self, name: str) -> bytes:
        """Content of one file; empty without the file."""
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                self._descriptor = -1
        return contents(name, folder=self._descriptor) if self._descriptor >= 0 else b""

    def close(self) -> None:
        """Closes the folder."""
        if self._descriptor is not None and self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = None


def contents(path: str, *, folder: int | None = None) -> bytes:
    """A small file of the kernel, by its path or by its name in an open folder; empty if it is not there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return b""
    try:
        return read_open(descriptor)
    finally:
        os.close(descriptor)


def read_open(descriptor: int) -> bytes:
    """An open file of the kernel from its start, as it is now; empty if it was removed."""
    try:
        data = os.pread(descriptor, _READ, 0)
        if len(data) < _WHOLE:
            return data
        parts = [data]
        start = len(data)
        while start < _MOST and (data := os.pread(descriptor, _READ, start)):
            parts.append(data)
            start += len(data)
        return b"".join(parts)
    except OSError:
        return b""


def oldest_change(folder: str, file: str) -> float | None:
    """Unix time of the folder's or this file's last change, whichever is earlier."""
    times = []
    for path in (folder, f"{folder}/{file}"):
        try:
            times.append(os.stat(path).st_mtime)
        except OSError:
            # The group is going: the other one's time will do, and none is an answer, too.
            continue
    return min(times, default=None)


def number(data: bytes) -> int | None:
    """A single number; None for `max`, -1, and what is none."""
    text = data.strip()
    return int(text) if text.isdigit() and len(text) <= MOST_DIGITS else None


def count(values: Mapping[bytes, bytes], key: bytes) -> int:
    """One of the keyed values; 0 if it is absent or no number."""
    return number(values.get(key, b"")) or 0


def limit(data: bytes) -> int | None:
    """A limit in bytes; None if it limits nothing."""
    found = number(data)
    return found if found is None or found <= UNLIMITED else None


def keyed(data: bytes) -> dict[bytes, bytes]:
    """Lines of `key value`."""
    words = data.split()
    return dict(zip(words[::2], words[1::2], strict=False))


def lines(data: bytes) -> int:
    """How many lines there are."""
    return data.count(b"\n")


def pressure(data: bytes) -> Pressure:
    """A pressure file; its microseconds become nanoseconds."""
    found = {line.split(b" ", 1)[0]: _stall(line) for line in data.split(b"\n") if line}
    if not found:
        return NO_PRESSURE
    return Pressure(some=found.get(b"some", Stall()), full=found.get(b"full", Stall()))


def _stall(line: bytes) -> Stall:
    values = dict(word.split(b"=", 1) for word in line.split() if b"=" in word)
    try:
        return Stall(
            avg10=float(values.get(b"avg10", 0)),
            avg60=float(values.get(b"avg60", 0)),
            avg300=float(values.get(b"avg300", 0)),
            total=int(values.get(b"total", 0)) * 1000,
        )
    except ValueError:
        return Stall()
