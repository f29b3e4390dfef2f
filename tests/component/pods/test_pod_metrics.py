"""What Prometheus hears of the work on pods."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.object import PodUID
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected
from tests.builders.pod import UID, container, pod
from tests.component.pod_agent import Agent, Node, running_agent
from tests.fakes.programs import exits

pytestmark = pytest.mark.looptime


def figures(agent: Agent, *beginnings: str) -> dict[str, float]:
    """Samples by name and labels, those that are not 0."""
    found = {}
    for line in agent.registry.expose().decode().splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith(beginnings) and "_bucket" not in name and "created" not in name and float(value):
            found[name] = float(value)
    return found


async def test_a_start_is_counted_with_its_sandbox_and_containers() -> None:
    node = Node()
    node.runtime.program("setup", exits(0, after=2))
    async with running_agent(node) as agent:
        agent.add(pod(container(), container("log"), init=(container("setup"),)))
        await agent.until_running("main", "log")
        await asyncio.sleep(1)
        assert figures(agent, "kubelet_started", "kubelet_containers_per_pod_count", "kubelet_pod_start_duration") == {
            "kubelet_started_pods_total": 1,
            'kubelet_started_containers_total{container_type="init_container"}': 1,
            'kubelet_started_containers_total{container_type="container"}': 2,
            "kubelet_containers_per_pod_count_sum": 2,
            "kubelet_containers_per_pod_count_count": 1,
            "kubelet_pod_start_duration_seconds_count": 1,
            "kubelet_pod_start_duration_seconds_sum": pytest.approx(2, abs=0.5),
        }
        counts = figures(agent, "kubelet_pod_worker")
        assert counts["kubelet_pod_worker_start_duration_seconds_count"] == 1
        assert counts['kubelet_pod_worker_duration_seconds_count{operation_type="create"}'] == 1


async def test_each_restart_is_a_container_start_and_the_pods_start_counts_once() -> None:
    node = Node()
    node.runtime.program("main", exits(1, after=1), exits(1, after=1))
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until(lambda: len(node.runtime.instances("main")) == 3)
        assert figures(agent, "kubelet_started_containers_total") == {
            'kubelet_started_containers_total{container_type="container"}': 3
        }
        assert figures(agent, "kubelet_pod_start_duration_seconds_count") == {
            "kubelet_pod_start_duration_seconds_count": 1
        }


async def test_failures_are_counted_with_the_reason_that_the_pod_shows() -> None:
    node = Node()
    node.runtime.fail(Verb.START_CONTAINER, RuntimeRejected("StartContainer", "no such file"), times=1)
    node.runtime.fail(Verb.RUN_POD_SANDBOX, RuntimeRejected("RunPodSandbox", "no address left"), times=1)
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
        found = figures(agent, "kubelet_started")
        assert found["kubelet_started_pods_total"] == 2
        assert found["kubelet_started_pods_errors_total"] == 1
        assert (
            found['kubelet_started_containers_errors_total{container_type="container",code="RunContainerError"}'] == 1
        )


async def test_the_teardown_is_counted_too() -> None:
    async with running_agent() as agent:
        agent.add(pod())
        await agent.until_running("main")
        agent.remove(pod())
        await agent.until_gone()
        found = figures(agent, "kubelet_pod_worker_duration_seconds_count")
        assert found['kubelet_pod_worker_duration_seconds_count{operation_type="kill"}'] == 1
        assert found['kubelet_pod_worker_duration_seconds_count{operation_type="terminated"}'] == 1


async def test_a_pod_that_no_source_wants_is_counted_as_orphan() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
    async with running_agent(node) as agent:
        await agent.observed.synced.wait()
        observed = agent.observed.get(PodUID(UID))
        assert observed is not None
        agent.workers.stop_orphan(observed)
        await agent.until(lambda: not node.runtime.running())
        assert figures(agent, "kubelet_orphaned_runtime_pods_total") == {"kubelet_orphaned_runtime_pods_total": 1}
