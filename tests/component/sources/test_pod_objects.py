"""Secrets and ConfigMaps of pods, kept by each strategy. Quotes: behaviours.md §22."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import LoopClock
from glasslet.kubeapi.errors import APIError, Forbidden, NotFound, Unavailable
from glasslet.kubeapi.objects.cached import node_ttl
from glasslet.kubeapi.objects.pod_objects import Detection, PodObjects, build_pod_objects
from glasslet.kubeapi.objects.watched import idle_limit
from glasslet.record.stations import WaitKind
from tests.builders.objects import config_map, secret
from tests.builders.podspec import pod_of
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.looptime


class Node:
    """One agent's objects before a fake API server."""

    def __init__(self, strategy: str = "Watch", ttl: Callable[[], float] = lambda: 60.0) -> None:
        self.server = FakeAPIServer()
        self.waits = WaitLog()
        self.woken: list[PodUID] = []
        self.objects: PodObjects = build_pod_objects(
            Detection(strategy=strategy, sync_frequency=60.0, on_change=self.woken.append, ttl=ttl),
            client=self.server,
            recorder=self.waits,
            clock=LoopClock(),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.objects.run())
            await asyncio.sleep(0)
            yield
            task.cancel()

    async def read(self, name: str = "db") -> str:
        return (await self.objects.secret("default", name)).data["key"].decode()


def pod(uid: str = "a", *, secrets: tuple[str, ...] = ("db",), config_maps: tuple[str, ...] = ()) -> Pod:
    return pod_of(
        {
            "envFrom": [{"secretRef": {"name": name}} for name in secrets]
            + [{"configMapRef": {"name": name}} for name in config_maps]
        },
        meta={"uid": uid, "name": uid},
    )


async def test_one_watch_serves_all_pods_that_need_the_object() -> None:
    node = Node()
    node.server.put("secrets", secret("db", key="1"))
    async with node.running():
        for uid in "abc":
            node.objects.register(pod(uid))
            node.objects.register(pod(uid))
            assert await node.read() == "1"
    assert node.server.count("WATCH") == 1
    assert node.server.count("GET") == 0


async def test_watch_asks_for_exactly_the_object_that_is_needed() -> None:
    """The node authorizer allows nothing else."""
    node = Node()
    node.server.put("secrets", secret("other", key="x"))
    node.server.put("secrets", secret("db", key="1"))
    asked: list[str] = []
    listing = node.server.list_pages

    def note(path: str, kind: type, *, query: dict[str, str]):  # type: ignore[no-untyped-def]
        asked.append(f"{path}?{query['fieldSelector']}")
        return listing(path, kind, query=query)

    node.server.list_pages = note  # type: ignore[method-assign, assignment]
    async with node.running():
        node.objects.register(pod())
        await node.read()
    assert asked == ["/api/v1/namespaces/default/secrets?metadata.name=db"]


async def test_a_change_wakes_the_pods_that_need_the_object_and_no_others() -> None:
    node = Node()
    node.server.put("secrets", secret("db", key="1"))
    node.server.put("secrets", secret("other", key="1"))
    async with node.running():
        node.objects.register(pod("a"))
        node.objects.register(pod("b"))
        node.objects.register(pod("c", secrets=("other",)))
        await node.read()
        await node.read("other")
        assert node.woken == []
        node.server.put("secrets", secret("db", key="2"))
        await asyncio.sleep(0.1)
        assert sorted(node.woken) == ["a", "b"]
        assert await node.read() == "2"


async def test_an_object_that_does_not_exist_is_told_at_once_and_wakes_its_pod_when_it_appears() -> None:
    node = Node()
    async with node.running():
        node.objects.register(pod())
        with pytest.raises(NotFound) as problem:
            await node.read()
        assert problem.value.message == 'secret "db" not found'
        await asyncio.sleep(1)
        node.server.put("secrets", secret("db", key="1"))
        await asyncio.sleep(0.1)
        assert node.woken == ["a"]
        assert await node.read() == "1"


async def test_a_deleted_object_is_not_there_any_more() -> None:
    node = Node()
    node.server.put("configmaps", config_map("settings", key="1"))
    async with node.running():
        node.objects.register(pod(secrets=(), config_maps=("settings",)))
        await node.objects.config_map("default", "settings")
        node.server.remove("configmaps", "default", "settings")
        await asyncio.sleep(0.1)
        assert node.woken == ["a"]
        with pytest.raises(NotFound, match='configmap "settings" not found'):
            await node.objects.config_map("default", "settings")


# "A read waits up to 1 s for a new watch."
async def test_a_read_waits_a_second_for_a_new_watch_and_says_for_what() -> None:
    node = Node()
    node.server.down = True
    async with node.running():
        node.objects.register(pod())
        began = asyncio.get_running_loop().time()
        with pytest.raises(Unavailable) as problem:
            await node.read()
        assert asyncio.get_running_loop().time() - began == pytest.approx(1.0)
        assert problem.value.message.startswith("failed to sync secret cache: timed out waiting for the condition")
        assert "connection refused" in problem.value.message
    assert (WaitKind.API_CALL, "Secret default/db: first read") in node.waits.ended


@pytest.mark.parametrize("error", [Forbidden, Unavailable])
async def test_an_object_that_came_too_late_for_a_read_wakes_its_pod(error: type[APIError]) -> None:
    node = Node()
    node.server.put("secrets", secret("db", key="1"))
    node.server.fail_next(error, verb="LIST", times=3)
    async with node.running():
        node.objects.register(pod())
        with pytest.raises(Unavailable):
            await node.read()
        await asyncio.sleep(30)
        assert node.woken == ["a"]
        assert await node.read() == "1"


