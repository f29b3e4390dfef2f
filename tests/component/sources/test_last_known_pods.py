"""An agent that starts while the API server is away, with and without a memory of its pods."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from glasslet.record.events import Decided
from tests.component.api_agent import api_pod, running
from tests.component.pod_agent import Node
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.programs import Program, exits

pytestmark = pytest.mark.looptime


@pytest.fixture
def memory(tmp_path: Path) -> str:
    return str(tmp_path / "api-pods")


async def left_ready(server: FakeAPIServer, node: Node, memory: str, *names: str) -> None:
    """An agent made the pods ready and is dead now; so is the server."""
    async with running(server, node, memory=memory) as agent:
        for name in names:
            server.put("pods", api_pod(name))
        for name in names:
            await agent.until_ready(name)
        await asyncio.sleep(5)
    server.down = True


async def test_without_a_memory_the_pods_are_not_managed_until_the_server_is_back() -> None:
    server, node = FakeAPIServer(), Node()
    await left_ready(server, node, "", "web")
    async with running(server, node) as agent:
        await asyncio.sleep(60)
        assert agent.census.snapshot() == []
        assert node.runtime.running() == ["main"]


async def test_recalled_pods_are_adopted_and_no_container_is_created_again(memory: str) -> None:
    server, node = FakeAPIServer(), Node()
    await left_ready(server, node, memory, "one", "two")
    before = dict(node.runtime.containers)
    async with running(server, node, memory=memory) as agent:
        await asyncio.sleep(60)
        assert sorted(view.ref.name for view in agent.census.snapshot()) == ["one", "two"]
        assert node.runtime.containers == before
        assert not agent.desired.ready()


async def test_a_container_that_ends_meanwhile_is_restarted_and_the_server_hears_of_it_later(memory: str) -> None:
    server, node = FakeAPIServer(), Node()
    node.runtime.program("main", exits(1, after=100), Program())
    await left_ready(server, node, memory, "web")
    async with running(server, node, memory=memory) as agent:
        await agent.until(lambda: len(node.runtime.instances("main")) == 2)
        await asyncio.sleep(30)
        server.down = False
        await agent.until(lambda: ((agent.seen() or {})["status"]["containerStatuses"][0]["restartCount"]) == 1)
        await agent.until_ready()


async def test_after_its_return_the_server_changes_nothing_of_pods_that_it_still_wants(memory: str) -> None:
    server, node = FakeAPIServer(), Node()
    await left_ready(server, node, memory, "web")
    before = (server.get_plain("pods", "default", "web") or {})["status"]
    containers = dict(node.runtime.containers)
    async with running(server, node, memory=memory) as agent:
        await asyncio.sleep(20)
        server.down = False
        await agent.until(agent.desired.ready)
        await asyncio.sleep(20)
        assert node.runtime.containers == containers
        assert (agent.seen() or {})["status"] == before


async def test_a_pod_deleted_meanwhile_ends_when_the_server_is_back(memory: str) -> None:
    server, node = FakeAPIServer(), Node()
    await left_ready(server, node, memory, "web")
    server.remove("pods", "default", "web")
    async with running(server, node, memory=memory) as agent:
        await asyncio.sleep(20)
        assert node.runtime.running() == ["main"]
        server.down = False
        await agent.until(lambda: not node.runtime.running())


async def test_a_pod_that_ends_meanwhile_is_told_and_never_runs_again(memory: str) -> None:
    server, node = FakeAPIServer(), Node()
    node.runtime.program("main", exits(0, after=60))
    async with running(server, node, memory=memory) as agent:
        server.put("pods", api_pod("job", restartPolicy="Never"))
        await agent.until_ready("job")
        await asyncio.sleep(5)
    server.down = True
    async with running(server, node, memory=memory) as agent:
        await asyncio.sleep(120)
        assert [view.status.phase for view in agent.census.snapshot()] in ([], ["Succeeded"])
        server.down = False
        await agent.until(lambda: agent.phase("job") == "Succeeded")
        await asyncio.sleep(20)
        assert len(node.runtime.instances("main")) == 1


async def test_an_agent_that_gets_an_answer_recalls_nothing(memory: str) -> None:
    server, node = FakeAPIServer(), Node()
    await left_ready(server, node, memory, "web")
    server.remove("pods", "default", "web")
    server.down = False
    async with running(server, node, memory=memory) as agent:
        await asyncio.sleep(20)
        record = agent.record.of(None)
        assert record is not None
        assert [e.what for e in record.events if isinstance(e, Decided)] == []


async def test_a_damaged_memory_is_a_finding_and_no_more(memory: str) -> None:
    server, node = FakeAPIServer(), Node()
    await left_ready(server, node, memory, "web")
    Path(memory).write_bytes(b"glasslet-state sha256 0\n{}")
    async with running(server, node, memory=memory) as agent:
        await asyncio.sleep(20)
        assert len(agent.record.findings()) == 1
        assert agent.census.snapshot() == []
        server.down = False
        await agent.until_ready()


async def test_an_outage_never_empties_the_memory(memory: str) -> None:
    server, node = FakeAPIServer(), Node()
    await left_ready(server, node, memory, "web")
    for _ in range(3):
        async with running(server, node, memory=memory) as agent:
            await asyncio.sleep(2)
    async with running(server, node, memory=memory) as agent:
        await asyncio.sleep(20)
        assert len(agent.census.snapshot()) == 1
