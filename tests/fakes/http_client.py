"""The smallest HTTP/1.1 client: raw bytes out, status, headers and body in. Tests see exactly what is on the wire."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import cast


@dataclass(frozen=True)
class Answer:
    """One answer. `complete`: its body ended as its head promised."""

    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool = True

    @property
    def text(self) -> str:
        """The body."""
        return self.body.decode()


@dataclass
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    headers: dict[str, str] = field(default_factory=dict)

    def pause_reading(self) -> None:
        """Takes nothing more from the socket."""
        cast(asyncio.Transport, self.writer.transport).pause_reading()

    def resume_reading(self) -> None:
        """Reads from the socket again."""
        cast(asyncio.Transport, self.writer.transport).resume_reading()

    @classmethod
    async def connect(cls, port: int, tls: ssl.SSLContext | None = None) -> Client:
        """Connects over loopback."""
        name = "localhost" if tls is not None else None
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name))

    async def ask(self, method: str, target: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Answer:
        """Sends a request and reads its answer."""
        lines = [f"{method} {target} HTTP/1.1", "Host: node"]
        sent = {**self.headers, **(headers or {})}
        if body:
            sent["Content-Length"] = str(len(body))
        lines += [f"{name}: {value}" for name, value in sent.items()]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await self.writer.drain()
        return await self.answer(head_only=method == "HEAD")

    async def answer(self, *, head_only: bool = False) -> Answer:
        """Reads one answer."""
        status, headers = await self.head()
        if head_only or status in (101, 204, 304):
            return Answer(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            body, complete = await self._chunks()
        elif "content-length" in headers:
            wanted = int(headers["content-length"])
            try:
                body, complete = await self.reader.readexactly(wanted), True
            except (asyncio.IncompleteReadError, ConnectionError) as cut:
                body, complete = getattr(cut, "partial", b""), False
        else:
            body, complete = await self.reader.read(), True
        return Answer(status, headers, body, complete)

    async def head(self) -> tuple[int, dict[str, str]]:
        """Reads the head of an answer."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.partition(":") for line in head[1:] if line)
        return int(head[0].split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def ended(self) -> bool:
        """True if the server closes or resets the connection now."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        """Ends the connection."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            return

    async def _chunks(self) -> tuple[bytes, bool]:
        body = b""
        try:
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            await self.reader.readexactly(2)
        except (asyncio.IncompleteReadError, ConnectionError):
            return body, False
        return body, True
