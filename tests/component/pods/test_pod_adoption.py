"""Agents that come and go: what they leave, what the next one makes of it."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.api.pod import Pod
from glasslet.pods.verbs.earlier_agent import PATIENCE
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import NameReserved, RuntimeRejected
from glasslet.runtime.model import ContainerPhase
from glasslet.runtime.spec import ContainerSpec, SandboxSpec
from tests.builders.pod import UID, api_pod, container, pod, pre_stop, sidecar, with_image
from tests.component.pod_agent import Node, running_agent
from tests.fakes.programs import Command, Program, Pull, exits
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime


async def test_an_agent_that_stops_leaves_its_containers_running() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
    await asyncio.sleep(100)
    assert node.runtime.running() == ["main"]


async def test_the_next_agent_adopts_what_runs() -> None:
    node = Node()
    async with running_agent(node) as agent:
        node.runtime.program("main", exits(1, after=1), Program())
        agent.add(pod(init=(sidecar(),)))
        await agent.until(lambda: len(node.runtime.instances("main")) == 2)
        await agent.until_running("main", "side")
    before = dict(node.runtime.containers)
    async with running_agent(node) as agent:
        agent.add(pod(init=(sidecar(),)))
        await asyncio.sleep(100)
        assert agent.runtime.containers == before
        assert agent.container("main").restart_count == 1
        assert agent.container("main").ready
        assert agent.statuses.phases(UID) == ["Running"]
        made = (Verb.CREATE_CONTAINER, Verb.RUN_POD_SANDBOX, Verb.STOP_CONTAINER)
        assert len(agent.statuses.told) == 1
        assert [e for e in agent.events.reasons() if e != "Pulled"] == []
        assert not any(call.verb in made for call in agent.runtime.calls if call.at > 100)


async def test_what_exited_while_no_agent_ran_is_restarted_as_its_next_attempt() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
    node.runtime.kill(node.runtime.container("main").id)
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
        assert [c.spec.attempt for c in node.runtime.instances("main")] == [0, 1]


async def test_a_spec_that_changed_while_no_agent_ran_restarts_its_container() -> None:
    node = Node()
    node.runtime.add_image("docker.io/library/busybox:1.37")
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
    async with running_agent(node) as agent:
        agent.add(with_image(pod(), "docker.io/library/busybox:1.37"))
        await agent.until(lambda: len(node.runtime.instances("main")) == 2)
        await agent.until_running("main")


async def test_a_pod_that_ended_while_no_agent_ran_is_not_run_again() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(api_pod(restart_policy="Never"))
        await agent.until_running("main")
    node.runtime.kill(node.runtime.container("main").id, code=0)
    async with running_agent(node) as agent:
        agent.add(api_pod(restart_policy="Never"))
        await agent.until_finished()
        assert agent.status().phase == "Succeeded"
        assert len(node.runtime.instances("main")) == 1


async def test_a_pod_that_was_removed_while_no_agent_ran_is_stopped_and_removed() -> None:
    # behaviours.md §1: "kill unknown runtime pods (grace 1 s)"
    node = Node()
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
    async with running_agent(node) as agent:
        await agent.until(lambda: not node.runtime.sandboxes, seconds=30)
        assert node.runtime.containers == {}
        assert agent.statuses.told == []


async def test_nothing_is_an_orphan_before_all_sources_are_ready() -> None:
    # behaviours.md §1: "All sources must be ready before pod directories, unknown containers, cgroups or sandboxes are
    # removed."
    node = Node()
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
    async with running_agent(node) as agent:
        agent.sources_ready = False
        await asyncio.sleep(100)
        assert node.runtime.running() == ["main"]
        agent.add(pod())
        agent.sources_ready = True
        await asyncio.sleep(100)
        assert node.runtime.running() == ["main"]


async def test_an_orphans_pre_stop_hook_runs_from_its_annotations() -> None:
    # behaviours.md §1: "A terminating pod without known config: grace 1 s, hooks only as far as the container
    # annotations hold them."
    node = Node()
    async with running_agent(node) as agent:
        agent.add(pod(container(lifecycle=pre_stop("drain"))))
        await agent.until_running("main")
    node.runtime.commands["drain"] = Command(exit_code=1)
    async with running_agent(node) as agent:
        await agent.until(lambda: not node.runtime.sandboxes, seconds=30)
        assert [e.field_path for e in agent.events.of("FailedPreStopHook")] == ["spec.containers{main}"]


async def test_an_orphan_that_is_wanted_again_starts_afresh() -> None:
    node = Node()
    node.runtime.program("main", Program(term_takes=1), Program())
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
    async with running_agent(node) as agent:
        await agent.until(lambda: agent.census.knows(PodUID(UID)))
        agent.add(pod())
        await agent.until(lambda: agent.census.snapshot())
        await agent.until_running("main")
        assert node.runtime.container("main").spec.attempt == 1


async def test_a_created_container_is_started_rather_than_made_twice() -> None:
    node = Node()
    async with running_agent(node) as agent:
        hang = node.runtime.hang(Verb.START_CONTAINER)
        agent.add(pod())
        await hang.entered.wait()
    node.runtime.heal(Verb.START_CONTAINER)
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
        assert [c.spec.attempt for c in node.runtime.instances("main")] == [0]


async def test_a_created_container_that_does_not_start_is_replaced() -> None:
    node = Node()
    async with running_agent(node) as agent:
        hang = node.runtime.hang(Verb.START_CONTAINER)
        agent.add(pod())
        await hang.entered.wait()
    node.runtime.heal(Verb.START_CONTAINER)
    broken = node.runtime.container("main").id
    node.runtime.fail(
        Verb.START_CONTAINER, RuntimeRejected("StartContainer", "broken"), times=None, only=lambda one: one == broken
    )
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
        assert node.runtime.containers[broken].phase is ContainerPhase.CREATED
        assert node.runtime.container("main").spec.attempt == 1


async def test_a_sandbox_name_reserved_without_an_owner_raises_the_attempt() -> None:
    async with running_agent() as agent:
        agent.runtime.fail(Verb.RUN_POD_SANDBOX, NameReserved("RunPodSandbox", "name is reserved"), times=None)
        agent.add(pod())
        await asyncio.sleep(PATIENCE + 1)
        agent.runtime.heal(Verb.RUN_POD_SANDBOX)
        await agent.until_running("main")
        assert [sandbox.spec.attempt for sandbox in agent.runtime.sandboxes.values()] == [1]


async def test_a_container_name_reserved_without_an_owner_raises_the_attempt() -> None:
    async with running_agent() as agent:
        taken = NameReserved("CreateContainer", "name is reserved", owner="ghost")
        agent.runtime.fail(Verb.CREATE_CONTAINER, taken, times=None)
        agent.add(pod())
        await asyncio.sleep(2 * PATIENCE + 1)
        agent.runtime.heal(Verb.CREATE_CONTAINER)
        await agent.until_running("main")
        made = agent.runtime.container("main").spec
        assert made.attempt == 2
        assert made.log_path == "main/2.log"
        assert made.annotations["io.kubernetes.container.restartCount"] == "2"


async def test_a_sandbox_that_an_earlier_agent_asked_for_and_that_appears_late_is_taken() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
    under_way = node.runtime.sandboxes.popitem()[1].spec
    node.runtime.containers.clear()
    node.runtime.fail(Verb.RUN_POD_SANDBOX, NameReserved("RunPodSandbox", "name is reserved"), times=None)
    async with running_agent(node) as agent:
        agent.add(pod())
        await asyncio.sleep(1.1)
        node.runtime.heal(Verb.RUN_POD_SANDBOX)
        await node.runtime.run_sandbox(under_way)
        await agent.until_running("main")
        assert [sandbox.spec.attempt for sandbox in node.runtime.sandboxes.values()] == [0]


async def left_in_the_middle_of_a_start(node: Node) -> ContainerID:
    """A created container; the runtime reports that it is being started, for an agent that has ended."""
    async with running_agent(node) as agent:
        hang = node.runtime.hang(Verb.START_CONTAINER)
        agent.add(pod())
        await hang.entered.wait()
    node.runtime.heal(Verb.START_CONTAINER)
    busy = RuntimeRejected("StartContainer", "container is already in starting state")
    node.runtime.fail(Verb.START_CONTAINER, busy, times=None)
    return node.runtime.container("main").id


async def test_a_start_under_way_for_an_earlier_agent_that_goes_through_is_no_failure() -> None:
    node = Node()
    instance = await left_in_the_middle_of_a_start(node)
    async with running_agent(node) as agent:
        agent.add(pod())
        await asyncio.sleep(1.1)
        node.runtime.heal(Verb.START_CONTAINER)
        await node.runtime.start_container(instance)
        await agent.until(lambda: agent.container("main").ready)
        assert [c.id for c in node.runtime.instances("main")] == [instance]
        assert agent.events.of("Failed") == []


async def test_a_start_under_way_for_an_earlier_agent_that_breaks_off_is_made_again_under_its_number() -> None:
    node = Node()
    node.runtime.program("main", Program(start_error="context canceled"), Program())
    instance = await left_in_the_middle_of_a_start(node)
    async with running_agent(node) as agent:
        agent.add(pod())
        await asyncio.sleep(1.1)
        node.runtime.heal(Verb.START_CONTAINER)
        with pytest.raises(RuntimeRejected):
            await node.runtime.start_container(instance)
        await agent.until_running("main")
        assert [c.spec.attempt for c in node.runtime.instances("main")] == [0]
        assert agent.container("main").restart_count == 0


async def test_two_ready_sandboxes_become_one() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
    twin = replace(next(iter(node.runtime.sandboxes.values())).spec, attempt=5)
    await node.runtime.run_sandbox(twin)
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until(lambda: [s.spec.attempt for s in node.runtime.sandboxes.values() if s.ready] == [6])
        await agent.until_running("main")


# -- an agent that dies anywhere -------------------------------------------------------------------------------------


async def _run_for(ticks: int) -> None:
    """Lets the loop turn so many times; whatever is under way then is cut off by the caller."""
    for _ in range(ticks):
        await asyncio.sleep(0)


def _example() -> Pod:
    return pod(container("main"), container("second"), init=(container("setup"), sidecar()))


@pytest.mark.parametrize("ticks", range(60))
async def test_an_agent_cut_off_after_any_step_leaves_a_world_that_converges(ticks: int) -> None:
    """Whatever await the agent dies in, the next one brings the pod up: nothing twice, nothing restarted."""
    node = Node()
    node.runtime.program("setup", exits(0))
    async with running_agent(node) as agent:
        agent.add(_example())
        await _run_for(ticks)
    async with running_agent(node) as agent:
        agent.add(_example())
        await agent.until_running("main", "second", "side")
        await asyncio.sleep(60)
        assert sorted(agent.runtime.running()) == ["main", "second", "side"]
        assert {c.spec.attempt for c in node.runtime.containers.values()} == {0}
        assert len(node.runtime.sandboxes) == 1
        assert agent.status().phase == "Running"
        assert all(c.restart_count == 0 for c in agent.status().container_statuses)


class _LostAnswers(FakeRuntime):
    """Requests take effect, but the answer to one verb never comes; `asked` is set then."""

    def __init__(self, verb: Verb) -> None:
        super().__init__()
        self.lost: Verb | None = verb
        self.asked = asyncio.Event()

    async def _answer(self, verb: Verb) -> None:
        if self.lost is verb:
            self.asked.set()
            await asyncio.get_running_loop().create_future()

    async def run_sandbox(self, spec: SandboxSpec) -> SandboxID:
        made = await super().run_sandbox(spec)
        await self._answer(Verb.RUN_POD_SANDBOX)
        return made

    async def create_container(self, sandbox: SandboxID, spec: ContainerSpec, pod: SandboxSpec) -> ContainerID:
        made = await super().create_container(sandbox, spec, pod)
        await self._answer(Verb.CREATE_CONTAINER)
        return made

    async def start_container(self, container: ContainerID) -> None:
        await super().start_container(container)
        await self._answer(Verb.START_CONTAINER)


@pytest.mark.parametrize("verb", [Verb.RUN_POD_SANDBOX, Verb.CREATE_CONTAINER, Verb.START_CONTAINER])
async def test_an_agent_that_died_before_the_answer_came_is_followed_by_one_that_looks(verb: Verb) -> None:
    runtime = _LostAnswers(verb)
    runtime.program("setup", exits(0))
    node = Node(runtime=runtime)
    async with running_agent(node) as agent:
        agent.add(_example())
        await runtime.asked.wait()
    runtime.lost = None
    async with running_agent(node) as agent:
        agent.add(_example())
        await agent.until_running("main", "second", "side")
        assert {c.spec.attempt for c in node.runtime.containers.values()} == {0}
        assert len(node.runtime.sandboxes) == 1


@pytest.mark.parametrize("verb", [Verb.RUN_POD_SANDBOX, Verb.CREATE_CONTAINER, Verb.START_CONTAINER])
async def test_an_agent_that_died_before_the_call_was_heard_is_followed_by_one_that_makes_it(verb: Verb) -> None:
    node = Node()
    node.runtime.program("setup", exits(0))
    async with running_agent(node) as agent:
        hang = node.runtime.hang(verb)
        agent.add(_example())
        await hang.entered.wait()
    node.runtime.heal(verb)
    async with running_agent(node) as agent:
        agent.add(_example())
        await agent.until_running("main", "second", "side")
        assert {c.spec.attempt for c in node.runtime.containers.values()} == {0}
        assert len(node.runtime.sandboxes) == 1


@pytest.mark.parametrize("ticks", range(60))
async def test_an_agent_cut_off_while_it_stops_a_pod_leaves_one_that_the_next_can_end(ticks: int) -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(_example())
        node.runtime.program("setup", exits(0))
        await agent.until_running("main", "second", "side")
        agent.remove(_example())
        await _run_for(ticks)
    async with running_agent(node) as agent:
        await agent.until(lambda: not node.runtime.sandboxes, seconds=60)
        assert node.runtime.containers == {}


async def test_agents_that_come_and_go_during_a_pull_pull_to_the_end_once_one_stays() -> None:
    node = Node()
    node.runtime.pulls["registry.local/app:1"] = Pull(takes=10)
    for _ in range(3):
        async with running_agent(node) as agent:
            agent.add(pod(container(image="registry.local/app:1")))
            await asyncio.sleep(5)
    async with running_agent(node) as agent:
        agent.add(pod(container(image="registry.local/app:1")))
        await agent.until_running("main")
        assert len(node.runtime.containers) == 1
        assert len(node.runtime.sandboxes) == 1


async def test_the_deadline_of_an_adopted_pod_counts_from_its_own_start() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(pod(active_deadline_seconds=100))
        await agent.until_running("main")
        await asyncio.sleep(60)
    async with running_agent(node) as agent:
        agent.add(pod(active_deadline_seconds=100))
        await agent.until_finished()
        assert 100 <= agent.clock.monotonic() < 103
        assert agent.status().reason == "DeadlineExceeded"


async def test_a_runtime_that_is_down_at_the_start_delays_and_breaks_nothing() -> None:
    node = Node()
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
    node.runtime.down = True
    async with running_agent(node) as agent:
        agent.add(pod())
        agent.add(pod(name="other", uid="other"))
        await asyncio.sleep(30)
        assert agent.statuses.told == []
        node.runtime.down = False
        await agent.until_running("main", uid="other")
        await asyncio.sleep(5)
        assert len(node.runtime.containers) == 2
        assert agent.container().restart_count == 0