async def test_an_older_version_s_needs_are_dropped_when_the_pod_changes() -> None:
    node = Node()
    for name in ("db", "new"):
        node.server.put("secrets", secret(name, key=name))
    async with node.running():
        node.objects.register(pod())
        await node.read()
        node.objects.register(pod(secrets=("new",)))
        assert await node.read("new") == "new"
        with pytest.raises(Unavailable, match='object "default"/"db" not registered'):
            await node.read()


async def test_the_watch_ends_with_the_last_pod() -> None:
    node = Node()
    node.server.put("secrets", secret("db", key="1"))
    async with node.running():
        for uid in ("a", "b"):
            node.objects.register(pod(uid))
        await node.read()
        node.objects.forget(PodUID("a"))
        assert await node.read() == "1"
        node.objects.forget(PodUID("b"))
        node.server.put("secrets", secret("db", key="2"))
        await asyncio.sleep(1)
        assert node.woken == []
        with pytest.raises(Unavailable, match="not registered"):
            await node.read()


# "Immutable objects stop being watched"
async def test_an_immutable_object_is_kept_without_a_watch() -> None:
    node = Node()
    node.server.put("secrets", {**secret("db", key="1"), "immutable": True})
    async with node.running():
        node.objects.register(pod())
        assert await node.read() == "1"
        await asyncio.sleep(1)
        node.server.break_watches()
        await asyncio.sleep(60)
        assert node.server.count("WATCH") == 1
        assert await node.read() == "1"


# "an unused watch stops after 5 x syncFrequency (at least 1 min)"
async def test_a_watch_without_readers_ends_and_begins_again_with_the_next_read() -> None:
    node = Node()
    node.server.put("secrets", secret("db", key="1"))
    async with node.running():
        node.objects.register(pod())
        await node.read()
        await asyncio.sleep(idle_limit(60.0) + 61)
        node.server.put("secrets", secret("db", key="2"))
        await asyncio.sleep(1)
        assert node.woken == []
        assert await node.read() == "2"
        assert node.server.count("WATCH") == 2
        node.server.put("secrets", secret("db", key="3"))
        await asyncio.sleep(1)
        assert node.woken == ["a"]


def test_short_sync_periods_leave_a_watch_at_least_a_minute() -> None:
    assert idle_limit(1.0) == 60.0
    assert idle_limit(60.0) == 300.0


async def test_a_compacted_history_loses_nothing() -> None:
    node = Node()
    node.server.put("secrets", secret("db", key="1"))
    async with node.running():
        node.objects.register(pod())
        await node.read()
        node.server.break_watches()
        node.server.put("secrets", secret("db", key="2"))
        node.server.compact()
        await asyncio.sleep(5)
        assert node.woken == ["a"]
        assert await node.read() == "2"


# "Cache: TTL from the node annotation node.alpha.kubernetes.io/ttl (else 60 s)"
async def test_cached_objects_are_asked_for_again_when_they_are_too_old() -> None:
    node = Node("Cache", ttl=lambda: 30.0)
    node.server.put("secrets", secret("db", key="1"))
    async with node.running():
        node.objects.register(pod())
        assert await node.read() == "1"
        node.server.put("secrets", secret("db", key="2"))
        await asyncio.sleep(29)
        assert await node.read() == "1"
        await asyncio.sleep(2)
        assert await node.read() == "2"
    assert node.server.count("GET") == 2
    assert node.server.count("WATCH") == 0


@pytest.mark.parametrize(
    ("annotations", "seconds"),
    [
        ({}, 60.0),
        ({"node.alpha.kubernetes.io/ttl": "0"}, 0.0),
        ({"node.alpha.kubernetes.io/ttl": "300"}, 300.0),
        ({"node.alpha.kubernetes.io/ttl": "-1"}, 60.0),
        ({"node.alpha.kubernetes.io/ttl": "soon"}, 60.0),
    ],
)
def test_time_to_live_comes_from_the_node(annotations: dict[str, str], seconds: float) -> None:
    assert node_ttl(annotations) == seconds


# "Pod creation forces fresh reads."
async def test_a_new_pod_gets_a_fresh_object_from_the_cache() -> None:
    node = Node("Cache")
    node.server.put("secrets", secret("db", key="1"))
    node.objects.register(pod("a"))
    await node.read()
    node.server.put("secrets", secret("db", key="2"))
    node.objects.register(pod("b"))
    assert await node.read() == "2"


async def test_a_cached_object_serves_while_the_server_cannot_be_asked() -> None:
    node = Node("Cache")
    node.server.put("secrets", secret("db", key="1"))
    node.objects.register(pod())
    await node.read()
    await asyncio.sleep(120)
    node.server.down = True
    assert await node.read() == "1"


async def test_a_missing_object_is_asked_for_each_time() -> None:
    node = Node("Cache")
    node.objects.register(pod())
    with pytest.raises(NotFound, match='secret "db" not found'):
        await node.read()
    node.server.put("secrets", secret("db", key="1"))
    assert await node.read() == "1"


# "Get: every sync"
async def test_strategy_get_asks_each_time() -> None:
    node = Node("Get")
    node.server.put("secrets", secret("db", key="1"))
    node.objects.register(pod())
    assert await node.read() == "1"
    node.server.put("secrets", secret("db", key="2"))
    assert await node.read() == "2"
    assert node.server.count("GET") == 2
