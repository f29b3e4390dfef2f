"""Clients that mean harm, one that measures how late the event loop is, and one that only wants an answer."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

AT_ONCE = 100
"""Connections that the crowd opens at the same time."""
_PROBER = """
import socket, sys, time
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
worst = busiest = 0.0
def on_cpu():
    with open(f"/proc/{sys.argv[2]}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9
sys.stdin.reconfigure(line_buffering=True)
import select
while not select.select([sys.stdin], [], [], 0.02)[0]:
    began, used = time.monotonic(), on_cpu()
    sock.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: node\\r\\n\\r\\n")
    if not sock.recv(4096).startswith(b"HTTP/1.1 200"):
        sys.exit("not healthy")
    took = time.monotonic() - began
    worst, busiest = max(worst, took), max(busiest, min(took, on_cpu() - used))
print(worst, busiest)
"""


class LatenessProbe:
    """A process that asks the health port fifty times a second: an answer is as late as the event loop.

    On a machine with other work the agent also waits for a CPU, so the time that its main thread ran until the answer
    is measured, too: what the event loop did meanwhile."""

    def __init__(self, health_port: int, pid: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _PROBER, str(health_port), str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def worst(self) -> tuple[float, float]:
        """Ends it; the seconds that the latest answer took, and the most that the agent ran for until an answer."""
        late, busy = map(float, self._process.communicate("\n", timeout=60)[0].split())
        return late, busy

    def kill(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.communicate()


@dataclass
class Crowd:
    """Connections to one port, from many loopback addresses or from one."""

    port: int
    tls: ssl.SSLContext
    sources: int = 1
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    opened: int = 0

    async def each(self, count: int, do: Callable[[int], Awaitable[None]]) -> None:
        """Does it `count` times, many at once. What the server refuses is passed over."""
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with limit:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                    async with asyncio.timeout(5):
                        await do(number)

        await asyncio.gather(*(one(number) for number in range(count)))

    async def connect(self, number: int, *, tls: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """One connection, kept open."""
        source = f"127.{1 + number % self.sources // 250}.0.{1 + number % self.sources % 250}"
        secure = {"ssl": self.tls, "server_hostname": "localhost"} if tls else {}
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            self.port,
            local_addr=(source, 0),
            **secure,  # type: ignore[arg-type]
        )
        self.writers.append(writer)
        self.opened += 1
        return reader, writer

    async def leave(self) -> None:
        """Drops all connections."""
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()
        await asyncio.sleep(0.05)


@dataclass
class HonestClient:
    """Opens a connection ten times a second, asks once, and counts how that ends."""

    port: int
    tls: ssl.SSLContext
    answered: int = 0
    refused: int = 0
    slowest: float = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            began = time.monotonic()
            try:
                async with asyncio.timeout(30):
                    await self._ask()
                self.answered += 1
            except (OSError, EOFError, TimeoutError):
                self.refused += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
            await asyncio.sleep(0.1)

    async def _ask(self) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.tls, server_hostname="localhost"
        )
        try:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise OSError(head[:40])
        finally:
            writer.transport.abort()


@contextlib.contextmanager
def probing(health_port: int, pid: int) -> Iterator[LatenessProbe]:
    """Measures meanwhile."""
    probe = LatenessProbe(health_port, pid)
    try:
        yield probe
    finally:
        probe.kill()
