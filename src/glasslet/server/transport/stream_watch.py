"""Follows the frames that a runtime sends in a session, so that a session cut short never looks like a success.

A client of SPDY takes the end of the connection for the end of all its streams, and an error stream that ended empty
for exit code 0. So only whole frames are passed on, and when the runtime goes away before it said how the command
ended, a failure is written in its place. WebSocket clients get a close frame that says so. Nothing is unpacked or
copied but the frame at the end of a chunk.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Protocol

HOLD = 65536
"""Frames up to this size are passed on as a whole; larger ones flow, and cannot be followed by a notice when cut."""


class StreamWatch(Protocol):
    """Sees what the runtime sends."""

    def feed(self, data: bytes) -> bytes:
        """The bytes to pass on now."""

    def finished(self) -> bool:
        """True if the runtime may end the connection now: the client has the whole result."""

    def cut_notice(self, reason: str) -> bytes:
        """The bytes to send in place of the rest; empty if no notice fits here."""


class OpaqueWatch:
    """Passes everything on: port-forward clients report a lost connection by themselves."""

    def feed(self, data: bytes) -> bytes:
        """All bytes."""
        return data

    def finished(self) -> bool:
        """Always."""
        return True

    def cut_notice(self, _reason: str) -> bytes:
        """There is no notice."""
        return b""


class _FrameWatch(ABC):
    """Walks frames; subclasses know their headers."""

    def __init__(self) -> None:
        self._held = b""
        self._skip = 0

    def feed(self, data: bytes) -> bytes:
        """Whole frames, and the part of a large one that has arrived."""
        chunk = self._held + data if self._held else data
        at = min(self._skip, len(chunk))
        self._skip -= at
        while at < len(chunk):
            size = self._size(chunk, at)
            if size is None:
                break
            if at + size > len(chunk) and size <= HOLD:
                break
            self._look(chunk, at, size)
            self._skip = max(0, at + size - len(chunk))
            at = min(at + size, len(chunk))
        self._held = chunk[at:]
        return chunk[:at] if self._held else chunk

    @abstractmethod
    def _size(self, chunk: bytes, at: int) -> int | None:
        """Bytes of the frame that begins here, header included; None if its header is not there yet."""

    @abstractmethod
    def _look(self, chunk: bytes, at: int, size: int) -> None:
        """Notes a frame."""


class SPDYWatch(_FrameWatch):
    """SPDY/3.1 exec and attach from protocol v4.channel.k8s.io on, where the runtime always sends a status at the end.

    The error stream is the first that a client opens, so its number is 1."""

    _ERROR_STREAM = 1
    _FIN = 0x01
    _SYN_REPLY, _RST_STREAM = 2, 3

    def __init__(self) -> None:
        super().__init__()
        self._said = False
        self._reset = False

    def finished(self) -> bool:
        """True once the error stream carried something or was ended."""
        return self._said

    def cut_notice(self, reason: str) -> bytes:
        """The failure, as the last frame of the error stream."""
        if self._skip or self._said or self._reset:
            return b""
        body = _failure(reason)
        return self._ERROR_STREAM.to_bytes(4, "big") + bytes((self._FIN,)) + len(body).to_bytes(3, "big") + body

    def _size(self, chunk: bytes, at: int) -> int | None:
        return 8 + int.from_bytes(chunk[at + 5 : at + 8], "big") if len(chunk) - at >= 8 else None

    def _look(self, chunk: bytes, at: int, size: int) -> None:
        fin = bool(chunk[at + 4] & self._FIN)
        if not chunk[at] & 0x80:
            if int.from_bytes(chunk[at : at + 4], "big") == self._ERROR_STREAM and (fin or size > 8):
                self._said = True
            return
        kind = int.from_bytes(chunk[at + 2 : at + 4], "big")
        stream = int.from_bytes(chunk[at + 8 : at + 12], "big") & 0x7FFFFFFF
        if stream != self._ERROR_STREAM:
            return
        if kind == self._SYN_REPLY and fin:
            self._said = True
        elif kind == self._RST_STREAM:
            self._reset = True


class WebSocketWatch(_FrameWatch):
    """Any WebSocket session: it ends with a close frame or it was cut."""

    _CLOSE = 0x8
    _INTERNAL_ERROR = 1011

    def __init__(self) -> None:
        super().__init__()
        self._closed = False

    def finished(self) -> bool:
        """True once a close frame was seen."""
        return self._closed

    def cut_notice(self, reason: str) -> bytes:
        """A close frame with the reason."""
        if self._skip or self._closed:
            return b""
        body = self._INTERNAL_ERROR.to_bytes(2, "big") + reason.encode()[:123]
        return bytes((0x80 | self._CLOSE, len(body))) + body

    def _size(self, chunk: bytes, at: int) -> int | None:
        there = len(chunk) - at
        if there < 2:
            return None
        mask = 4 if chunk[at + 1] & 0x80 else 0
        length = chunk[at + 1] & 0x7F
        more = {126: 2, 127: 8}.get(length, 0)
        if there < 2 + more:
            return None
        if more:
            length = int.from_bytes(chunk[at + 2 : at + 2 + more], "big")
        return 2 + more + mask + length

    def _look(self, chunk: bytes, at: int, _size: int) -> None:
        if chunk[at] & 0x0F == self._CLOSE:
            self._closed = True


def _failure(reason: str) -> bytes:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": reason,
        "reason": "InternalError",
        "code": 500,
    }
    return json.dumps(status, separators=(",", ":")).encode()
