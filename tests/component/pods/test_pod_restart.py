"""Containers that end or change while their pod is to run."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from glasslet.api.object import PodUID
from glasslet.exchange.facts import ProbeOutcome
from glasslet.record.stations import WaitKind
from tests.builders.pod import IMAGE, UID, api_pod, container, pod, probe, sidecar, with_image
from tests.component.pod_agent import Agent, running_agent
from tests.fakes.programs import Program, exits

pytestmark = pytest.mark.looptime


def pauses(agent: Agent, name: str = "main") -> list[float]:
    """Seconds between the end of each instance and the start of the next."""
    found = agent.runtime.instances(name)
    return [
        round((after.started_at - before.finished_at).total_seconds(), 1)
        for before, after in itertools.pairwise(found)
        if before.finished_at and after.started_at
    ]


async def test_restarts_wait_longer_and_longer() -> None:
    # behaviours.md §7: "First restart immediate, then 10 s, 20, 40, 80, 160, 300, 300, ... counted from the finish
    # time of the newest exited instance."
    async with running_agent() as agent:
        agent.runtime.program("main", exits(1, after=1))
        agent.add(pod())
        await agent.until(lambda: len(agent.runtime.instances("main")) >= 9, step=0.5, seconds=2000)
        assert pauses(agent)[:8] == [0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]


async def test_back_off_is_shown_told_and_waited_for() -> None:
    # behaviours.md §7: "In back-off: event BackOff (Warning), waiting reason CrashLoopBackOff, message `back-off <time>
    # restarting failed container=<name> pod=<pod>_<ns>(<uid>)`."
    async with running_agent() as agent:
        agent.runtime.program("main", exits(1, after=1))
        agent.add(pod())
        await agent.until(lambda: agent.events.of("BackOff"))
        await asyncio.sleep(1)
        waiting = agent.container().state.waiting
        assert waiting is not None
        assert waiting.reason == "CrashLoopBackOff"
        assert waiting.message == f"back-off 10s restarting failed container=main pod=web_default({UID})"
        text = f"Back-off restarting failed container main in pod web_default({UID})"
        assert [e.message for e in agent.events.of("BackOff")] == [text]
        (wait,) = (w for w in agent.record.live_waits() if w.kind == WaitKind.BACK_OFF)
        assert wait.container == "main"
        assert wait.until is not None


async def test_a_container_that_ran_long_enough_is_restarted_at_once_again() -> None:
    # behaviours.md §7: "The key is forgotten when the container ran longer than 10 min (2 x cap) since the last entry."
    async with running_agent() as agent:
        agent.runtime.program("main", exits(1), exits(1), exits(1, after=601), exits(1))
        agent.add(pod())
        await agent.until(lambda: len(agent.runtime.instances("main")) >= 4, step=0.5, seconds=2000)
        assert pauses(agent)[:3] == [0.0, 10.0, 0.0]


async def test_a_changed_image_restarts_the_container_without_back_off() -> None:
    # behaviours.md §2: "Killed and restarted if its hash (name + image) changed (whatever the policy)"
    async with running_agent() as agent:
        agent.runtime.add_image("docker.io/library/busybox:1.37")
        first = pod(restart_policy="Never")
        agent.add(first)
        await agent.until_running("main")
        agent.change(with_image(first, "docker.io/library/busybox:1.37"))
        await agent.until(lambda: len(agent.runtime.instances("main")) == 2)
        await agent.until_running("main")
        assert agent.container().restart_count == 1
        assert agent.events.of("Killing")[0].message == "Container main definition changed, will be restarted"


async def test_a_failed_liveness_probe_restarts_the_container() -> None:
    async with running_agent() as agent:
        agent.add(pod(container(liveness_probe=probe())))
        await agent.until_running("main")
        agent.outcomes[agent.runtime.container("main").id] = ProbeOutcome(alive=False)
        agent.wakes.wake(PodUID(UID))
        await agent.until(lambda: len(agent.runtime.instances("main")) == 2)
        await agent.until_running("main")
        assert agent.events.of("Killing")[0].message == "Container main failed liveness probe, will be restarted"


async def test_a_pod_that_runs_once_succeeds_and_gives_everything_back() -> None:
    async with running_agent() as agent:
        agent.runtime.program("main", exits(0, after=3))
        agent.add(pod(restart_policy="Never", source="api"))
        await agent.until_finished()
        assert agent.status().phase == "Succeeded"
        assert agent.node.volumes.mounted == {}
        assert agent.node.cgroups.made == set()
        assert not any(s.ready for s in agent.runtime.sandboxes.values())
        assert [c.name for c in agent.runtime.containers.values()] == ["main"], "kept for logs while the pod exists"


async def test_only_the_failed_container_runs_again_under_on_failure() -> None:
    async with running_agent() as agent:
        agent.runtime.program("a", exits(0))
        agent.runtime.program("b", exits(2), exits(0))
        agent.add(pod(container("a"), container("b"), restart_policy="OnFailure"))
        await agent.until_finished()
        assert agent.status().phase == "Succeeded"
        assert [c.exit_code for c in agent.runtime.instances("a")] == [0]
        assert [c.exit_code for c in agent.runtime.instances("b")] == [2, 0]


async def test_a_crashed_sidecar_comes_back_whatever_the_policy_of_the_pod() -> None:
    # behaviours.md §3: "Sidecars are restarted whatever the pod's restartPolicy, also while regular containers run"
    async with running_agent() as agent:
        agent.runtime.program("side", exits(1, after=5), Program())
        agent.add(pod(init=(sidecar(),), restart_policy="Never"))
        await agent.until_running("main", "side")
        await agent.until(lambda: len(agent.runtime.instances("side")) == 2)
        await agent.until_running("main", "side")
        assert len(agent.runtime.instances("main")) == 1


async def test_sidecars_are_stopped_once_the_regular_containers_are_done() -> None:
    # behaviours.md §3: "A pod whose regular containers ended by themselves stops its sidecars the same way. ... Their
    # exit code does not count for the phase."
    async with running_agent() as agent:
        agent.runtime.program("main", exits(0, after=5))
        agent.add(pod(init=(sidecar(),), restart_policy="OnFailure", source="api"))
        await agent.until_finished()
        assert agent.runtime.running() == []
        assert agent.status().phase == "Succeeded"
        assert len(agent.runtime.instances("side")) == 1


async def test_a_dead_sandbox_is_created_again_and_init_runs_again() -> None:
    # behaviours.md §2: "Event SandboxChanged when an older sandbox existed. The old pod is killed first and all init
    # container instances are removed with their logs."
    async with running_agent() as agent:
        agent.runtime.program("setup", exits(0))
        agent.add(pod(init=(container("setup"),)))
        await agent.until_running("main")
        old = agent.runtime.container("setup").id
        agent.runtime.kill_sandbox(next(iter(agent.runtime.sandboxes)))
        await agent.until(lambda: len(agent.runtime.sandboxes) == 2)
        await agent.until_running("main")
        assert old not in agent.runtime.containers
        assert sorted(s.spec.attempt for s in agent.runtime.sandboxes.values()) == [0, 1]
        assert agent.runtime.container("main").spec.attempt == 1


async def test_a_pod_past_its_deadline_fails() -> None:
    # behaviours.md §5: "activeDeadlineSeconds passed (counted from startTime): phase Failed, reason DeadlineExceeded"
    async with running_agent() as agent:
        agent.add(pod(active_deadline_seconds=60, source="api"))
        await agent.until_running("main")
        await agent.until_finished()
        assert (agent.status().phase, agent.status().reason) == ("Failed", "DeadlineExceeded")
        assert agent.status().message == "Pod was active on the node longer than the specified deadline"
        assert 60 <= agent.clock.monotonic() < 62
        assert agent.events.of("DeadlineExceeded")[0].type_ == "Normal"


async def test_a_quiet_pod_costs_no_calls() -> None:
    async with running_agent() as agent:
        agent.add(pod())
        await agent.until_running("main")
        await asyncio.sleep(1)
        before, told = len(agent.runtime.calls), len(agent.statuses.told)
        await asyncio.sleep(50)
        assert [c.subject for c in agent.runtime.calls[before:] if c.subject == IMAGE or c.subject == UID] == []
        assert len(agent.statuses.told) == told


async def test_a_container_replaced_for_its_image_never_shows_an_end_that_its_policy_makes_final() -> None:
    # behaviours §5: "A status that would take a terminated container back to running against its policy is not sent."
    async with running_agent() as agent:
        one = api_pod(restart_policy="Never")
        agent.add(one)
        await agent.until_running("main")
        agent.change(with_image(one, "busybox:2"))
        await agent.until(lambda: agent.container().restart_count == 1 and agent.container().state.running)
        told = agent.statuses.of(UID)
        assert [status for status in told if status.container_statuses[0].state.terminated] == []
