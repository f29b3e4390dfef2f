"""Very many ConfigMaps and Secrets: the number of watches has a bound, and the objects beyond it are polled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import LoopClock
from glasslet.kubeapi.errors import NotFound
from glasslet.kubeapi.objects.pod_objects import Detection, PodObjects, build_pod_objects
from glasslet.kubeapi.objects.polled import RATE, ROUND
from glasslet.kubeapi.objects.watch_places import PER_NODE, PER_POD
from tests.builders.objects import config_map, secret
from tests.builders.podspec import pod_of
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.looptime
MANY = 400


class Node:
    """One agent's objects before a fake API server."""

    def __init__(self) -> None:
        self.server = FakeAPIServer()
        self.log = WaitLog()
        self.woken: list[PodUID] = []
        self.objects: PodObjects = build_pod_objects(
            Detection(strategy="Watch", sync_frequency=60.0, on_change=self.woken.append),
            client=self.server,
            recorder=self.log,
            clock=LoopClock(),
        )

    async def read(self, name: str) -> str:
        return (await self.objects.config_map("default", name)).data["key"]


@asynccontextmanager
async def running() -> AsyncIterator[Node]:
    node = Node()
    for name in names(MANY):
        node.server.put("configmaps", config_map(name, key="1"))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(node.objects.run())
        await asyncio.sleep(0)
        yield node
        task.cancel()


def names(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


def pod(uid: str, config_maps: list[str], secrets: tuple[str, ...] = ()) -> Pod:
    sources = [{"configMapRef": {"name": name}} for name in config_maps]
    sources += [{"secretRef": {"name": name}} for name in secrets]
    return pod_of({"envFrom": sources}, meta={"uid": uid, "name": uid})


async def test_a_pod_with_400_names_has_no_400_watches() -> None:
    async with running() as node:
        node.objects.register(pod("greedy", names(MANY)))
        assert [await node.read(name) for name in names(MANY)] == ["1"] * MANY
        await asyncio.sleep(600)
        assert node.server.count("WATCH") == PER_POD


async def test_a_greedy_pod_leaves_watches_to_others() -> None:
    async with running() as node:
        node.objects.register(pod("greedy", names(MANY)))
        node.server.put("secrets", secret("db", key="1"))
        node.objects.register(pod("other", [], ("db",)))
        await asyncio.sleep(1)
        node.server.put("secrets", secret("db", key="2"))
        await asyncio.sleep(1)
        assert node.woken == ["other"]


async def test_many_pods_share_the_watches_of_the_node() -> None:
    async with running() as node:
        for start in range(0, MANY, 20):
            node.objects.register(pod(f"p{start}", names(MANY)[start : start + 20]))
        await asyncio.sleep(1)
        assert node.server.count("WATCH") == PER_NODE


async def test_a_change_of_a_polled_object_is_seen_within_a_round() -> None:
    async with running() as node:
        node.objects.register(pod("greedy", names(MANY)))
        for name in names(MANY):
            await node.read(name)
        for name in names(MANY):
            node.server.put("configmaps", config_map(name, key="2"))
        await asyncio.sleep(max(ROUND, MANY / RATE) * 1.6)
        # One call for each object, watched or polled.
        assert node.woken == ["greedy"] * MANY
        assert {await node.read(name) for name in names(MANY)} == {"2"}


async def test_polls_keep_to_their_rate() -> None:
    async with running() as node:
        node.objects.register(pod("greedy", names(MANY)))
        for name in names(MANY):
            await node.read(name)
        before = node.server.count("GET")
        await asyncio.sleep(100)
        assert node.server.count("GET") - before <= 100 * RATE


async def test_an_object_that_is_polled_and_appears_wakes_its_pod() -> None:
    async with running() as node:
        node.objects.register(pod("greedy", [*names(MANY), "late"]))
        with pytest.raises(NotFound, match='configmap "late" not found'):
            await node.read("late")
        node.server.put("configmaps", config_map("late", key="1"))
        assert await node.read("late") == "1"


async def test_a_new_pod_gets_a_fresh_object() -> None:
    async with running() as node:
        node.objects.register(pod("greedy", names(MANY)))
        last = max(names(MANY))
        assert await node.read(last) == "1"
        node.server.put("configmaps", config_map(last, key="2"))
        node.objects.register(pod("second", names(MANY)))
        assert await node.read(last) == "2"


async def test_a_read_takes_a_place_that_became_free() -> None:
    async with running() as node:
        node.objects.register(pod("greedy", names(MANY)))
        last = max(names(MANY))
        await node.read(last)
        await asyncio.sleep(1)
        assert node.server.count("WATCH") == PER_POD
        node.objects.register(pod("greedy", [last]))
        await node.read(last)
        await asyncio.sleep(1)
        node.server.put("configmaps", config_map(last, key="2"))
        await asyncio.sleep(1)
        assert node.woken == ["greedy"]
        assert node.server.count("WATCH") == PER_POD + 1


async def test_objects_that_no_pod_reads_are_not_polled() -> None:
    async with running() as node:
        node.objects.register(pod("greedy", names(MANY)))
        for name in names(MANY):
            await node.read(name)
        await asyncio.sleep(600)
        before = node.server.count("GET")
        await asyncio.sleep(600)
        assert node.server.count("GET") == before


async def test_nothing_is_polled_once_the_pods_are_gone() -> None:
    async with running() as node:
        node.objects.register(pod("greedy", names(MANY)))
        for name in names(MANY):
            await node.read(name)
        node.objects.forget(PodUID("greedy"))
        before = node.server.count("GET")
        await asyncio.sleep(200)
        assert node.server.count("GET") == before


async def test_a_polled_object_that_cannot_be_decoded_is_a_finding_while_it_cannot() -> None:
    async with running() as node:
        node.objects.register(pod("greedy", names(MANY)))
        last = max(names(MANY))
        await node.read(last)
        node.server.put("configmaps", {**config_map(last), "data": 7})
        await asyncio.sleep(200)
        assert await node.read(last) == "1"
        assert {text.split(":")[0] for text in node.log.findings} == {f'configmaps "default/{last}" cannot be decoded'}
        node.server.put("configmaps", config_map(last, key="3"))
        await asyncio.sleep(200)
        assert (await node.read(last), node.log.findings) == ("3", [])
