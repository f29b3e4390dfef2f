"""CPU and memory of running pods change in place (behaviours.md §26)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.container import ContainerResizePolicy, ResourceRequirements
from glasslet.api.pod import Pod
from glasslet.api.pod_status import PodCondition
from glasslet.api.quantity import Quantity
from glasslet.pods.resize.decision import Decision, Deferred, Granted, Infeasible
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected
from glasslet.runtime.spec import Resources
from tests.builders.pod import UID, api_pod, container, sidecar
from tests.component.pod_agent import Agent, Node, running_agent
from tests.fakes.pod_node import FakeCgroups
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime

NO_ROOM = "Node didn't have enough resource: cpu, requested: 2000, used: 900, capacity: 1000"


def resources(cpu: str = "100m", memory: str = "64Mi") -> ResourceRequirements:
    requests = {"cpu": Quantity.parse(cpu), "memory": Quantity.parse(memory)}
    return ResourceRequirements(requests=requests)


def resized(pod: Pod, given: ResourceRequirements, generation: int = 2) -> Pod:
    first, *others = pod.spec.containers
    spec = replace(pod.spec, containers=(replace(first, resources=given), *others))
    return replace(pod, metadata=replace(pod.metadata, generation=generation), spec=spec)


def web(given: ResourceRequirements | None = None, **fields: Any) -> Pod:
    pod = api_pod(container(resources=given or resources(), **fields))
    return replace(pod, metadata=replace(pod.metadata, generation=1))


def condition(agent: Agent, kind: str) -> PodCondition | None:
    return next((c for c in agent.status().conditions if c.type == kind), None)


async def ready(agent: Agent) -> None:
    await agent.until(lambda: agent.statuses.of(UID) and agent.container().ready)


def says(decision: Decision) -> Node:
    node = Node()
    node.judge = lambda wanted, allocated, others: decision
    return node


async def test_what_is_granted_reaches_the_running_container_without_a_restart() -> None:
    # behaviours.md §26: "Desired = spec, allocated = checkpoint allocated_pods_state, actuated = actuated_pods_state,
    # actual = status resources."
    async with running_agent() as agent:
        agent.add(web())
        await ready(agent)
        instance = agent.runtime.container("main").id
        wanted = replace(resources("500m", "128Mi"), limits={"memory": Quantity.parse("256Mi")})
        agent.change(resized(web(), wanted))
        await agent.until(lambda: agent.events.of("ResizeCompleted"), seconds=1)
        given = agent.runtime.container("main").resources
        assert given is not None
        assert (given.cpu_shares, given.memory_limit_in_bytes) == (512, 256 * 2**20)
        assert [c.id for c in agent.runtime.instances("main")] == [instance]
        assert agent.node.cgroups.given[-1].spec.containers[0].resources == wanted
        assert agent.container().resources == wanted
        assert agent.container().allocated_resources == wanted.requests
        assert condition(agent, "PodResizeInProgress") is None


@pytest.mark.parametrize(
    ("old", "wanted"),
    [
        (
            ResourceRequirements(requests={"cpu": Quantity.parse("2m")}),
            ResourceRequirements(requests={"cpu": Quantity.parse("1m")}),
        ),
        (
            ResourceRequirements(limits={"cpu": Quantity.parse("10m")}),
            ResourceRequirements(limits={"cpu": Quantity.parse("5m")}),
        ),
    ],
    ids=["request", "limit"],
)
async def test_a_resize_that_a_cgroup_cannot_tell_apart_is_shown(
    old: ResourceRequirements, wanted: ResourceRequirements
) -> None:
    # KEP-1287: 2 shares are the least that a container has, and 1 ms of each 100 ms the least limit.
    async with running_agent() as agent:
        agent.add(web(old))
        await ready(agent)
        agent.change(resized(web(old), wanted))
        await agent.until(lambda: agent.container().resources == wanted, seconds=5)
        await agent.until(lambda: condition(agent, "PodResizeInProgress") is None, seconds=5)
        assert agent.events.of("ResizeCompleted")
        assert agent.container().restart_count == 0


class ObservingCgroups(FakeCgroups):
    """Notes what the container has each time the pod's own cgroup is changed."""

    def __init__(self, runtime: FakeRuntime) -> None:
        super().__init__()
        self._runtime = runtime
        self.steps: list[tuple[str, int, int]] = []

    async def widen(self, old: Pod, new: Pod) -> None:
        self._note("widen")

    async def adjust(self, pod: Pod) -> None:
        self._note("narrow")
        await super().adjust(pod)

    def _note(self, step: str) -> None:
        given = self._runtime.container("main").resources
        assert given is not None
        self.steps.append((step, given.cpu_shares, given.memory_limit_in_bytes // 2**20))


def completed(agent: Agent, times: int) -> bool:
    return len(agent.events.of("ResizeCompleted")) == times


async def test_memory_changes_before_cpu_and_the_pod_around_its_containers_first_grows_and_last_shrinks() -> None:
    # behaviours.md §26: "Order of applying: memory before CPU; growing: pod cgroup limit, pod request, then containers
    # (decreases first); shrinking: containers, then pod cgroup request, limit."
    node = Node()
    node.cgroups = cgroups = ObservingCgroups(node.runtime)
    large = replace(resources("500m"), limits={"memory": Quantity.parse("256Mi")})
    small = replace(resources("250m"), limits={"memory": Quantity.parse("128Mi")})
    async with running_agent(node) as agent:
        agent.add(web(small))
        await ready(agent)
        await node.runtime.update_container(
            node.runtime.container("main").id, Resources(cpu_shares=256, memory_limit_in_bytes=128 * 2**20)
        )
        for times, given in enumerate((large, small), 1):
            agent.change(resized(web(small), given, times + 1))
            await agent.until(partial(completed, agent, times))
    growing = [("widen", 256, 128), ("narrow", 256, 256), ("widen", 256, 256), ("narrow", 512, 256)]
    shrinking = [("widen", 512, 256), ("narrow", 512, 128), ("widen", 512, 128), ("narrow", 256, 128)]
    assert cgroups.steps == growing + shrinking


async def test_the_end_is_told_with_names_and_amounts() -> None:
    """behaviours.md §26: "At the end event ResizeCompleted `Pod resize completed: <JSON>`." """
    async with running_agent() as agent:
        agent.add(web())
        await ready(agent)
        agent.change(resized(web(), resources("200m")))
        await agent.until(lambda: agent.events.of("ResizeCompleted"))
        (event,) = agent.events.of("ResizeCompleted")
        listed = '{"containers":[{"name":"main","resources":{"requests":{"cpu":"200m","memory":"64Mi"}}}]}'
        assert event.message == f"Pod resize completed: {listed}"


async def test_what_does_not_fit_now_is_deferred_and_the_container_keeps_what_it_has() -> None:
    """behaviours.md §26: "Deferred: refused by the admission handlers now; fits later." """
    async with running_agent(says(Deferred(message=NO_ROOM))) as agent:
        agent.add(web())
        await ready(agent)
        agent.change(resized(web(), resources("2")))
        await agent.until(lambda: condition(agent, "PodResizePending"))
        pending = condition(agent, "PodResizePending")
        assert pending is not None
        assert (pending.reason, pending.message, pending.observed_generation) == ("Deferred", NO_ROOM, 2)
        assert agent.container().allocated_resources == resources().requests
        assert agent.runtime.container("main").resources is None or agent.container().resources == resources()


async def test_a_deferred_resize_is_granted_when_another_pod_is_gone() -> None:
    # behaviours.md §26: "Retries: on pod added, updated, removed, completed resize, and periodically (first 30 s, then
    # 3 min)."
    def judge(wanted: Pod, allocated: Pod, others: Sequence[Pod]) -> Decision:
        return Deferred(message=NO_ROOM) if others else Granted()

    node = Node()
    node.judge = judge
    other = api_pod(container("other"), uid="other", name="other")
    async with running_agent(node) as agent:
        agent.add(other)
        agent.add(web())
        await agent.until_running("main")
        agent.change(resized(web(), resources("2")))
        await agent.until(lambda: condition(agent, "PodResizePending"))
        agent.remove(other)
        await agent.until_gone("other")
        await agent.until(lambda: agent.events.of("ResizeCompleted"), seconds=1)
        assert condition(agent, "PodResizePending") is None
        assert agent.container().allocated_resources == resources("2").requests


async def test_what_can_never_be_is_infeasible_and_not_tried_again() -> None:
    # behaviours.md §26: "PodResizePending reasons Deferred, Infeasible"
    verdict = Infeasible(message="Node didn't have enough capacity: cpu, requested: 64000, capacity: 2000", detail="x")
    node = says(verdict)
    async with running_agent(node) as agent:
        agent.add(web())
        await ready(agent)
        agent.change(resized(web(), resources("64")))
        await agent.until(lambda: condition(agent, "PodResizePending"))
        node.judge = lambda wanted, allocated, others: Granted()
        agent.workers.retry_resizes("periodic_retry")
        await asyncio.sleep(10)
        pending = condition(agent, "PodResizePending")
        assert pending is not None
        assert (pending.reason, pending.message) == ("Infeasible", verdict.message)


async def test_a_container_that_asks_for_it_is_restarted() -> None:
    """behaviours.md §26: "RestartContainer (kill message `Container <c> resize requires restart`)." """
    policy = ContainerResizePolicy(resource_name="memory", restart_policy="RestartContainer")
    pod = web(resize_policy=(policy,))
    async with running_agent() as agent:
        agent.add(pod)
        await ready(agent)
        agent.change(resized(pod, resources(memory="128Mi")))
        await agent.until(lambda: agent.events.of("ResizeCompleted"))
        assert [c.spec.attempt for c in agent.runtime.instances("main")] == [0, 1]
        assert "Container main resize requires restart" in [e.message for e in agent.events.of("Killing")]
        assert agent.container().resources == resources(memory="128Mi")


async def test_cpu_changes_in_place_where_only_memory_asks_for_a_restart() -> None:
    policy = ContainerResizePolicy(resource_name="memory", restart_policy="RestartContainer")
    pod = web(resize_policy=(policy,))
    async with running_agent() as agent:
        agent.add(pod)
        await ready(agent)
        agent.change(resized(pod, resources("300m")))
        await agent.until(lambda: agent.events.of("ResizeCompleted"))
        assert [c.spec.attempt for c in agent.runtime.instances("main")] == [0]


async def test_a_memory_limit_below_what_is_in_use_is_not_set() -> None:
    """behaviours.md §26: "Lowering a memory limit to or below current use is refused: PodResizeInProgress with reason
    Error and message `cannot decrease memory limits: ...`." """
    node = Node(memory_in_use=100 * 2**20)
    pod = web()
    pod = resized(pod, ResourceRequirements(limits={"memory": Quantity.parse("256Mi")}), generation=1)
    async with running_agent(node) as agent:
        agent.add(pod)
        await ready(agent)
        agent.change(resized(pod, ResourceRequirements(limits={"memory": Quantity.parse("80Mi")})))
        await agent.until(lambda: (found := condition(agent, "PodResizeInProgress")) and found.reason == "Error")
        found = condition(agent, "PodResizeInProgress")
        assert found is not None
        assert found.message == (
            'cannot decrease memory limits: attempting to set container "main" memory limit (83886080) below current '
            "usage (104857600)"
        )
        assert agent.container().resources == pod.spec.containers[0].resources
        node.memory_in_use = 10 * 2**20
        await agent.until(lambda: agent.events.of("ResizeCompleted"))
        assert condition(agent, "PodResizeInProgress") is None


async def test_a_runtime_that_refuses_is_asked_again() -> None:
    # behaviours.md §26: "PodResizeInProgress no reason while working, Error on failure."
    async with running_agent() as agent:
        agent.add(web())
        await ready(agent)
        agent.runtime.fail(
            Verb.UPDATE_CONTAINER_RESOURCES, RuntimeRejected("UpdateContainerResources", "busy"), times=1
        )
        agent.change(resized(web(), resources("300m")))
        await agent.until(lambda: (found := condition(agent, "PodResizeInProgress")) and found.reason == "Error")
        await agent.until(lambda: agent.events.of("ResizeCompleted"))
        assert agent.container().resources == resources("300m")


async def test_the_runtime_is_told_of_the_whole_pod_as_far_as_it_wants_to_know() -> None:
    # behaviours.md §26: "UpdatePodSandboxResources is called best effort."
    verb, told = Verb.UPDATE_POD_SANDBOX_RESOURCES, []
    async with running_agent() as agent:
        agent.add(web())
        await ready(agent)
        for times, cpu in enumerate(("200m", "300m", "400m", "500m"), 1):
            if cpu == "300m":
                agent.runtime.fail(verb, RuntimeRejected(verb, "busy"), times=1)
            if cpu == "400m":
                agent.runtime.fail(verb, RuntimeRejected(verb, "unknown method", code="UNIMPLEMENTED"))
            agent.change(resized(web(), resources(cpu), times + 1))
            await agent.until(partial(completed, agent, times))
            (sandbox,) = agent.runtime.sandboxes.values()
            told.append(sandbox.resources.cpu_shares if sandbox.resources else 0)
        assert told == [204, 204, 204, 204]
        assert [call.verb for call in agent.runtime.calls].count(verb) == 3, "not again where it is not implemented"


async def test_a_sidecar_is_resized_too() -> None:
    pod = api_pod(init=(sidecar(resources=resources()),))
    async with running_agent() as agent:
        agent.add(pod)
        await agent.until_running("main", "side")
        (side,) = pod.spec.init_containers
        spec = replace(pod.spec, init_containers=(replace(side, resources=resources("700m")),))
        agent.change(replace(pod, spec=spec))
        await agent.until(lambda: agent.events.of("ResizeCompleted"))
        given = agent.runtime.container("side").resources
        assert given is not None
        assert given.cpu_shares == 716


async def test_a_deferred_resize_is_still_deferred_after_a_restart_of_the_agent() -> None:
    node = says(Deferred(message=NO_ROOM))
    async with running_agent(node) as agent:
        agent.add(web())
        await ready(agent)
        agent.change(resized(web(), resources("2")))
        await agent.until(lambda: condition(agent, "PodResizePending"))
    node.judge = lambda wanted, allocated, others: Granted()
    async with running_agent(node) as agent:
        agent.sources_ready = False
        agent.add(resized(web(), resources("2")))
        await ready(agent)
        assert agent.container().allocated_resources == resources().requests
        agent.sources_ready = True
        agent.workers.retry_resizes("periodic_retry")
        await agent.until(lambda: agent.events.of("ResizeCompleted"))
        assert agent.container().allocated_resources == resources("2").requests


async def test_a_resize_that_the_last_agent_did_not_finish_is_finished() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(web())
        await ready(agent)
        hang = node.runtime.hang(Verb.UPDATE_CONTAINER_RESOURCES)
        agent.change(resized(web(), resources("300m")))
        await hang.entered.wait()
        told = agent.status()
    node.runtime.heal(Verb.UPDATE_CONTAINER_RESOURCES)
    hang = node.runtime.hang(Verb.UPDATE_CONTAINER_RESOURCES)
    async with running_agent(node) as agent:
        agent.add(replace(resized(web(), resources("300m"), generation=3), status=told))
        await hang.entered.wait()
        await agent.until(lambda: condition(agent, "PodResizeInProgress"))
        assert (under_way := condition(agent, "PodResizeInProgress")) is not None
        assert under_way.observed_generation == 2
        node.runtime.heal(Verb.UPDATE_CONTAINER_RESOURCES)
        await agent.until(lambda: agent.events.of("ResizeCompleted"))
        assert (given := node.runtime.container("main").resources) is not None
        assert given.cpu_shares == 307
        assert condition(agent, "PodResizeInProgress") is None


async def test_a_resize_that_came_while_no_agent_ran_reaches_the_container() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(web())
        await ready(agent)
        told = agent.status()
    assert node.kept.last == ({}, {})
    async with running_agent(node) as agent:
        agent.add(replace(resized(web(), resources("300m")), status=told))
        await ready(agent)
        agent.workers.retry_resizes("periodic_retry")
        await agent.until(lambda: agent.events.of("ResizeCompleted"))
        given = node.runtime.container("main").resources
        assert given is not None
        assert given.cpu_shares == 307
        assert [c.spec.attempt for c in node.runtime.instances("main")] == [0]


async def test_of_a_pod_that_is_gone_nothing_is_kept() -> None:
    async with running_agent() as agent:
        agent.add(web())
        await ready(agent)
        agent.change(resized(web(), resources("300m")))
        await agent.until(lambda: agent.events.of("ResizeCompleted"))
        assert agent.node.kept.last[0]
        agent.remove(resized(web(), resources("300m")))
        await agent.until_gone(UID)
        assert agent.node.kept.last == ({}, {})
