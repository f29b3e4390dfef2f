"""One unary gRPC call on its own connection, with the part of HTTP/2 that it needs. Loaded only for gRPC probes.

A library would keep channels, threads and back-off for an exchange of forty bytes.
"""

from __future__ import annotations

import struct
from typing import Protocol
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from glasslet.probes.hpack import BadHeaders, HeaderDecoder, encode_header

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _CONTINUATION = 0, 1, 3, 4, 6, 7, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_HEAD = struct.Struct(">BHBBI")
"""Length (8 and 16 bits), type, flags, stream."""
_FRAME_BYTES = 16384
_MOST_BYTES = 64 * 1024
"""Of a whole answer: a health check has a few dozen."""
_MOST_HEADER_BYTES = 8 * 1024
"""Of all header blocks: decompressing them is work for the agent's loop."""
_MOST_DIGITS = 9
"""Of a status code: it has 32 bits."""
_STREAM = 1

OK, UNKNOWN, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNIMPLEMENTED = 0, 2, 7, 8, 12
INTERNAL, UNAVAILABLE, UNAUTHENTICATED, CANCELED = 13, 14, 16, 1
_BY_HTTP_STATUS = {
    "400": INTERNAL, "401": UNAUTHENTICATED, "403": PERMISSION_DENIED, "404": UNIMPLEMENTED, "429": UNAVAILABLE,
    "502": UNAVAILABLE, "503": UNAVAILABLE, "504": UNAVAILABLE,
}  # fmt: skip
_BY_RESET = {7: UNAVAILABLE, 8: CANCELED, 11: RESOURCE_EXHAUSTED, 12: PERMISSION_DENIED}


class Wire(Protocol):
    """A connection (`probes.connection`)."""

    async def send(self, data: bytes) -> None: ...
    async def receive(self) -> bytes: ...


class NotHTTP2(Exception):
    """The other side does not speak HTTP/2, or closed the connection."""


class Answered(Struct, frozen=True, kw_only=True):
    """The end of a call. `code`: of gRPC; `message`: the answer's bytes where it is OK."""

    code: int
    details: str = ""
    message: bytes = b""


class UnaryCall:
    """A connection that makes one call: `greet()`, then `call()`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._buffer = bytearray()
        self._received = 0
        self._header_bytes = 0
        self._decoder = HeaderDecoder()

    async def greet(self) -> None:
        """Sends the preface and waits for the other side's settings. Raises NotHTTP2 and the wire's errors."""
        await self._wire.send(PREFACE + frame(_SETTINGS, 0, b"", stream=0))
        kind, flags, _, _ = await self._frame()
        if kind != _SETTINGS or flags & _ACK:
            raise NotHTTP2("no settings")
        await self._wire.send(frame(_SETTINGS, _ACK, b"", stream=0))

    async def call(self, path: str, message: bytes, headers: dict[str, str]) -> Answered:
        """Sends the message, returns the answer. Raises NotHTTP2 and the wire's errors."""
        named = {":method": "POST", ":scheme": "http", ":path": path, "te": "trailers", **headers}
        # RFC 9113 section 8.3: pseudo-headers come first. Go's server resets a stream on which they do not.
        ordered = sorted(named.items(), key=lambda header: not header[0].startswith(":"))
        block = b"".join(encode_header(name, value) for name, value in ordered)
        body = struct.pack(">BI", 0, len(message)) + message
        await self._wire.send(
            frame(_HEADERS, _END_HEADERS, block, stream=_STREAM) + frame(_DATA, _END_STREAM, body, stream=_STREAM)
        )
        try:
            return await self._answer()
        except BadHeaders as error:
            return Answered(code=INTERNAL, details=str(error))

    async def _answer(self) -> Answered:
        head: dict[str, str] = {}
        data = bytearray()
        while True:
            kind, flags, stream, payload = await self._frame()
            if kind == _GOAWAY:
                last = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
                if last < _STREAM:
                    return Answered(code=UNAVAILABLE, details="closing transport due to: connection error: GOAWAY")
            elif kind == _PING and not flags & _ACK:
                await self._wire.send(frame(_PING, _ACK, payload, stream=0))
            elif kind == _SETTINGS and not flags & _ACK:
                await self._wire.send(frame(_SETTINGS, _ACK, b"", stream=0))
            if stream != _STREAM:
                continue
            if kind == _RST_STREAM:
                reason = int.from_bytes(payload[:4], "big")
                details = f"stream terminated by RST_STREAM with error code: {reason}"
                return Answered(code=_BY_RESET.get(reason, INTERNAL), details=details)
            if kind == _DATA:
                data += _unpadded(payload, flags)
            elif kind == _HEADERS:
                block = _unpadded(payload, flags)[5 if flags & _PRIORITY else 0 :]
                found = self._decoder.decode(await self._whole(block, flags))
                head = head or found
                if flags & _END_STREAM:
                    return _ended(head, found, bytes(data))
            if kind == _DATA and flags & _END_STREAM:
                return Answered(code=INTERNAL, details="server closed the stream without sending trailers")

    async def _whole(self, block: bytes, flags: int) -> bytes:
        while not flags & _END_HEADERS:
            kind, flags, _, more = await self._frame()
            if kind != _CONTINUATION:
                raise BadHeaders("headers that do not end")
            block += more
        self._header_bytes += len(block)
        if self._header_bytes > _MOST_HEADER_BYTES:
            raise BadHeaders(f"headers of more than {_MOST_HEADER_BYTES} bytes")
        return block

    async def _frame(self) -> tuple[int, int, int, bytes]:
        await self._fill(_HEAD.size)
        high, low, kind, flags, stream = _HEAD.unpack_from(self._buffer)
        size = high << 16 | low
        if size > _FRAME_BYTES:
            raise NotHTTP2("frame larger than agreed")
        await self._fill(_HEAD.size + size)
        payload = bytes(self._buffer[_HEAD.size : _HEAD.size + size])
        del self._buffer[: _HEAD.size + size]
        return kind, flags, stream & 0x7FFFFFFF, payload

    async def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            more = await self._wire.receive()
            self._received += len(more)
            if not more or self._received > _MOST_BYTES:
                raise NotHTTP2("error reading from server: EOF" if not more else "endless answer")
            self._buffer += more


def frame(kind: int, flags: int, payload: bytes, *, stream: int) -> bytes:
    """An HTTP/2 frame."""
    return _HEAD.pack(len(payload) >> 16, len(payload) & 0xFFFF, kind, flags, stream) + payload


def _unpadded(payload: bytes, flags: int) -> bytes:
    if not flags & _PADDED or not payload:
        return payload
    return payload[1 : max(len(payload) - payload[0], 1)]


def _ended(head: dict[str, str], trailers: dict[str, str], data: bytes) -> Answered:
    """The end of the call, from the first and the last headers (the same ones where there is no message)."""
    status = head.get(":status", "")
    if status != "200" and "grpc-status" not in trailers:
        details = f"unexpected HTTP status code received from server: {status}"
        return Answered(code=_BY_HTTP_STATUS.get(status, UNKNOWN), details=details)
    text = trailers.get("grpc-status", "")
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        return Answered(code=UNKNOWN, details=f'malformed grpc-status: "{text[:20]}"')
    details = unquote_to_bytes(trailers.get("grpc-message", "")).decode(errors="replace")
    if text != "0":
        return Answered(code=int(text), details=details)
    if len(data) < 5 or data[0] != 0:
        return Answered(code=INTERNAL, details="no message that could be read")
    return Answered(code=OK, message=data[5 : 5 + int.from_bytes(data[1:5], "big")])
