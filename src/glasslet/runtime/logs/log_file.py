"""One log file being read: where to begin, whole lines in big pieces, and whether another file took its place.

All methods block on the disk; `reader.py` calls them in a thread.
"""

from __future__ import annotations

import os
from enum import Enum, auto

PIECE = 512 * 1024
"""Bytes per read: large enough for speed, small enough for the memory of many readers."""
_LONGEST_LINE = 16 * 1024 * 1024
"""Runtimes cut lines at some 16 KiB; what is longer than this is no log line and is given out unseparated."""
_BLOCK = 64 * 1024


class PathState(Enum):
    """The state of the path of an open log."""

    SAME = auto()
    REPLACED = auto()
    TRUNCATED = auto()


class LogFile:
    """A file being read forwards. `rest` is what was read after the last newline."""

    def __init__(self, path: str, *, tail: int | None = None) -> None:
        """Opens it; with `tail`, at its last so many lines. Raises OSError."""
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self._offset = 0
        self.rest = b""
        if tail is not None:
            self._offset = tail_offset(self._descriptor, tail)

    def close(self) -> None:
        """Closes it."""
        os.close(self._descriptor)

    def read_lines(self) -> bytes:
        """The next whole lines; empty at the end of the file."""
        pieces = [self.rest] if self.rest else []
        length = len(self.rest)
        while True:
            piece = os.pread(self._descriptor, PIECE, self._offset)
            self._offset += len(piece)
            end = piece.rfind(b"\n") + 1
            if end:
                self.rest = piece[end:]
                pieces.append(piece[:end])
                return b"".join(pieces) if len(pieces) > 1 else pieces[0]
            pieces.append(piece)
            length += len(piece)
            if not piece or length > _LONGEST_LINE:
                self.rest = b"".join(pieces)
                return b"" if length <= _LONGEST_LINE else self.take_rest()

    def take_rest(self) -> bytes:
        """The bytes after the last newline, returned once."""
        rest, self.rest = self.rest, b""
        return rest

    def place(self) -> PathState:
        """Whether the path still leads to this file. A missing path is a rotation half done, and counts as the same."""
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return PathState.SAME
        own = os.fstat(self._descriptor)
        if (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino):
            return PathState.REPLACED
        return PathState.TRUNCATED if own.st_size < self._offset else PathState.SAME

    def rewind(self) -> None:
        """Begins again at the start, after the file was emptied in place."""
        self._offset, self.rest = 0, b""


def tail_offset(descriptor: int, lines: int) -> int:
    """Where the last `lines` lines begin. A last line without newline does not count as one, but is included."""
    end = os.fstat(descriptor).st_size
    wanted = lines + 1  # the newline before the first line wanted
    while end > 0:
        begin = max(0, end - _BLOCK)
        block = os.pread(descriptor, end - begin, begin)
        found = block.count(b"\n")
        if found >= wanted:
            position = len(block)
            for _ in range(wanted):
                position = block.rfind(b"\n", 0, position)
            return begin + position + 1
        wanted -= found
        end = begin
    return 0
