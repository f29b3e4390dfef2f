"""The health port (10248): plain HTTP, no authentication, on its own few lines of protocol.

It must answer before anything heavy is loaded and while everything else is in trouble, so it uses asyncio alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qs, unquote

from msgspec import Struct

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.server.health_report import Observe, report, single
from glasslet.server.protocols import HealthCheck
from glasslet.server.transport.sockets import listen

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""Pause before listening is tried again."""
HEAD_BYTES = 65536
"""All that may wait to be answered: a flood of small requests would hold the event loop."""
HEAD_SECONDS = 10.0
IDLE_SECONDS = 90.0
CONNECTIONS = 256


class Reply(Struct, frozen=True):
    """An answer. `last`: the connection ends with it."""

    status: int
    body: str
    last: bool = False

    def encode(self, *, head_only: bool) -> bytes:
        """The bytes to send; a HEAD request gets the head alone."""
        body = self.body.encode()
        head = (
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n"
            "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"
            f"Content-Length: {len(body)}\r\n" + ("Connection: close\r\n" if self.last else "") + "\r\n"
        ).encode()
        return head if head_only else head + body


def answer(target: str, checks: Sequence[HealthCheck], observe: Observe) -> tuple[int, str]:
    """Status and body for a request target."""
    target_path, _, query_text = target.partition("?")
    path = unquote(target_path)
    if path == "/healthz":
        query = parse_qs(query_text, keep_blank_values=True)
        verbose, excluded = "verbose" in query, query.get("exclude", [])
        return report(checks, excluded=excluded, verbose=verbose, show_reasons=True, observe=observe)
    for check in checks:
        if path == f"/healthz/{check.name}":
            return single(check)
    return 404, "404 page not found\n"


class HealthzServer:
    """Serves `/healthz` and `/healthz/<check>`; reasons are shown, it listens on loopback by default."""

    def __init__(
        self,
        *,
        address: str,
        port: int,
        checks: Sequence[HealthCheck],
        recorder: Recorder,
        observe: Observe = lambda _name, _passed: None,
    ) -> None:
        self._address = address
        self._port = port
        self.checks = tuple(checks)
        self._recorder = recorder
        self._observe = observe
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()

    @property
    def port(self) -> int:
        """The port that it listens on; 0 while it does not."""
        return int(self._server.sockets[0].getsockname()[1]) if self._server is not None else 0

    async def start(self) -> bool:
        """Listens. False if the port is not available now: `run` tries again."""
        try:
            sock = listen(self._address, self._port)
        except (OSError, ValueError) as error:
            log.error("Health port not available", extra={"error": str(error), "retry_seconds": RETRY_SECONDS})
            return False
        self._server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), sock=sock)
        return True

    async def run(self) -> None:
        """Listens until cancelled, trying again every 5 s while the port is taken."""
        try:
            while self._server is None and not await self.start():
                with self._recorder.wait(WaitKind.BACK_OFF, on=f"health port {self._address}:{self._port}"):
                    await asyncio.sleep(RETRY_SECONDS)
            await asyncio.get_running_loop().create_future()
        finally:
            self.close()

    def close(self) -> None:
        """Stops listening and drops what is open."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self._open):
            connection.abort()

    def reply(self, head: bytes) -> tuple[Reply, bool]:
        """The answer to a request head, and whether only its head is to be sent."""
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[0]:
            return Reply(400, "400 Bad Request", last=True), False
        pairs = (line.lower().partition(":") for line in lines[1:])
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        has_body = fields.get("content-length", "0") != "0" or "transfer-encoding" in fields
        keep = words[2] == "HTTP/1.1" and "close" not in fields.get("connection", "")
        status, body = answer(words[1], self.checks, self._observe)
        return Reply(status, body, last=has_body or not keep), words[0] == "HEAD"

    def opened(self, connection: _Connection) -> bool:
        """Counts a connection; False if there are too many."""
        if len(self._open) >= CONNECTIONS:
            return False
        self._open.add(connection)
        return True

    def closed(self, connection: _Connection) -> None:
        """Forgets a connection."""
        self._open.discard(connection)


class _Connection(asyncio.Protocol):
    """One client: heads in, answers out, bounded in size and time."""

    def __init__(self, server: HealthzServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        """Resets the connection."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not isinstance: the transports of uvloop are no subclasses.
        self._transport = cast("asyncio.Transport", transport)
        if not self._server.opened(self):
            self._transport.abort()
            return
        self._close_in(HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not self._buffer:
            self._close_in(HEAD_SECONDS)
        self._buffer += data
        if len(self._buffer) > HEAD_BYTES:
            transport.write(Reply(431, "431 Request Header Fields Too Large", last=True).encode(head_only=False))
            transport.close()
            return
        while b"\r\n\r\n" in self._buffer:
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            reply, head_only = self._server.reply(head)
            transport.write(reply.encode(head_only=head_only))
            if reply.last:
                transport.close()
                return
            self._close_in(HEAD_SECONDS if self._buffer else IDLE_SECONDS)

    def pause_writing(self) -> None:
        # A client that sends requests and does not read would make the agent keep its answers.
        self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._transport = None
        self._server.closed(self)

    def _close_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.abort)
