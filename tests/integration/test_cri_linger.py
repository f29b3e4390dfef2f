"""What a killed agent had asked of the runtime comes to its end; what a cancelled step had asked, too."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from glasslet.api.object import ContainerID
from glasslet.runtime.cri import calls
from glasslet.runtime.cri._generated import container_pb2
from glasslet.runtime.cri.connection import connect
from tests.fakes.call_recording import CallMetrics, CallRecorder
from tests.fakes.cri_server import ScriptedCRI

AGENT = """
import asyncio, sys
from glasslet.api.object import ContainerID
from glasslet.runtime.cri.connection import connect
from glasslet.runtime.cri.linger import Linger
from tests.fakes.call_recording import CallMetrics, CallRecorder

async def main(endpoint, hold):
    connection = await connect(endpoint, recorder=CallRecorder(), metrics=CallMetrics())
    linger = Linger(path=endpoint.removeprefix("unix://"), channel=connection.channels[0], hold=float(hold))
    holding = asyncio.create_task(linger.run())
    await asyncio.sleep(0)
    await connection.runtime.start_container(ContainerID("c"))
    holding.cancel()
    await connection.close()

asyncio.run(main(*sys.argv[1:]))
"""


class Starts:
    """StartContainer, as slow as the test wants it."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self.outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def start(self, _: object) -> container_pb2.StartContainerResponse:
        self.asked.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.outcome.set_result("broken off")
            raise
        self.outcome.set_result("carried out")
        return container_pb2.StartContainerResponse()


async def killed_while_starting(starts: Starts, endpoint: str, *, hold: float) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", AGENT, endpoint, str(hold))
    try:
        await starts.asked.wait()
    finally:
        process.kill()
        await process.wait()


async def test_what_a_killed_agent_asked_for_is_carried_out(tmp_path: Path) -> None:
    starts = Starts()
    async with asyncio.timeout(60), ScriptedCRI({"StartContainer": starts.start}).serving(tmp_path / "s") as endpoint:
        await killed_while_starting(starts, endpoint, hold=30)
        done, _ = await asyncio.wait({starts.outcome}, timeout=0.5)
        assert not done
        starts.go_on.set()
        assert await starts.outcome == "carried out"


async def test_the_connection_of_a_killed_agent_is_let_go_in_the_end(tmp_path: Path) -> None:
    starts = Starts()
    async with asyncio.timeout(60), ScriptedCRI({"StartContainer": starts.start}).serving(tmp_path / "s") as endpoint:
        await killed_while_starting(starts, endpoint, hold=0.5)
        assert await starts.outcome == "broken off"


async def test_a_start_whose_asker_is_cancelled_is_carried_out_first(tmp_path: Path) -> None:
    starts = Starts()
    async with asyncio.timeout(60), ScriptedCRI({"StartContainer": starts.start}).serving(tmp_path / "s") as endpoint:
        connection = await connect(endpoint, recorder=CallRecorder(), metrics=CallMetrics())
        asking = asyncio.ensure_future(connection.runtime.start_container(ContainerID("c")))
        await starts.asked.wait()
        asking.cancel()
        asyncio.get_running_loop().call_later(0.2, starts.go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await starts.outcome == "carried out"
        await connection.close()


async def test_a_start_that_does_not_end_is_given_up_with_its_asker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "LET_FINISH", 0.2)
    starts = Starts()
    async with asyncio.timeout(60), ScriptedCRI({"StartContainer": starts.start}).serving(tmp_path / "s") as endpoint:
        connection = await connect(endpoint, recorder=CallRecorder(), metrics=CallMetrics())
        asking = asyncio.ensure_future(connection.runtime.start_container(ContainerID("c")))
        await starts.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await starts.outcome == "broken off"
        await connection.close()
