"""Segments of the record on disk: append-only files of checksummed lines, bounded in size and age.

A line is `<crc32 in 8 hex digits> <JSON>\\n`. Every agent run starts a segment of its own, so that what a killed agent
left half-written stays where it is. Nothing here is needed to run pods: a full disk or damage costs history only.
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
    """How much is kept. `spare_bytes`: below this much free space nothing is written."""

    max_bytes: int = 64 * 1024 * 1024
    max_age_seconds: float = 14 * 86400.0
    segment_bytes: int = 4 * 1024 * 1024
    spare_bytes: int = 32 * 1024 * 1024


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line. A run's first line has `started` and, if an agent ran here before, `before`: when that one was last
    alive. Others have events of one pod; `pod` is [namespace, name, uid], or empty for the agent itself."""

    run: str
    started: float | None = None
    before: float | None = None
    pod: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    shed: int = 0

    def ref(self) -> PodRef | None:
        """Whose events these are."""
        return PodRef(self.pod[0], self.pod[1], PodUID(self.pod[2])) if len(self.pod) == 3 else None


class NoSpace(Exception):
    """The file system is (nearly) full."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Line)


def packed(line: Line) -> bytes:
    """A line as it is written."""
    body = _encoder.encode(line)
    return b"%08x %s\n" % (zlib.crc32(body), body)


def unpacked(raw: bytes) -> Line | None:
    """A line as it was read, None if it is damaged."""
    body = raw[9:].rstrip(b"\n")
    try:
        if int(raw[:8], 16) != zlib.crc32(body):
            return None
        return _decoder.decode(body)
    except (ValueError, msgspec.MsgspecError):
        return None


class SegmentWriter:
    """Writes one run's lines. All methods block: call them off the event loop."""

    def __init__(self, *, folder: Path, run: str, retention: Retention | None = None) -> None:
        self.folder = folder
        self.run = run
        self.retention = retention or Retention()
        self._file: BinaryIO | None = None
        self._size = 0
        self._number = 0
        self._torn = False

    def open(self, started: float) -> None:
        """Begins the run (`started`: Unix time). Raises OSError if the folder cannot be used."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._number = max((_number(path) for path in segments(self.folder)), default=0)
        self.write([Line(run=self.run, started=started, before=last_alive(self.folder))])
        self.touch()

    def write(self, lines: Sequence[Line]) -> None:
        """Appends lines. Raises NoSpace or OSError; then none of them counts as written."""
        data = b"".join(packed(line) for line in lines)
        self._check_space()
        file = self._current()
        try:
            # A line that an earlier failure cut off must not swallow the next one.
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
        """Notes that this run is alive now."""
        # A missing sign of life makes the next agent's guess coarser, nothing else.
        with contextlib.suppress(OSError):
            (self.folder / _ALIVE).touch()
            os.utime(self.folder / _ALIVE)

    def trim(self) -> int:
        """Removes the oldest segments beyond the limits; how many."""
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
        """Ends the segment; the next write begins another."""
        if self._file is not None:
            # What could not be written (a full disk) was told when it was; the descriptor is free all the same.
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
    """When an agent that kept its record here was last known to live (Unix time); what it did then is lost."""
    signs = []
    for path in (folder / _ALIVE, *segments(folder)[-1:]):
        with contextlib.suppress(OSError):
            signs.append(path.stat().st_mtime)
    return max(signs, default=None)


def raw_lines(folder: Path) -> Iterator[bytes]:
    """Every line of every segment, unchecked. A segment that cannot be read, or is no regular file, is passed over."""
    for path in segments(folder):
        if not path.is_file():
            continue
        with contextlib.suppress(OSError), path.open("rb") as file:
            yield from file


def _number(path: Path) -> int:
    return int(path.stem)
