"""What a service manager hears, over real datagram sockets."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from glasslet.host.service_manager import BadWatchdog, ServiceManager, watchdog_period
from glasslet.server.protocols import HealthCheck
from glasslet.server.vitals import Vitals
from tests.fakes.waits import WaitLog


class Manager:
    """The other end. `address` is as it stands in NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.sock.bind("\0" + address[1:] if address.startswith("@") else address)

    def heard(self) -> list[str]:
        """All since the last call."""
        found = []
        while True:
            try:
                found.append(self.sock.recv(4096).decode())
            except BlockingIOError:
                return found


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    name = f"{tmp_path}/notify" if request.param == "path" else f"@glasslet-test-{os.getpid()}"
    made = Manager(name)
    yield made
    made.sock.close()


class Health:
    """What the agent says of itself."""

    problem: str | None = None

    def __call__(self) -> str | None:
        return self.problem


def told(address: str, health: Health, period: float | None = None) -> ServiceManager:
    return ServiceManager(address=address, period=period, problem=health, recorder=WaitLog())


def test_the_start_and_the_end_are_told(manager: Manager) -> None:
    teller = told(manager.address, Health())
    teller.ready()
    teller.stopping()
    assert manager.heard() == ["READY=1", "STOPPING=1"]


@pytest.mark.looptime
async def test_the_watchdog_hears_twice_in_a_period_but_only_of_a_healthy_agent(manager: Manager) -> None:
    health = Health()
    running = asyncio.create_task(told(manager.address, health, period=20.0).run())
    await asyncio.sleep(35)
    assert manager.heard() == ["WATCHDOG=1"] * 4  # at 0, 10, 20, 30
    health.problem = "syncloop: sync Loop took longer than expected"
    await asyncio.sleep(30)
    assert manager.heard() == []
    health.problem = None
    await asyncio.sleep(10)
    assert manager.heard() == ["WATCHDOG=1"]
    running.cancel()


@pytest.mark.looptime
async def test_a_manager_that_does_not_listen_is_tried_again_and_hurts_nothing(tmp_path: Path) -> None:
    address = f"{tmp_path}/notify"
    teller = told(address, Health(), period=20.0)
    teller.ready()
    running = asyncio.create_task(teller.run())
    await asyncio.sleep(0.5)
    manager = Manager(address)
    await asyncio.sleep(1)
    assert manager.heard() == ["WATCHDOG=1"]
    running.cancel()
    manager.sock.close()


@pytest.mark.looptime
async def test_without_a_period_there_is_no_watchdog(manager: Manager) -> None:
    await told(manager.address, Health(), period=None).run()
    assert manager.heard() == []


def test_the_period_is_in_microseconds_and_may_be_for_another_process() -> None:
    assert watchdog_period({}) is None
    assert watchdog_period({"WATCHDOG_USEC": "30000000"}) == 30.0
    assert watchdog_period({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, own_pid=7) == 30.0
    assert watchdog_period({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, own_pid=7) is None


@pytest.mark.parametrize("period", ["0", "-5", "soon", "1000000", "٣٠٠٠٠٠٠٠"])
def test_a_period_that_cannot_be_kept_is_an_error_with_the_name_and_the_value(period: str) -> None:
    with pytest.raises(BadWatchdog, match=rf"WATCHDOG_USEC is '{period}'.* above 1000000"):
        watchdog_period({"WATCHDOG_USEC": period})


def test_a_process_id_that_is_none_is_an_error() -> None:
    with pytest.raises(BadWatchdog, match="WATCHDOG_PID is 'me'"):
        watchdog_period({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "me"})


def test_the_first_check_that_fails_is_the_problem() -> None:
    vitals = Vitals()
    assert vitals.problem() is None
    vitals.add(HealthCheck("log", lambda: "logging blocked"), HealthCheck("syncloop", lambda: "late"))
    assert vitals.problem() == "log: logging blocked"


def test_nothing_of_it_is_imported_where_nobody_wants_to_be_told() -> None:
    program = "import sys, glasslet.daemon; sys.exit('glasslet.host.service_manager' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
