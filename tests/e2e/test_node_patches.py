"""What a real API server makes of the node's patches: exactly the node that was meant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from glasslet.api.node import Node
from glasslet.concurrency.clock import SystemClock
from glasslet.kubeapi import paths
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.kubeconfig import load_kubeconfig
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.node.agent import NodeAgent, NodeAPI
from glasslet.node.inputs import HostFacts
from glasslet.node.pod_cidr import PodCIDRHandover
from glasslet.node.reporting import NodeReporting
from glasslet.record.store import Record
from glasslet.runtime.model import Image, RuntimeHandler
from glasslet.runtime.observed import RuntimeConditions
from tests.builders.node import facts, settings
from tests.component.node_world import ToldFacts
from tests.fakes.agent import NODE
from tests.fakes.control_plane import ControlPlane
from tests.fakes.request_metrics import Uncounted
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.timeout(300)

SECONDS = 120.0
"""Until which something is there, on a machine that is busy."""


class Told:
    """A node agent with the node's own credentials; runtime and machine are as the test says."""

    def __init__(self, plane: ControlPlane, **changes: Any) -> None:
        clock, record = SystemClock(), Record(clock=SystemClock())
        self.plane = plane
        self.client = HTTPAPIClient(
            config=load_kubeconfig(plane.node_kubeconfig),
            recorder=record,
            clock=clock,
            metrics=Uncounted(),
            limiter=RequestLimiter(qps=0, burst=1, clock=clock),
            user_agent="test",
        )
        self.runtime = FakeRuntime(clock=clock)
        self.facts = ToldFacts(facts())
        self.conditions = RuntimeConditions(runtime=self.runtime, recorder=record, clock=clock)
        self.events: list[str] = []
        self.agent = NodeAgent(
            settings=settings(name=NODE, update_seconds=1.0, **changes),
            api=NodeAPI(requests=self.client, heartbeats=self.client),
            runtime=self.conditions,
            facts=self.facts,
            pod_cidr=PodCIDRHandover(update=self.runtime.update_pod_cidr),
            report=NodeReporting(
                recorder=record, events=lambda type_, reason, message: self.events.append(reason), clock=clock
            ),
        )

    async def read(self) -> Node:
        return await self.client.get(paths.node(NODE), Node)

    async def until(self, what: Callable[[Node], bool]) -> Node:
        async with asyncio.timeout(SECONDS):
            while not what(node := await self.read()):
                await asyncio.sleep(0.05)
        return node

    async def stays_for(self, seconds: float) -> None:
        """Until nobody has changed the node for so long; controllers may have to do with a new one first."""
        async with asyncio.timeout(SECONDS):
            while (await self.read()).metadata.resource_version != await self._version_after(seconds):
                pass

    async def _version_after(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return (await self.read()).metadata.resource_version


@asynccontextmanager
async def told(plane: ControlPlane, found: HostFacts | None = None, **changes: Any) -> AsyncIterator[Told]:
    """A registered node; its agent and its connections end with the body, whatever comes of that."""
    it = Told(plane, **changes)
    if found is not None:
        it.facts.change(found)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(it.conditions.run()), group.create_task(it.agent.run())]
            try:
                async with asyncio.timeout(SECONDS):
                    await it.agent.wait_registered()
                yield it
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        await it.client.close()


@pytest.fixture(autouse=True)
def no_node_left(controlplane: ControlPlane) -> Any:
    yield
    controlplane.kubectl("delete", "node", NODE, "--ignore-not-found")


def addresses(node: Node) -> list[str]:
    return [one.address for one in node.status.addresses]


async def test_addresses_of_two_families_come_and_go_whole(controlplane: ControlPlane) -> None:
    async with told(controlplane) as it:
        for found in (("10.1.2.3", "fd00::3"), ("10.1.2.4", "fd00::4"), ("fd00::4",), ("10.1.2.3", "fd00::3")):
            it.facts.change(facts(addresses=found))
            wanted = [*found, NODE]
            await it.until(lambda node, wanted=wanted: addresses(node) == wanted)  # type: ignore[misc]


