"""The part of an HTTP/1.x answer that a probe needs: status, headers, the first 10 KiB of the body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from glasslet.api.formats import int64

HEAD_BYTES = 1024 * 1024
"""Status line and headers; an endless head must not fill the agent's memory."""
_LINE_BYTES = 4096
_INTERIM_ANSWERS = 5
_SHOWN = 80

Receive = Callable[[], Awaitable[bytes]]
"""Some more bytes, none at the end of the connection."""


class BadResponse(Exception):
    """The data is no HTTP answer, or ends too early."""


class Head(Struct, frozen=True):
    """`headers` by lower-case name, the first value of each."""

    status: int
    headers: dict[str, str]


class ResponseReader:
    """Reads one answer from a connection."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._buffer = bytearray()

    async def first(self) -> None:
        """Waits for the first bytes, or the end."""
        await self._more()

    async def head(self) -> Head:
        """The head of the final answer; interim ones (1xx) are passed over. Raises BadResponse."""
        for _ in range(_INTERIM_ANSWERS + 1):
            head = parse_head(await self._head_bytes())
            if not 100 <= head.status < 200 or head.status == 101:
                return head
        raise BadResponse("net/http: too many 1xx informational responses")

    async def body(self, head: Head, limit: int) -> bytes:
        """The body, `limit` bytes at most. Raises BadResponse."""
        if head.status in (204, 304) or 100 <= head.status < 200:
            return b""
        if head.headers.get("transfer-encoding", "").lower() == "chunked":
            return await self._chunks(limit)
        length = head.headers.get("content-length", "").strip()
        if not length:
            while len(self._buffer) < limit and await self._more():
                pass
            return bytes(self._buffer[:limit])
        return await self._take(min(int64(length) or 0, limit))

    async def _head_bytes(self) -> bytes:
        start = 0
        while True:
            for mark in (b"\r\n\r\n", b"\n\n"):
                if (at := self._buffer.find(mark, start)) >= 0:
                    head = bytes(self._buffer[:at])
                    del self._buffer[: at + len(mark)]
                    return head
            if len(self._buffer) > HEAD_BYTES:
                raise BadResponse(f"net/http: server response headers exceeded {HEAD_BYTES} bytes; aborted")
            start = max(len(self._buffer) - 3, 0)
            if not await self._more():
                if b"\n" not in self._buffer:
                    raise BadResponse("EOF" if not self._buffer else malformed(bytes(self._buffer)))
                raise BadResponse("unexpected EOF")

    async def _chunks(self, limit: int) -> bytes:
        body = bytearray()
        while len(body) < limit:
            size = await self._chunk_size()
            if size == 0:
                break
            body += await self._take(min(size, limit - len(body)))
            if len(body) < limit:
                await self._take(2)
        return bytes(body)

    async def _chunk_size(self) -> int:
        while (at := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _LINE_BYTES:
                raise BadResponse("header line too long")
            if not await self._more():
                raise BadResponse("unexpected EOF")
        text = bytes(self._buffer[:at]).split(b";")[0].strip()
        del self._buffer[: at + 1]
        if not text or len(text) > 16 or any(byte not in b"0123456789abcdefABCDEF" for byte in text):
            raise BadResponse("invalid byte in chunk length")
        return int(text, 16)

    async def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not await self._more():
                raise BadResponse("unexpected EOF")
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _more(self) -> bool:
        data = await self._receive()
        self._buffer += data
        return bool(data)


def parse_head(head: bytes) -> Head:
    """Status and headers. Raises BadResponse."""
    line, *rest = head.decode("latin-1").replace("\r\n", "\n").split("\n")
    version, space, status = line.partition(" ")
    if not space:
        raise BadResponse(malformed(head))
    code = status.lstrip(" ").partition(" ")[0]
    if len(code) != 3 or not (code.isascii() and code.isdigit()):
        raise BadResponse(_broken(f'malformed HTTP status code "{code[:_SHOWN]}"'))
    if not (version.startswith("HTTP/") and len(version) == 8 and version[5].isdigit() and version[7].isdigit()):
        raise BadResponse(_broken(f'malformed HTTP version "{version[:_SHOWN]}"'))
    headers: dict[str, str] = {}
    for entry in rest:
        name, colon, value = entry.partition(":")
        if entry[:1] in (" ", "\t"):
            continue
        if not colon:
            raise BadResponse(_broken(f'malformed MIME header line: "{entry[:_SHOWN]}"'))
        headers.setdefault(name.lower(), value.strip())
    length = headers.get("content-length", "")
    if length and not _is_length(length):
        raise BadResponse(_broken(f'bad Content-Length "{length[:_SHOWN]}"'))
    return Head(int(code), headers)


def _is_length(text: str) -> bool:
    return text.isdigit() and int64(text) is not None


def malformed(data: bytes) -> str:
    """The error for data that is no HTTP."""
    line = data.partition(b"\n")[0].rstrip(b"\r")[:_SHOWN].decode("latin-1")
    shown = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in line)
    return _broken(f'malformed HTTP response "{shown}"')


def _broken(what: str) -> str:
    return f"net/http: HTTP/1.x transport connection broken: {what}"
