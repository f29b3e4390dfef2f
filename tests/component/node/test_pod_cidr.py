"""The pods' network on its way to the runtime."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.meta import ObjectMeta
from glasslet.api.node import Node, NodeSpec
from glasslet.node.pod_cidr import PodCIDRHandover
from glasslet.runtime.errors import RuntimeUnavailable

pytestmark = pytest.mark.looptime


class Runtime:
    """Takes networks, but for the first `refuses` times."""

    def __init__(self, refuses: int = 0) -> None:
        self.refuses = refuses
        self.taken: list[str] = []

    async def update(self, cidr: str) -> None:
        if self.refuses:
            self.refuses -= 1
            raise RuntimeUnavailable("UpdateRuntimeConfig", "no connection")
        self.taken.append(cidr)


async def handed_over(runtime: Runtime, configured: str, *nodes: Node) -> list[str]:
    handover = PodCIDRHandover(update=runtime.update, configured=configured)
    task = asyncio.create_task(handover.run())
    await asyncio.sleep(60)
    for one in nodes:
        handover.take(one)
        await asyncio.sleep(60)
    task.cancel()
    return runtime.taken


def node(*cidrs: str) -> Node:
    return Node(metadata=ObjectMeta(name="n1"), spec=NodeSpec(pod_cidrs=cidrs))


async def test_what_the_configuration_names_is_handed_over_once() -> None:
    assert await handed_over(Runtime(), "10.9.0.0/24", node("10.9.0.0/24")) == ["10.9.0.0/24"]


async def test_a_runtime_that_is_away_gets_it_later() -> None:
    assert await handed_over(Runtime(refuses=3), "10.9.0.0/24") == ["10.9.0.0/24"]


async def test_the_node_of_the_cluster_has_the_last_word() -> None:
    # behaviours.md §12: "podCIDR from Node spec is handed to the runtime (UpdateRuntimeConfig)."
    assert await handed_over(Runtime(), "10.9.0.0/24", node("10.7.0.0/24", "fd00::/64")) == [
        "10.9.0.0/24",
        "10.7.0.0/24,fd00::/64",
    ]


async def test_nothing_is_nothing_to_hand_over() -> None:
    assert await handed_over(Runtime(), "", node()) == []