async def test_a_node_that_is_composed_again_from_the_servers_answer_has_not_changed(
    controlplane: ControlPlane,
) -> None:
    async with told(controlplane) as it:
        it.conditions.handlers = (RuntimeHandler(name="", user_namespaces=True), RuntimeHandler(name="kata"))
        it.conditions.supplemental_groups_policy = True
        it.facts.change(
            facts(
                images=(Image(id="a", digests=("a@sha256:1",), tags=("a:1",), size=7), Image(id="b", size=3)),
                hugepages={2 * 1024**2: 4 * 1024**2, 1024**3: 0},
                swap_capacity=1024,
            )
        )
        await it.until(lambda node: len(node.status.images) == 2)
        await it.stays_for(3.5)


async def test_huge_page_sizes_that_are_gone_leave_at_the_next_registration(controlplane: ControlPlane) -> None:
    async with told(controlplane) as it:
        it.facts.change(facts(hugepages={2 * 1024**2: 0, 1024**3: 0}))
        await it.until(lambda node: "hugepages-1Gi" in node.status.allocatable)
    async with told(controlplane, facts(hugepages={2 * 1024**2: 4 * 1024**2})) as again:
        node = await again.until(lambda node: "hugepages-1Gi" not in node.status.capacity)
    assert "hugepages-1Gi" not in node.status.allocatable
    assert str(node.status.capacity["hugepages-2Mi"]) == "4Mi"


async def test_conditions_of_controllers_survive(controlplane: ControlPlane) -> None:
    async with told(controlplane) as it:
        patch = '{"status":{"conditions":[{"type":"NetworkUnavailable","status":"False","reason":"RouteCreated"}]}}'
        controlplane.kubectl("patch", "node", NODE, "--subresource=status", "-p", patch)
        it.runtime.conditions["NetworkReady"] = False
        node = await it.until(
            lambda node: any(one.message.startswith("container runtime") for one in node.status.conditions)
        )
        assert {one.type for one in node.status.conditions} >= {"NetworkUnavailable", "Ready"}
        assert next(one for one in node.status.conditions if one.type == "NetworkUnavailable").reason == "RouteCreated"


async def test_labels_that_somebody_broke_are_repaired(controlplane: ControlPlane) -> None:
    async with told(controlplane) as it:
        controlplane.kubectl("label", "node", NODE, "--overwrite", "kubernetes.io/os=plan9", "team=blue")
        node = await it.until(lambda node: node.metadata.labels.get("kubernetes.io/os") == "linux")
        assert node.metadata.labels["team"] == "blue"


async def test_a_node_that_a_controller_gave_up_is_back_at_once(controlplane: ControlPlane) -> None:
    async with told(controlplane) as it:
        await it.until(lambda node: any(one.type == "Ready" and one.status == "True" for one in node.status.conditions))
        lost = '{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}]}}'
        controlplane.kubectl("patch", "node", NODE, "--subresource=status", "-p", lost)
        await it.until(lambda node: any(one.type == "Ready" and one.status == "True" for one in node.status.conditions))
        async with asyncio.timeout(SECONDS):
            while "NodeReady" not in it.events:
                await asyncio.sleep(0.05)


async def test_the_pod_network_of_the_node_reaches_the_runtime(controlplane: ControlPlane) -> None:
    async with told(controlplane) as it:
        controlplane.kubectl(
            "patch", "node", NODE, "-p", '{"spec":{"podCIDR":"10.8.0.0/24","podCIDRs":["10.8.0.0/24"]}}'
        )
        async with asyncio.timeout(SECONDS):
            while it.runtime.pod_cidr != "10.8.0.0/24":
                await asyncio.sleep(0.05)


async def test_a_node_somebody_made_by_hand_is_filled_in(controlplane: ControlPlane) -> None:
    controlplane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"team": "blue"}}})
    async with told(controlplane) as it:
        node = await it.until(lambda node: bool(node.status.addresses) and bool(node.status.capacity))
        labels = node.metadata.labels
        assert (labels["team"], labels["kubernetes.io/hostname"]) == ("blue", NODE)
        assert node.status.node_info.container_runtime_version == "containerd://2.1.0"
