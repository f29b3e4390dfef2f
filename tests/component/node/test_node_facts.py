"""Facts of machine and runtime are read at their own pace; one that hangs only grows old."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, TypeVar

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.host.addresses import NodeAddressUnknown
from glasslet.host.threads import HostCallStuck
from glasslet.node.facts import FactKeeper
from glasslet.record.store import Record
from glasslet.runtime.cri.verbs import Verb
from tests.builders.node import MACHINE, settings
from tests.fakes.runtime import FakeRuntime

T = TypeVar("T")

pytestmark = pytest.mark.looptime


class Threads:
    """Runs calls in place; those named in `stuck` end as a thread does whose call hangs."""

    def __init__(self) -> None:
        self.stuck: set[str] = set()

    async def run(self, call: Callable[[], T], *, on: str, within: float = 30.0, **_: Any) -> T:
        if on in self.stuck:
            await asyncio.sleep(within)
            raise HostCallStuck(on, within)
        return call()


class Probe:
    """The machine as the test says."""

    def __init__(self) -> None:
        self.found: tuple[str, ...] | None = ("10.1.2.3",)
        self.size: int | None = 1000
        self.asked: list[float] = []

    def addresses(self) -> tuple[str, ...]:
        self.asked.append(asyncio.get_running_loop().time())
        if self.found is None:
            raise NodeAddressUnknown("no address")
        return self.found

    def storage(self) -> int:
        if self.size is None:
            raise OSError("gone")
        return self.size

    def hugepages(self) -> dict[int, int]:
        return {2 * 1024**2: 0}


class World:
    def __init__(self, **changes: Any) -> None:
        self.probe, self.threads, self.runtime = Probe(), Threads(), FakeRuntime()
        self.record = Record(clock=LoopClock())
        self.keeper = FactKeeper(
            settings=settings(**changes),
            machine=MACHINE,
            probe=self.probe,
            runtime=self.runtime,
            images=self.runtime,
            threads=self.threads,  # type: ignore[arg-type]
            recorder=self.record,
        )

    @asynccontextmanager
    async def running(self, settle: float = 0.1) -> AsyncIterator[FactKeeper]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.keeper.run())
            await asyncio.sleep(settle)
            try:
                yield self.keeper
            finally:
                task.cancel()

    def asked(self, verb: Verb) -> int:
        return sum(call.verb is verb for call in self.runtime.calls)


async def test_everything_is_known_once_gathered() -> None:
    async with World().running() as keeper:
        assert keeper.gathered.is_set()
        facts = keeper.facts
    assert (facts.addresses, facts.storage, facts.hugepages) == (("10.1.2.3",), 1000, {2 * 1024**2: 0})
    assert (facts.runtime_name, facts.runtime_version, len(facts.images)) == ("fake", "1.0.0", 1)


async def test_images_are_listed_every_half_minute() -> None:
    # behaviours.md §0: "imagegc.list_cache | 30 | s | image list for node status"
    world = World()
    async with world.running(settle=100):
        assert world.asked(Verb.LIST_IMAGES) == 4


async def test_images_are_not_listed_where_none_is_told() -> None:
    world = World(max_images=0)
    async with world.running(settle=100) as keeper:
        assert keeper.facts.images == ()
    assert world.asked(Verb.LIST_IMAGES) == 0


async def test_a_runtime_that_is_away_leaves_what_it_said_last() -> None:
    world = World()
    async with world.running() as keeper:
        world.runtime.down = True
        await asyncio.sleep(100)
        assert (keeper.facts.runtime_version, len(keeper.facts.images)) == ("1.0.0", 1)


async def test_a_runtime_that_hangs_holds_up_nothing_for_long() -> None:
    world = World()
    world.runtime.hang(Verb.VERSION)
    async with world.running(settle=10.1) as keeper:
        assert keeper.gathered.is_set()
        assert keeper.facts.addresses == ("10.1.2.3",)


async def test_addresses_are_looked_up_with_each_status_interval() -> None:
    world = World(update_seconds=10.0)
    async with world.running(settle=45):
        gaps = [b - a for a, b in pairwise(world.probe.asked)]
    assert all(10 <= gap <= 10.5 for gap in gaps)


async def test_another_address_is_told_at_once() -> None:
    world = World()
    told: list[tuple[str, ...] | None] = []
    world.keeper.subscribe(lambda: told.append(world.keeper.facts.addresses))
    async with world.running() as keeper:
        world.probe.found = ("10.9.9.9",)
        await asyncio.sleep(30)
        assert keeper.facts.addresses == ("10.9.9.9",)
    assert told == [("10.9.9.9",)]


@pytest.mark.parametrize("stuck", [True, False])
async def test_an_address_that_cannot_be_found_is_unknown_and_a_finding(stuck: bool) -> None:
    world = World()
    world.probe.found = None
    if stuck:
        world.threads.stuck.add("the node's addresses")
    async with world.running(settle=6) as keeper:
        assert keeper.facts.addresses is None
        assert keeper.facts.storage == 1000
    record = world.record.of(None)
    assert record is not None
    assert any("the node's addresses" in str(event) for event in record.events)


async def test_storage_is_asked_for_until_it_is_known() -> None:
    world = World()
    world.probe.size = None
    async with world.running() as keeper:
        assert keeper.facts.storage is None
        world.probe.size = 2000
        await asyncio.sleep(11)
        assert keeper.facts.storage == 2000
        world.probe.size = 3000
        await asyncio.sleep(30)
        assert keeper.facts.storage == 2000


async def test_storage_is_not_asked_for_where_it_is_no_resource() -> None:
    async with World(local_storage=False).running(settle=30) as keeper:
        assert keeper.facts.storage is None
