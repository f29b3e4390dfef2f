"""Segments of the record on disk: append-only files of checksummed lines, bounded in size and age.

A line is `<crc32 in 8 hex digits> <JSON>\\n`. Every agent run starts a new segment, so that a line that a killed
agent left half-written stays where it is. Pods do not need the record: a full disk or damage costs history only.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.record.events import Event

_SUFFIX = ".segment"
_ALIVE = "alive"


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of the folder. `spare_bytes`: with less free space nothing is written."""

    max_bytes: int = 64 * 1024 * 1024
    max_age_seconds: float = 14 * 86400.0
    segment_bytes: int = 4 * 1024 * 1024
    spare_bytes: int = 32 * 1024 * 1024


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line. A run's first line has `started` and, if an agent ran here before, `before`: when it was last alive.
    The other lines have events of one pod; `pod`: [namespace, name, uid], empty for the agent itself."""

    run: str
    started: float | None = None
    before: float | None = None
    pod: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    shed: int = 0

    def ref(self) -> PodRef | None:
        """The pod of these events, None for the agent itself."""
        return PodRef(self.pod[0], self.pod[1], PodUID(self.pod[2])) if len(self.pod) == 3 else None


class NoSpace(Exception):
    """The file system is (nearly) full."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Line)


def packed(line: Line) -> bytes:
    """A line as bytes."""
    body = _encoder.encode(line)
    return b"%08x %s\n" % (zlib.crc32(body), body)


def unpacked(raw: bytes) -> Line | None:
    """A line from bytes, None if it is damaged."""
    body = raw[9:].rstrip(b"\n")
    try:
        if int(raw[:8], 16) != zlib.crc32(body):
            return None
        return _decoder.decode(body)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None


class SegmentWriter:
    """Writes the lines of one run. All methods block: call them off the event loop."""

    def __init__(self, *, folder: Path, run: str, retention: Retention | None = None) -> None:
        self.folder = folder
        self.run = run
        self.retention = retention or Retention()
        self._file: BinaryIO | None = None
        self._size = 0
        self._number = 0
        self._torn = False

    def open(self, started: float) -> None:
        """Starts the run (`started`: Unix time). Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._number = max((_number(path) for path in segments(self.folder)), default=0)
        self.write([Line(run=self.run, started=started, before=last_alive(self.folder))])
        self.touch()

    def write(self, lines: Sequence[Line]) -> None:
        """Appends lines, all or none. Raises NoSpace or OSError."""
        data = b"".join(packed(line) for line in lines)
        self._check_space()
        file = self._current()
        try:
            # A line that an earlier failure cut must not damage the next one.
            file.write(b"\n" + data if self._torn else data)
            self._torn = False
        except OSError:
            self._torn = True
            raise
        self._size += len(data)
        if self._size >= self.retention.segment_bytes:
            self.close()
            self.trim()

    def touch(self) -> None:
        """Marks this run as alive now."""
        # Without the mark the next agent estimates the end of this run less exactly.
        with contextlib.suppress(OSError):
            (self.folder / _ALIVE).touch()
            os.utime(self.folder / _ALIVE)

    def trim(self) -> int:
        """Removes the oldest segments beyond the bounds; returns their number."""
        files = [(path, path.stat()) for path in segments(self.folder)]
        newest = max((stat.st_mtime for _, stat in files), default=0.0)
        total = sum(stat.st_size for _, stat in files)
        removed = 0
        for path, stat in files[:-1]:
            too_old = newest - stat.st_mtime > self.retention.max_age_seconds
            if total <= self.retention.max_bytes - self.retention.segment_bytes and not too_old:
                break
            path.unlink(missing_ok=True)
            total -= stat.st_size
            removed += 1
        return removed

    def close(self) -> None:
        """Ends the segment; the next write starts another."""
        if self._file is not None:
            # A failed write was reported at its time; the descriptor is released in any case.
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _current(self) -> BinaryIO:
        if self._file is None:
            self._number += 1
            path = self.folder / f"{self._number:08d}{_SUFFIX}"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._file = os.fdopen(handle, "ab", buffering=0)
            self._size = 0
        return self._file

    def _check_space(self) -> None:
        space = os.statvfs(self.folder)
        if space.f_bavail * space.f_frsize >= self.retention.spare_bytes:
            return
        raise NoSpace(f"less than {self.retention.spare_bytes >> 20} MB free at {self.folder}")


def segments(folder: Path) -> list[Path]:
    """Segment files, oldest first."""
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(_SUFFIX) and path.stem.isdigit())
    except OSError:
        return []


def last_alive(folder: Path) -> float | None:
    """The last time that an earlier agent was known to be alive here (Unix time)."""
    signs = []
    for path in (folder / _ALIVE, *segments(folder)[-1:]):
        with contextlib.suppress(OSError):
            signs.append(path.stat().st_mtime)
    return max(signs, default=None)


def raw_lines(folder: Path) -> Iterator[bytes]:
    """Every line of every segment, unchecked. Skips segments that cannot be read or are no regular files."""
    for path in segments(folder):
        if not path.is_file():
            continue
        with contextlib.suppress(OSError), path.open("rb") as file:
            yield from file


def _number(path: Path) -> int:
    return int(path.stem)
