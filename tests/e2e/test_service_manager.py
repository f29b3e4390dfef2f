"""The whole agent under something like systemd."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from tests.fakes.agent import Agent
from tests.fakes.containerd import PrivateContainerd

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(180)]


class Heard:
    """All that was told, in order."""

    def __init__(self, path: Path) -> None:
        self.told: list[str] = []
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._sock.bind(str(path))

    def listen(self) -> list[str]:
        """Takes what came."""
        while True:
            try:
                self.told.append(self._sock.recv(4096).decode())
            except BlockingIOError:
                return self.told

    async def until(self, message: str, times: int = 1) -> None:
        """Waits for it to be told so often."""
        async with asyncio.timeout(150):
            while self.listen().count(message) < times:
                await asyncio.sleep(0.05)

    def close(self) -> None:
        self._sock.close()


async def test_the_agent_tells_when_it_is_ready_that_it_is_well_and_that_it_ends(
    containerd: PrivateContainerd, tmp_path: Path
) -> None:
    heard = Heard(tmp_path / "notify")
    agent = Agent(tmp_path / "agent", containerd)
    agent.environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "2000000"}
    agent.start()
    try:
        await heard.until("READY=1")
        # Scripts and upstream's node suite find the agent by its name.
        look_up = await asyncio.create_subprocess_exec("pidof", "kubelet", stdout=asyncio.subprocess.PIPE)
        found, _ = await look_up.communicate()
        assert str(agent.pid) in found.decode().split()
        so_far = heard.told.count("WATCHDOG=1")
        await heard.until("WATCHDOG=1", so_far + 2)
        assert agent.terminate() == 0
        # The watchdog goes on to the end.
        assert [one for one in heard.listen() if one != "WATCHDOG=1"] == ["READY=1", "STOPPING=1"]
    finally:
        agent.kill()
        heard.close()


async def test_a_watchdog_that_cannot_be_kept_ends_the_start_with_one_line(
    containerd: PrivateContainerd, tmp_path: Path
) -> None:
    agent = Agent(tmp_path / "agent", containerd)
    agent.environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "soon"}
    agent.start()
    try:
        async with asyncio.timeout(150):
            while agent.exit_code() is None:
                await asyncio.sleep(0.1)
        assert agent.exit_code() == 1
        assert "WATCHDOG_USEC is 'soon': it has to be a number above 1000000" in agent.log.read_text()
    finally:
        agent.kill()
