"""The runtime dies and comes back: the same connection works again, and containers were never touched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from glasslet.runtime.cri.connection import CRIConnection, connect
from glasslet.runtime.errors import RuntimeUnavailable
from glasslet.runtime.model import ContainerPhase
from glasslet.runtime.protocols import RuntimeHint
from tests.contract.worlds import OBEDIENT, World
from tests.fakes.call_recording import CallMetrics, CallRecorder
from tests.fakes.containerd import PrivateContainerd

pytestmark = pytest.mark.containerd

SECONDS = 60.0
"""Half of what a request may take: what fails or comes back does so long before."""


@pytest.fixture
async def connection(containerd: PrivateContainerd) -> AsyncIterator[CRIConnection]:
    """Connected to the private containerd."""
    found = await connect(containerd.endpoint, recorder=CallRecorder(), metrics=CallMetrics())
    yield found
    await found.close()


async def answered(connection: CRIConnection) -> None:
    """Waits until the connection works again."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await connection.runtime.status()
            except RuntimeUnavailable:
                await asyncio.sleep(0.05)
            else:
                return


async def exhausted(stream: AsyncIterator[RuntimeHint]) -> None:
    """Reads to the end."""
    async for _ in stream:
        pass


async def test_calls_fail_at_once_while_the_runtime_is_away_and_work_when_it_is_back(
    containerd: PrivateContainerd, connection: CRIConnection, tmp_path: Path
) -> None:
    world = World(connection.runtime, connection.images, tmp_path, containerd=containerd)
    _, pod, container = await world.run(OBEDIENT)
    before = (await world.read(pod.uid)).containers[0]
    containerd.kill()

    async with asyncio.timeout(SECONDS):
        with pytest.raises(RuntimeUnavailable):
            await connection.runtime.status()

    await asyncio.to_thread(containerd.start)
    await answered(connection)
    after = (await world.read(pod.uid)).containers[0]
    assert (after.id, after.phase, after.started_at) == (container, ContainerPhase.RUNNING, before.started_at)
    await world.clean_up()


async def subscribed(stream: AsyncIterator[RuntimeHint]) -> None:
    """Until the stream is open; before, containerd 2.x tells again of what happened in the last minutes."""
    while (await anext(stream)).kind != "subscribed":
        pass


async def test_the_hint_stream_breaks_with_the_runtime_and_can_be_opened_again(
    containerd: PrivateContainerd, connection: CRIConnection, tmp_path: Path
) -> None:
    world = World(connection.runtime, connection.images, tmp_path, containerd=containerd)
    stream = connection.runtime.hints()
    async with asyncio.timeout(SECONDS):
        await subscribed(stream)
    containerd.kill()

    with pytest.raises(RuntimeUnavailable):
        await asyncio.wait_for(exhausted(stream), SECONDS)

    await asyncio.to_thread(containerd.start)
    await answered(connection)
    again = connection.runtime.hints()
    async with asyncio.timeout(SECONDS):
        await subscribed(again)
        _, _, container = await world.run(OBEDIENT)
        async for hint in again:
            if hint.id == container:
                break
    await again.aclose()  # type: ignore[attr-defined]
    await world.clean_up()
