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
from glasslet.record.way import StopAt
from tests.fakes.pod_node import UNCOUNTED, EventLog

pytestmark = pytest.mark.looptime
POD = PodRef(namespace="default", name="web", uid=PodUID("u"))


class World:
    """A record, and a hook that holds pods at SANDBOX until `go`."""

    def __init__(self, *, holds: bool) -> None:
        self.record = Record(clock=LoopClock())
        self.go = asyncio.Event()
        self.held: list[tuple[Station, str]] = []
        hook: StopAt | None = self._stop_at if holds else None
        self.report = Reporting(
            recorder=self.record,
            events=EventLog(),
            clock=LoopClock(),
            work=UNCOUNTED,
            starts=UNCOUNTED,
            stop_at=hook,
        )

    async def _stop_at(self, station: Station, container: str) -> None:
        self.held.append((station, container))
        await self.go.wait()

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
    assert world.held == [(Station.SANDBOX, "")]
    assert "sandbox" not in world.stations()
    world.go.set()
    await task
    assert "sandbox" in world.stations()


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
