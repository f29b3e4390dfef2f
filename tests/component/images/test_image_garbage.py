"""The image collector over the fake runtime, in virtual time. Quotes: behaviours.md §8."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.concurrency.clock import LoopClock
from glasslet.record.events import Decided
from glasslet.record.store import Record
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected
from glasslet.runtime.garbage.image_rules import Disk, ImageLimits
from glasslet.runtime.garbage.images import ImageCollector, ImagesNotCollected, InUse
from glasslet.runtime.garbage.reporting import CollectionReporting
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod
from tests.fakes.background import in_background
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime

CAPACITY = 1000


class Node:
    """A runtime with three images of 100 bytes on a disk of 1000, of which `others` bytes are something else's."""

    def __init__(self, *, others: int = 0, **limits: Any) -> None:
        self.runtime = FakeRuntime(images=())
        for name in ("old", "middle", "new"):
            self.runtime.add_image(f"r.example/{name}:1", size=100)
        self.others = others
        self.capacity = CAPACITY
        self.named: list[str] = []
        self.users: list[str] = []
        self.events: list[tuple[str, str, str]] = []
        self.counted: list[str] = []
        self.record = Record(clock=LoopClock())
        synced = asyncio.Event()
        synced.set()
        self.collector = ImageCollector(
            images=self.runtime,
            in_use=InUse(synced, self._pods, lambda: self.named, self.runtime.sandbox_image),
            disk=self._disk,
            limits=ImageLimits(**{"minimum_age": timedelta(0), **limits}),
            metrics=self,
            report=CollectionReporting(
                recorder=self.record, clock=LoopClock(), events=lambda *event: self.events.append(event)
            ),
        )

    def collected(self, reason: str) -> None:
        self.counted.append(reason)

    async def _disk(self) -> Disk:
        used = self.others + sum(image.size for image in self.runtime.images.values())
        return Disk(capacity=self.capacity, available=self.capacity - used)

    def _pods(self) -> list[ObservedPod]:
        containers = tuple(
            ObservedContainer(
                id=ContainerID(name),
                name="main",
                attempt=0,
                phase=ContainerPhase.EXITED,
                sandbox_id=SandboxID("s"),
                created_at=LoopClock().now(),
                image_ref=self.runtime.images[f"r.example/{name}:1"].id,
            )
            for name in self.users
        )
        return [ObservedPod(uid=PodUID("u"), name="web", namespace="default", containers=containers)]

    def left(self) -> list[str]:
        return [name.removeprefix("r.example/").removesuffix(":1") for name in self.runtime.images]

    def decisions(self) -> list[Decided]:
        record = self.record.of(None)
        return [event for event in record.events if isinstance(event, Decided)] if record else []

    async def used_in_turn(self) -> None:
        """`old` was used before `middle`, `middle` before `new`; all of that is over."""
        for name in ("old", "middle", "new"):
            self.users = [name]
            with_room, self.others = self.others, 0
            await self.collector.collect()
            self.others = with_room
            await asyncio.sleep(60)
        self.users = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with in_background(self.collector.run):
            yield


# "Starts at usage >= high, frees until low; order: last used, then first detected"
async def test_only_as_much_goes_as_is_needed_the_longest_unused_first() -> None:
    node = Node(others=550)
    await node.used_in_turn()
    await node.collector.collect()
    assert node.left() == ["middle", "new"]
    assert node.counted == ["space"]
    (decision,) = node.decisions()
    assert decision.what == "image r.example/old:1 removed"
    inputs = dict(decision.inputs)
    assert inputs["why"] == "disk of images 85 % full, limit 85 %"
    assert (inputs["size"], inputs["last_used"]) == ("100", "2026-01-01T00:00:00+00:00")


async def test_below_the_high_mark_everything_stays() -> None:
    node = Node(others=540)
    await node.collector.collect()
    assert len(node.left()) == 3


# "skips used by any container (dead too), pinned"
async def test_what_is_used_named_or_what_sandboxes_are_made_of_stays_and_too_little_is_told() -> None:
    # behaviours.md §8: "FreeDiskSpaceFailed when too little was freed"
    node = Node(others=700)
    node.users, node.named, node.runtime.pause_image = ["old"], ["r.example/middle:1"], "r.example/new:1"
    with pytest.raises(ImagesNotCollected):
        await node.collector.collect()
    assert len(node.left()) == 3
    text = (
        "Failed to garbage collect required amount of images. "
        "Attempted to free 200 bytes, but only found 0 bytes eligible to free."
    )
    assert node.events == [("Warning", "FreeDiskSpaceFailed", text)]


