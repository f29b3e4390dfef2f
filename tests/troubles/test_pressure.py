"""A node under pressure: pods that it evicts, and pods that it refuses for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from glasslet.answers.states import Rule
from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_eviction import ENDS_BADLY, is_under_memory_pressure
from tests.fakes.agent import NODE
from tests.troubles.table import Trouble, each_chosen
from tests.troubles.world import ClusterWorld, bound_pod

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

AREA = "Pressure and eviction"
MOST_OF_IT = {"memory.available": "99%"}
"""A threshold that every machine is below."""


def _with_requests(name: str) -> dict[str, object]:
    pod = bound_pod(name, ENDS_BADLY)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Mi"}}
    return pod


def _large_volume(name: str) -> dict[str, object]:
    pod = bound_pod(name, f"dd if=/dev/zero bs=1024 count=3000 of=/v/file 2>/dev/null; {ENDS_BADLY}")
    pod["spec"]["volumes"] = [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    return pod


VOLUME = Trouble(
    name="evicted-volume",
    made="a pod writes more to its emptyDir than sizeLimit allows",
    rule=Rule.FAILED,
    says=("the node evicted it: it wrote more to its emptyDir volume v than sizeLimit 1Mi allows",),
    pod=lambda _: _large_volume("evicted-volume"),
)
REFUSED = Trouble(
    name="under-pressure",
    made="a pod without requests comes to a node under memory pressure",
    rule=Rule.REJECTED,
    says=("the node is under pressure: it is low on memory",),
    pod=lambda _: bound_pod("under-pressure"),
)
EVICTED = Trouble(
    name="evicted-memory",
    made="a node is low on memory, and this pod is first in the order of eviction",
    rule=Rule.FAILED,
    says=("the node evicted it: The node was low on resource: memory",),
    pod=lambda _: _with_requests("evicted-memory"),
)
TROUBLES = (VOLUME, REFUSED, EVICTED)


@pytest.fixture
def pressed(cluster: ClusterWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterWorld]:
    """The node, by an agent that finds too little memory free."""
    cluster.agent.kill()
    agent = cluster_member(
        cluster.plane,
        cluster.containerd,
        tmp_path_factory.mktemp("e"),
        evictionHard=MOST_OF_IT,
        volumeStatsAggPeriod="1s",
    )
    try:
        with joined(cluster.plane, cluster.containerd, agent):
            yield ClusterWorld(agent, cluster.plane, cluster.containerd, cluster.registry)
    finally:
        cluster.agent.start()


@each_chosen((EVICTED,))
def test_pods_of_a_node_under_pressure_get_its_figures(pressed: ClusterWorld, trouble: Trouble) -> None:
    pressed.plane.wait_for(NODE, is_under_memory_pressure, kind="node")
    pressed.put(REFUSED)
    pressed.shows(REFUSED)
    pressed.put(trouble)
    pressed.shows(trouble)


@each_chosen((VOLUME,))
def test_a_pod_that_is_evicted_for_its_own_use_gets_the_limit(cluster: ClusterWorld, trouble: Trouble) -> None:
    cluster.put(trouble)
    cluster.shows(trouble)
