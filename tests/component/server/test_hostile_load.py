"""A server process under attack answers honest clients, in bounded memory, and its event loop is never long late.

Short form: 1,000 connections to the servers over a fake node. Long form (`scripts/test-hostile`): 10,000 connections to
a whole agent.
"""

from __future__ import annotations

import asyncio
import os
import resource
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builders.certificates import Authority
from tests.fakes.agent import agent_on
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.hostile_clients import Crowd, HonestClient, probing

LONG = os.environ.get("GLASSLET_HOSTILE") == "long"
COUNT = 10_000 if LONG else 1_000
SECONDS = 10.0 if LONG else 0.5
RSS_BYTES = 200_000_000
LATE_SECONDS = 0.25
MANY = 500
"""Source addresses of a crowd."""

# What the hostile clients leave open is their own affair.
pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore::ResourceWarning")]


@dataclass(frozen=True)
class Victim:
    """A process that serves."""

    pid: int
    port: int
    health_port: int
    stranger: ssl.SSLContext
    honest: ssl.SSLContext

    def rss(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * resource.getpagesize()


def contexts(authority: Authority, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For a client without and one with a certificate."""
    without, honest = (ssl.create_default_context(cadata=authority.pem.decode()) for _ in range(2))
    honest.load_cert_chain(*authority.issue(folder / "client", common_name="bob"))
    return without, honest


@contextmanager
def server_process(folder: Path, authority: Authority) -> Iterator[Victim]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.server_program", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        port, health_port = map(int, process.stdout.readline().split())
        yield Victim(process.pid, port, health_port, *contexts(authority, folder))
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


@contextmanager
def whole_agent(folder: Path, authority: Authority, runtime: PrivateContainerd) -> Iterator[Victim]:
    authentication = {
        "webhook": {"enabled": False},
        "anonymous": {"enabled": False},
        "x509": {"clientCAFile": str(folder / "ca.crt")},
    }
    pair = {"tlsCertFile": str(folder / "tls.crt"), "tlsPrivateKeyFile": str(folder / "tls.key")}
    with agent_on(runtime, folder / "agent", authentication=authentication, **pair) as agent:
        asyncio.run(agent.wait_until_ready())
        yield Victim(agent.pid, agent.port, agent.healthz_port, *contexts(authority, folder))


@pytest.fixture(scope="module")
def victim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    folder, authority = tmp_path_factory.mktemp("served"), Authority()
    authority.issue(folder, server=True)
    authority.write(folder / "ca.crt")
    process = (
        whole_agent(folder, authority, request.getfixturevalue("containerd"))
        if LONG
        else server_process(folder, authority)
    )
    with process as running:
        yield running
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@asynccontextmanager
async def under_watch(victim: Victim, attack: str) -> AsyncIterator[None]:
    """Holds the process to its bounds for the body."""
    honest, largest, began = HonestClient(victim.port, victim.honest), 0, victim.rss()

    async def weigh() -> None:
        nonlocal largest
        while True:
            largest = max(largest, victim.rss())
            await asyncio.sleep(0.05)

    tasks = [asyncio.create_task(weigh()), asyncio.create_task(honest.run())]
    with probing(victim.health_port, victim.pid) as probe:
        try:
            yield
            await asyncio.sleep(0.3)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        late, busy = await asyncio.to_thread(probe.worst)
    print(
        f"\n{attack}: RSS {began / 1e6:.0f} -> {largest / 1e6:.0f} MB, "
        f"loop late {late * 1000:.0f} ms at most, of its own work {busy * 1000:.0f} ms, "
        f"honest client {honest.answered} answered, {honest.refused} refused, slowest {honest.slowest * 1000:.0f} ms"
    )
    assert largest < RSS_BYTES
    assert honest.refused == 0
    assert honest.answered > 0
    assert busy < LATE_SECONDS


Attack = Callable[[Crowd, int], Awaitable[None]]


async def silent(crowd: Crowd, number: int) -> None:
    await crowd.connect(number, tls=False)


async def half_a_hello(crowd: Crowd, number: int) -> None:
    _, writer = await crowd.connect(number, tls=False)
    writer.write(b"\x16\x03\x01\x02\x00\x01\x00")


async def garbage(crowd: Crowd, number: int) -> None:
    _, writer = await crowd.connect(number, tls=False)
    writer.write(b"GET / HTTP/1.1\r\n\r\n" if number % 2 else os.urandom(300))


async def half_closed(crowd: Crowd, number: int) -> None:
    _, writer = await crowd.connect(number, tls=False)
    writer.write(b"\x16\x03\x01\x02\x00\x01")
    writer.write_eof()


async def handshake_alone(crowd: Crowd, number: int) -> None:
    await crowd.connect(number, tls=True)


async def slow_head(crowd: Crowd, number: int) -> None:
    _, writer = await crowd.connect(number, tls=True)
    writer.write(b"GET /pods HTTP/1.1\r\nX: " + b"y" * 60_000)


async def slow_body(crowd: Crowd, number: int) -> None:
    _, writer = await crowd.connect(number, tls=True)
    writer.write(b"POST /run/default/web/main HTTP/1.1\r\nHost: node\r\nContent-Length: 100000000\r\n\r\n")
    writer.write(b"z" * 50_000)


async def no_credentials(crowd: Crowd, number: int) -> None:
    reader, writer = await crowd.connect(number, tls=True)
    writer.write(b"GET /pods HTTP/1.1\r\nHost: node\r\n\r\n")
    await reader.read()


ATTACKS: list[Attack] = [
    *(silent, half_a_hello, garbage, half_closed, handshake_alone, slow_head, slow_body, no_credentials),
]


@pytest.mark.parametrize(
    ("attack", "sources"),
    [*((attack, MANY) for attack in ATTACKS), *((attack, 1) for attack in ATTACKS if LONG)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
async def test_crowd_does_not_hurt_honest_clients(victim: Victim, attack: Attack, sources: int) -> None:
    # The honest client's own address is not among those of the crowd.
    crowd = Crowd(victim.port, victim.stranger, sources)
    async with under_watch(victim, f"{COUNT} x {attack.__name__} from {sources} addresses"):
        await crowd.each(COUNT, lambda number: attack(crowd, number))
        await asyncio.sleep(SECONDS)
    await crowd.leave()


async def test_client_that_asks_without_reading_does_not_hurt_honest_clients(victim: Victim) -> None:
    crowd = Crowd(victim.port, victim.stranger, 8)

    async def flood(number: int) -> None:
        _, writer = await crowd.connect(number, tls=True)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(SECONDS):
            while True:
                writer.write(b"GET /nothing HTTP/1.1\r\nHost: node\r\n\r\n" * 500)
                await writer.drain()
                await asyncio.sleep(0)

    async with under_watch(victim, "8 x requests without reading"):
        await crowd.each(8, flood)
    await crowd.leave()


async def test_connections_that_come_and_go_leave_nothing(victim: Victim) -> None:
    crowd = Crowd(victim.port, victim.stranger, 1)

    def descriptors() -> int:
        return len(os.listdir(f"/proc/{victim.pid}/fd"))

    await asyncio.sleep(1.5)
    before = descriptors()
    for _ in range(3):
        await crowd.each(COUNT // 5, lambda number: no_credentials(crowd, number))
        await crowd.leave()
    async with asyncio.timeout(30):
        while descriptors() > before + 3:
            await asyncio.sleep(0.1)