async def test_an_image_that_gets_a_container_during_the_collection_stays() -> None:
    node = Node(others=700)
    await node.used_in_turn()
    node.runtime.latency[Verb.REMOVE_IMAGE] = 10
    collecting = asyncio.ensure_future(node.collector.collect())
    await asyncio.sleep(5)
    node.users = ["middle"]
    await collecting
    assert node.left() == ["middle"]


async def test_an_old_image_goes_though_there_is_room() -> None:
    node = Node(maximum_age=timedelta(hours=1))
    async with node.running():
        node.users = ["new"]
        await asyncio.sleep(3599)
        assert len(node.left()) == 3
        await asyncio.sleep(302)
        assert node.left() == ["new"]
    assert node.counted == ["age", "age"]
    assert "unused for more than 1:00:00" in dict(node.decisions()[0].inputs)["why"]


# "Image GC every 5 min; ... off when the high threshold is 100 and the max age 0."
async def test_it_looks_every_five_minutes() -> None:
    # behaviours.md §8: "Image GC every 5 min; detection every 5 min"
    node = Node()
    async with node.running():
        await asyncio.sleep(1)
        node.others = 700
        await asyncio.sleep(298)
        assert len(node.left()) == 3
        await asyncio.sleep(2)
        assert len(node.left()) == 1


async def test_switched_off_it_removes_nothing_by_itself_but_still_knows_the_order() -> None:
    node = Node(others=700, high_percent=100)
    async with node.running():
        node.users = ["new"]
        await asyncio.sleep(900)
        node.users = []
        await asyncio.sleep(900)
        assert len(node.left()) == 3
        assert node.events == []
    assert await node.collector.delete_unused() == 300
    assert [decision.what.split(":")[0] for decision in node.decisions()][-1] == "image r.example/new"


# "Event ImageGCFailed only on repeated failure; ... InvalidDiskCapacity for capacity 0."
async def test_failures_are_told_from_the_second_in_a_row_on() -> None:
    node = Node()
    node.capacity = 0
    invalid = ("Warning", "InvalidDiskCapacity", "invalid capacity 0 on image filesystem")
    failed = ("Warning", "ImageGCFailed", "invalid capacity 0 on image filesystem")
    async with node.running():
        await asyncio.sleep(1)
        assert node.events == [invalid]
        await asyncio.sleep(300)
        assert node.events == [invalid, invalid, failed]
        node.capacity = CAPACITY
        await asyncio.sleep(300)
        node.capacity = 0
        await asyncio.sleep(300)
        assert node.events == [invalid, invalid, failed, invalid]


async def test_an_image_that_cannot_be_removed_does_not_keep_the_others() -> None:
    node = Node(others=550)
    await node.used_in_turn()
    node.runtime.fail(Verb.REMOVE_IMAGE, RuntimeRejected("RemoveImage", "device busy"), times=1)
    with pytest.raises(ImagesNotCollected, match=r"wanted to free 50 bytes, but freed 100 bytes .*: device busy"):
        await node.collector.collect()
    assert node.left() == ["old", "new"]


async def test_a_runtime_that_does_not_answer_fails_one_collection_and_no_more() -> None:
    node = Node(others=700)
    node.runtime.fail(Verb.LIST_IMAGES, RuntimeRejected("ListImages", "no"), times=1)
    async with node.running():
        await asyncio.sleep(301)
        assert len(node.left()) == 1
    assert node.events == []


async def test_nothing_goes_while_it_is_not_known_what_sandboxes_are_made_of() -> None:
    node = Node(others=700)
    node.runtime.fail(Verb.STATUS, RuntimeRejected("Status", "no"), times=1)
    with pytest.raises(RuntimeRejected):
        await node.collector.collect()
    assert len(node.left()) == 3


@pytest.mark.parametrize(("by_handler", "told"), [(True, 1), (False, 0)])
async def test_an_image_without_an_id_is_left_alone(by_handler: bool, told: int) -> None:
    node = Node(others=550, by_handler=by_handler)
    broken = replace(node.runtime.add_image("r.example/broken:1", size=100), id="", runtime_handler="runc")
    node.runtime.images["r.example/broken:1"] = broken
    await node.collector.collect()
    assert "broken" in node.left()
    text = "ImageID is not valid, skipping, image: ,runc"
    assert node.events.count(("Warning", "InvalidImageID", text)) == told
