"""An API server that was away for long: ten seconds after its return the node knows and has told everything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from glasslet.api.meta import ObjectMeta
from glasslet.api.pod import Pod, PodSpec
from glasslet.kubeapi import paths
from glasslet.kubeapi.reflector import ObjectChange, Reflector
from tests.builders.pod import IMAGE
from tests.component.api_agent import APIAgent, api_pod, running
from tests.component.node_world import NodeWorld
from tests.component.pod_agent import Node
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.programs import exits
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.looptime


async def test_a_pod_made_after_a_long_absence_is_seen_within_ten_seconds() -> None:
    server = FakeAPIServer()
    seen: list[ObjectChange[Pod]] = []
    query = {"fieldSelector": "spec.nodeName=n1"}
    reflector = Reflector(
        client=server, path=paths.PODS, kind=Pod, query=query, on_change=seen.append, recorder=WaitLog()
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reflector.run())
        await asyncio.sleep(1)
        server.down = True
        await asyncio.sleep(90)
        server.down = False
        pod = Pod(metadata=ObjectMeta(name="web", namespace="default"), spec=PodSpec(node_name="n1"))
        await server.create(paths.namespaced("default", "pods"), pod, Pod)
        await asyncio.sleep(10)
        task.cancel()
    assert [change.new.metadata.name for change in seen if change.new] == ["web"]


AWAY, CONVERGED = 90.0, 10.0


async def test_pods_of_a_node_are_told_and_acted_on_within_ten_seconds() -> None:
    server, node = FakeAPIServer(), Node()
    names = [f"steady-{number}" for number in range(29)]
    async with running(server, node) as agent:
        for name in names:
            server.put("pods", api_pod(name))
        for name in names:
            await agent.until_ready(name)
        node.runtime.program("crashes", *[exits(4, after=2)] * 20)
        server.put("pods", api_pod("crashing", containers=[{"name": "crashes", "image": IMAGE}]))
        await agent.until(lambda: restarts(agent, "crashing") == 1)
        await asyncio.sleep(1)
        before = {name: agent.seen(name) for name in names[1:]}
        containers = {one.id for one in node.runtime.instances("main")}

        server.down = True
        await asyncio.sleep(1)
        server.delete_pod("default", names[0], 2)
        await asyncio.sleep(AWAY)
        happened = len(node.runtime.instances("crashes")) - 1
        assert happened > 1
        server.put("pods", api_pod("created"))
        server.down = False
        await asyncio.sleep(CONVERGED)

        assert agent.seen(names[0]) is None
        assert agent.condition("Ready", "created")["status"] == "True"
        assert restarts(agent, "crashing") >= happened
        assert {name: agent.seen(name) for name in names[1:]} == before
        assert len(containers & {one.id for one in node.runtime.instances("main")}) == len(names) - 1


async def test_the_node_is_heard_of_within_ten_seconds_and_stays_ready() -> None:
    world = NodeWorld()
    async with world.agent(settle=20):
        ready, heard = world.condition(), renewed(world)
        world.server.down = True
        await asyncio.sleep(AWAY)
        assert renewed(world) == heard
        world.server.down = False
        await asyncio.sleep(CONVERGED)
        assert renewed(world) > heard
        assert world.condition().last_transition_time == ready.last_transition_time


def restarts(agent: APIAgent, name: str) -> int:
    """Restarts that the server knows of."""
    statuses: list[dict[str, Any]] = (agent.seen(name) or {}).get("status", {}).get("containerStatuses", [])
    return int(statuses[0]["restartCount"]) if statuses else 0


def renewed(world: NodeWorld) -> str:
    """When the node's lease was renewed last."""
    lease = world.server.get_plain("leases", "kube-node-lease", "n1")
    assert lease is not None
    return str(lease["spec"]["renewTime"])
