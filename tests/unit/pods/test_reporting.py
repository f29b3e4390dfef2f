"""A pod can be held at a station; it is recorded there afterwards."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import LoopClock
from glasslet.pods.reporting import Reporting
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station
from glasslet.record.store import Record
from glasslet.record.way import NO_STOPS, Facts, PodHolder, no_facts
from tests.fakes.pod_node import UNCOUNTED, EventLog

pytestmark = pytest.mark.looptime
POD = PodRef(namespace="default", name="web", uid=PodUID("u"))


class Gate:
    """Holds the pod at each place until the world's `go`."""

    armed = True

    def __init__(self, world: World) -> None:
        self._world = world

    async def at(self, place: str, *, container: str = "", after: bool = False, facts: Facts = no_facts) -> bool:
        self._world.held.append((place, container, after))
        await self._world.go.wait()
        return True

    def let_go(self, pod: PodRef) -> None:
        self._world.go.set()

    def let_all_go(self, why: str) -> None:
        self._world.go.set()


class World:
    """A record, and a hook that holds pods at SANDBOX until `go`."""

    def __init__(self, *, holds: bool) -> None:
        self.record = Record(clock=LoopClock())
        self.go = asyncio.Event()
        self.held: list[tuple[str, str, bool]] = []
        stops: PodHolder = Gate(self) if holds else NO_STOPS
        self.report = Reporting(
            recorder=self.record,
            events=EventLog(),
            clock=LoopClock(),
            work=UNCOUNTED,
            starts=UNCOUNTED,
            stops=stops,
        )

    async def make_sandbox(self) -> None:
        with working_for(POD):
            async with self.report.at(Station.SANDBOX, detail="attempt 0"):
                await asyncio.sleep(1)

    def stations(self) -> list[str]:
        found = self.record.of(POD.uid)
        return [str(getattr(event, "station", "")) for event in found.events] if found is not None else []


async def test_without_a_hook_a_station_is_recorded_at_once() -> None:
    world = World(holds=False)
    await world.make_sandbox()
    assert "sandbox" in world.stations()


async def test_a_held_pod_is_at_the_station_only_once_it_goes_on() -> None:
    world = World(holds=True)
    task = asyncio.create_task(world.make_sandbox())
    await asyncio.sleep(5)
    assert world.held == [(Station.SANDBOX, "", False)]
    assert "sandbox" not in world.stations()
    world.go.set()
    await task
    assert "sandbox" in world.stations()


async def test_a_pod_can_be_held_after_a_station_and_is_past_it_then() -> None:
    world = World(holds=True)
    world.go.set()
    await world.make_sandbox()
    assert world.held == [(Station.SANDBOX, "", False), (Station.SANDBOX, "", True)]


async def test_a_station_that_takes_no_time_can_be_held_as_well() -> None:
    world = World(holds=True)

    async def plan() -> None:
        with working_for(POD):
            await world.report.passed(Station.PLANNED)

    task = asyncio.create_task(plan())
    await asyncio.sleep(5)
    assert world.stations() == []
    world.go.set()
    await task
    assert "planned" in world.stations()
