"""Runtime and network readiness over the fake runtime, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.record.store import Record
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.observed import RuntimeConditions
from tests.fakes.background import in_background
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def polled(
    runtime: FakeRuntime, health: dict[str, Callable[[], str | None]] | None = None
) -> AsyncIterator[RuntimeConditions]:
    conditions = RuntimeConditions(
        runtime=runtime, recorder=Record(clock=LoopClock()), clock=LoopClock(), health=health or {}
    )
    async with in_background(conditions.run):
        yield conditions


async def test_before_the_first_answer_nothing_is_known() -> None:
    async with polled(FakeRuntime()) as conditions:
        assert conditions.runtime_error() == "container runtime status check may not have completed yet"
        assert conditions.network_error() == "network state unknown"


async def test_a_ready_runtime_has_no_errors() -> None:
    async with polled(FakeRuntime()) as conditions:
        await conditions.first_ready.wait()
        assert conditions.runtime_error() is None
        assert conditions.network_error() is None


async def test_a_runtime_that_is_not_ready_says_so_in_the_known_words() -> None:
    runtime = FakeRuntime()
    runtime.conditions = {"RuntimeReady": False, "NetworkReady": False}
    async with polled(runtime) as conditions:
        await asyncio.sleep(1)
        assert conditions.runtime_errors() == (
            "container runtime status check may not have completed yet",
            "container runtime not ready: RuntimeReady=false reason:ScriptedNotReady message:",
        )
        assert conditions.network_error() == (
            "container runtime network not ready: NetworkReady=false reason:ScriptedNotReady message:"
        )


async def test_both_conditions_must_be_in_the_answer() -> None:
    # behaviours.md §11: "Both conditions must be in the status."
    runtime = FakeRuntime()
    runtime.conditions = {}
    async with polled(runtime) as conditions:
        await asyncio.sleep(1)
        assert "container runtime not ready: <nil>" in conditions.runtime_errors()
        assert conditions.network_error() == "container runtime network not ready: <nil>"


async def test_a_runtime_without_a_good_answer_for_30_seconds_is_down() -> None:
    # behaviours.md §11: "runtime considered down when no good status for 30 s"
    runtime = FakeRuntime()
    async with polled(runtime) as conditions:
        await asyncio.sleep(10)
        runtime.down = True
        await asyncio.sleep(24)
        assert conditions.runtime_error() is None
        await asyncio.sleep(7)
        assert conditions.runtime_error() == "container runtime is down"
        runtime.down = False
        await asyncio.sleep(6)
        assert conditions.runtime_error() is None


async def test_a_status_call_that_hangs_counts_as_down_and_is_told() -> None:
    runtime = FakeRuntime()
    async with polled(runtime) as conditions:
        await asyncio.sleep(1)
        told = asyncio.Event()
        conditions.subscribe(told.set)
        runtime.hang(Verb.STATUS)
        async with asyncio.timeout(40):
            await told.wait()
        assert conditions.runtime_error() == "container runtime is down"


async def test_the_status_is_asked_every_five_seconds() -> None:
    # behaviours.md §11: "Runtime status polled every 5 s"
    runtime = FakeRuntime()
    async with polled(runtime) as conditions:
        await conditions.first_ready.wait()
        before = len(runtime.calls)
        await asyncio.sleep(51)
        assert len(runtime.calls) - before == 10


async def test_a_runtime_that_comes_up_late_is_noticed_soon() -> None:
    runtime = FakeRuntime()
    runtime.down = True
    async with polled(runtime) as conditions:
        await asyncio.sleep(0.3)
        runtime.down = False
        await asyncio.sleep(0.7)
        assert conditions.runtime_error() is None


async def test_subscribers_are_told_of_changes_only() -> None:
    runtime = FakeRuntime()
    async with polled(runtime) as conditions:
        await conditions.first_ready.wait()
        told: list[str | None] = []
        undo = conditions.subscribe(lambda: told.append(conditions.network_error()))
        await asyncio.sleep(20)
        assert told == []
        runtime.conditions["NetworkReady"] = False
        await asyncio.sleep(20)
        assert len(told) == 1
        undo()
        runtime.conditions["NetworkReady"] = True
        await asyncio.sleep(20)
        assert len(told) == 1


async def test_further_checks_count_as_runtime_errors_and_several_are_shown_as_a_list() -> None:
    runtime = FakeRuntime()
    async with polled(runtime, {"PLEG": lambda: "pleg has yet to be successful"}) as conditions:
        await asyncio.sleep(1)
        assert conditions.runtime_error() == "PLEG is not healthy: pleg has yet to be successful"
        runtime.conditions["RuntimeReady"] = False
        await asyncio.sleep(6)
        assert conditions.runtime_error() == (
            "[PLEG is not healthy: pleg has yet to be successful, "
            "container runtime not ready: RuntimeReady=false reason:ScriptedNotReady message:]"
        )
