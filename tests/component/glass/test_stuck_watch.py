"""Pods that make no progress have a finding with their tasks until they go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from glasslet.answers.stops import BreakRequest
from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.concurrency.clock import LoopClock
from glasslet.glass.stuck_watch import PERIOD, StuckWatch
from glasslet.record.events import ChangeObserved
from glasslet.record.history import PodRecord
from glasslet.record.recorder import working_for
from glasslet.record.stations import WaitKind
from glasslet.record.store import Record
from tests.builders.pod import UID, container, pod, post_start
from tests.component.pod_agent import Agent, running_agent
from tests.fakes.programs import Pull

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def watched() -> AsyncIterator[tuple[Agent, StuckWatch]]:
    """An agent under watch."""
    async with running_agent() as agent:
        watch = StuckWatch(workers=agent.census, record=agent.record, clock=agent.clock, held=agent.holds.held_seconds)
        task = asyncio.create_task(watch.run())
        yield agent, watch
        task.cancel()


def record_of(agent: Agent) -> PodRecord:
    found = agent.record.of(UID)
    assert found is not None
    return found


async def test_a_worker_that_hangs_without_a_name_gets_a_finding_and_a_dump_of_its_tasks() -> None:
    async with watched() as (agent, watch):
        agent.node.volumes.takes = 300.0
        agent.add(pod())
        await asyncio.sleep(60 + 3 * PERIOD)

        assert watch.stuck(PodUID(UID)) is not None
        assert record_of(agent).findings() == ("no progress: its worker's present action takes longer than 60 s",)
        dumps = {
            e.subject: e.new for e in record_of(agent).events if isinstance(e, ChangeObserved) and "task" in e.subject
        }
        (worker,) = [text for subject, text in dumps.items() if subject == f"task pod {pod_ref(pod())}"]
        assert "pods/worker.py" in worker


async def test_the_finding_is_taken_back_when_the_pod_goes_on() -> None:
    async with watched() as (agent, watch):
        agent.node.volumes.takes = 300.0
        agent.add(pod())
        await asyncio.sleep(60 + 3 * PERIOD)
        agent.node.volumes.takes = 0.0
        await agent.until_running("main")
        await asyncio.sleep(2 * PERIOD)

        assert watch.stuck(PodUID(UID)) is None
        assert record_of(agent).findings() == ()


async def test_pods_at_rest_in_back_off_and_in_long_pulls_are_not_stuck() -> None:
    async with watched() as (agent, watch):
        agent.runtime.pulls["slow"] = Pull(takes=50.0)
        agent.add(pod(container("main", image="slow"), container("side", lifecycle=post_start("x"))))
        for _ in range(100):
            await asyncio.sleep(PERIOD)
            assert watch.stuck(PodUID(UID)) is None
        assert record_of(agent).findings() == ()


class NoWorkers:
    """No worker is busy."""

    def busy(self) -> dict[PodRef, float]:
        return {}


async def test_a_named_wait_that_lasts_too_long_is_one_finding_with_the_waiting_task() -> None:
    record, ref = Record(clock=LoopClock()), PodRef("default", "web", PodUID(UID))
    watch = StuckWatch(workers=NoWorkers(), record=record, clock=LoopClock())

    async def hang() -> None:
        with working_for(ref), record.wait(WaitKind.CRI_CALL, on="CreateContainer"):
            await asyncio.sleep(400)

    hanging = asyncio.create_task(hang(), name="a call of a test")
    for _ in range(25):
        await asyncio.sleep(PERIOD)
        watch.check()
    found = record.of(ref)
    assert found is not None
    assert found.findings() == ("no progress: CreateContainer takes longer than 60 s",)
    assert [e.subject for e in found.events if isinstance(e, ChangeObserved)] == ["task a call of a test"]

    await hanging
    watch.check()
    found = record.of(ref)
    assert found is not None
    assert found.findings() == ()


async def test_a_pod_that_a_person_holds_inside_of_a_wait_is_not_stuck_then_or_later() -> None:
    async with watched() as (agent, watch):
        await agent.stops.set(BreakRequest(at="cri:StartContainer", hold_seconds=300), by="root")
        ref = pod_ref(pod())
        agent.add(pod())
        await agent.until_running("main")

        async def call() -> None:
            with working_for(ref), agent.record.wait(WaitKind.VOLUME, on="data"):
                await agent.stops.at("cri:StartContainer")
                await asyncio.sleep(60)

        task = asyncio.create_task(call())
        for _ in range(24):
            await asyncio.sleep(PERIOD)
            assert watch.stuck(PodUID(UID)) is None
        await task
