"""Pods that go: deleted, removed, killed, replaced."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.object import PodUID
from glasslet.api.volume import Volume
from glasslet.exchange.facts import StatusOverride
from glasslet.pods.lifecycle import Terminating
from glasslet.record.stations import WaitKind
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected
from tests.builders.pod import UID, api_pod, container, deleted, pod, pre_stop, pre_stop_sleep, sidecar
from tests.component.pod_agent import Agent, running_agent
from tests.fakes.programs import IGNORES_TERM, Command, Program, Pull

pytestmark = pytest.mark.looptime


def ended_after(agent: Agent, name: str, since: float) -> float:
    """Seconds from `since` (loop time) to the end of the container."""
    finished = agent.runtime.container(name).finished_at
    assert finished is not None
    return round((finished - agent.clock.start).total_seconds() - since, 1)


async def test_a_pods_end_takes_one_read_of_what_was_stopped_and_one_of_what_is_left() -> None:
    async with running_agent() as agent:
        one = pod()
        agent.add(one)
        await agent.until_running("main")
        await asyncio.sleep(2)
        before = len(agent.runtime.calls)
        agent.remove(one)
        await agent.until_gone()
        await asyncio.sleep(5)
        whole = [Verb.LIST_POD_SANDBOX, Verb.LIST_CONTAINERS]
        assert [call.verb for call in agent.runtime.calls[before:]] == [
            Verb.STOP_CONTAINER,
            Verb.CONTAINER_STATUS,
            Verb.STOP_POD_SANDBOX,
            *whole,
            Verb.REMOVE_CONTAINER,
            Verb.REMOVE_POD_SANDBOX,
            *whole,
        ]


async def test_a_removed_pod_leaves_nothing_behind() -> None:
    # behaviours.md §4: "Every stop has event Killing, `Stopping container <name>` or a longer reason"
    async with running_agent() as agent:
        one = pod()
        agent.add(one)
        await agent.until_running("main")
        agent.remove(one)
        await agent.until_gone()
        assert agent.runtime.containers == {}
        assert agent.runtime.sandboxes == {}
        assert agent.node.volumes.mounted == {}
        assert agent.node.cgroups.made == set()
        assert agent.node.files.pods == set()
        assert agent.node.files.links == set()
        assert [e.message for e in agent.events.of("Killing")] == ["Stopping container main"]


async def test_a_container_that_ignores_term_is_killed_after_its_grace() -> None:
    # behaviours.md §4: "SIGKILL after grace is done by the runtime."
    async with running_agent() as agent:
        agent.runtime.program("main", IGNORES_TERM)
        one = pod(termination_grace_period_seconds=7)
        agent.add(one)
        await agent.until_running("main")
        began = agent.clock.monotonic()
        agent.remove(one)
        await asyncio.sleep(1)
        assert WaitKind.GRACE_PERIOD in {wait.kind for wait in agent.record.live_waits()}
        await agent.until_gone()
        assert 7 <= agent.clock.monotonic() - began < 8


async def test_the_smaller_grace_of_a_deletion_counts() -> None:
    # behaviours.md §4: "Grace = smallest of deletionGracePeriodSeconds, the override ... and any value used before;
    # with none of them the spec value"
    async with running_agent() as agent:
        agent.runtime.program("main", IGNORES_TERM)
        one = api_pod()
        agent.add(one)
        await agent.until_running("main")
        began = agent.clock.monotonic()
        agent.delete(deleted(one, grace=5))
        await agent.until_finished()
        assert 5 <= agent.clock.monotonic() - began < 6


@pytest.mark.parametrize(("later", "takes"), [(3, 3), (60, 8)])
async def test_a_later_deletion_may_shorten_the_grace_and_never_lengthen_it(later: int, takes: int) -> None:
    # behaviours.md §4: "A shorter deletion grace lowers the grace of the worker; ... A longer one is ignored."
    async with running_agent() as agent:
        agent.runtime.program("main", IGNORES_TERM)
        one = api_pod(container(lifecycle=pre_stop_sleep(100)))
        agent.add(one)
        await agent.until_running("main")
        began = agent.clock.monotonic()
        agent.delete(deleted(one, grace=6))
        agent.delete(deleted(one, grace=later))
        await agent.until_finished()
        assert takes <= agent.clock.monotonic() - began < takes + 3


async def test_a_hook_begins_even_when_the_pod_is_deleted_by_force() -> None:
    # behaviours.md §4: "As the worker minimum is 1 s the hook starts even at a forced delete."
    async with running_agent() as agent:
        one = api_pod(container(lifecycle=pre_stop("drain")))
        agent.add(one)
        await agent.until_running("main")
        agent.delete(deleted(one, grace=0))
        await agent.until_finished()
        assert Verb.EXEC_SYNC in [call.verb for call in agent.runtime.calls]


async def test_volumes_stay_as_long_as_a_container_runs() -> None:
    # behaviours.md §22: "Unmount after all containers stopped"
    async with running_agent() as agent:
        agent.runtime.program("main", Program(term_takes=5))
        one = pod(volumes=(Volume(name="data"),))
        agent.add(one)
        await agent.until_running("main")
        agent.remove(one)
        await asyncio.sleep(4)
        assert set(agent.node.volumes.mounted[PodUID(UID)]) == {"data"}
        await agent.until_gone()
        assert agent.node.volumes.mounted == {}


async def test_a_deleted_pod_that_still_runs_becomes_failed_and_is_finished() -> None:
    # behaviours.md §4: "Phase at the end: Succeeded or Failed from exit codes; a non-static pod still Pending or
    # Running becomes Failed."
    async with running_agent() as agent:
        one = api_pod()
        agent.add(one)
        await agent.until_running("main")
        agent.delete(deleted(one, grace=30))
        await agent.until_finished()
        assert agent.statuses.finished[UID].phase == "Failed"
        assert len(agent.runtime.containers) == 1, "its remains stay until the source lets go"
        agent.remove(one)
        await agent.until_gone()
        assert agent.runtime.containers == {}


async def test_a_terminal_phase_is_withheld_while_containers_run() -> None:
    # behaviours.md §4: "A terminal phase is withheld from the API while containers may still run." The verdict is
    # published at once; nothing counts as final before the containers stopped.
    async with running_agent() as agent:
        agent.runtime.program("main", Program(term_takes=5))
        one = api_pod()
        agent.add(one)
        await agent.until_running("main")
        agent.delete(deleted(one, grace=30))
        await asyncio.sleep(2)
        assert agent.status().phase == "Running"
        assert UID not in agent.statuses.finished


async def test_a_pre_stop_hook_runs_first_and_eats_the_grace() -> None:
    # behaviours.md §4: "preStop runs first and its time in whole seconds is subtracted. Then StopContainer with the
    # rest, never below 2 s."
    async with running_agent() as agent:
        agent.runtime.program("main", Program(ignores_term=True, commands={"drain": Command(takes=4)}))
        one = pod(container(lifecycle=pre_stop("drain")), termination_grace_period_seconds=10)
        agent.add(one)
        await agent.until_running("main")
        began = agent.clock.monotonic()
        agent.remove(one)
        await asyncio.sleep(1)
        assert WaitKind.HOOK in {wait.kind for wait in agent.record.live_waits()}
        await agent.until_gone()
        assert 10 <= agent.clock.monotonic() - began < 11


async def test_a_pre_stop_hook_that_outlasts_the_grace_is_abandoned() -> None:
    # behaviours.md §4: "Hook kinds: ... sleep (cut short by grace)"
    # behaviours.md §4: "preStop still running at the end of grace is abandoned, not killed."
    async with running_agent() as agent:
        agent.runtime.program("main", IGNORES_TERM)
        one = pod(container(lifecycle=pre_stop_sleep(100)), termination_grace_period_seconds=5)
        agent.add(one)
        await agent.until_running("main")
        began = agent.clock.monotonic()
        agent.remove(one)
        await agent.until_gone()
        assert 7 <= agent.clock.monotonic() - began < 8, "5 s of hook, 2 s that every container gets"


async def test_a_failed_pre_stop_hook_is_told_without_its_output_and_the_stop_goes_on() -> None:
    # behaviours.md §4: "Hook output is not kept; ... preStop failure: event FailedPreStopHook, stop goes on."
    async with running_agent() as agent:
        agent.runtime.commands["drain"] = Command(exit_code=1, stdout=b"secret")
        one = pod(container(lifecycle=pre_stop("drain")))
        agent.add(one)
        await agent.until_running("main")
        agent.remove(one)
        await agent.until_gone()
        assert [e.message for e in agent.events.of("FailedPreStopHook")] == ["PreStopHook failed"]


async def test_sidecars_stop_after_the_regular_containers_in_reverse_order() -> None:
    # behaviours.md §3: "Stop order: preStop hooks of all containers start at once; regular containers get the signal
    # right after their hook"
    # behaviours.md §3: "sidecars wait for all regular containers, then stop in reverse spec order"
    async with running_agent() as agent:
        agent.runtime.program("main", Program(term_takes=3))
        agent.runtime.program("a", Program(term_takes=2))
        agent.runtime.program("b", Program(term_takes=1))
        one = api_pod(init=(sidecar("a"), sidecar("b")))
        agent.add(one)
        await agent.until_running("main", "a", "b")
        began = agent.clock.monotonic()
        agent.delete(deleted(one, grace=30))
        await agent.until_finished()
        assert [ended_after(agent, name, began) for name in ("main", "b", "a")] == [3.0, 4.0, 6.0]


async def test_waiting_for_its_turn_eats_a_sidecars_grace() -> None:
    # behaviours.md §3: "Waiting eats the pod's grace; every container gets at least 2 s after its turn."
    async with running_agent() as agent:
        agent.runtime.program("main", IGNORES_TERM)
        agent.runtime.program("side", IGNORES_TERM)
        one = api_pod(init=(sidecar(),))
        agent.add(one)
        await agent.until_running("main", "side")
        began = agent.clock.monotonic()
        agent.delete(deleted(one, grace=10))
        await agent.until_finished()
        assert [ended_after(agent, name, began) for name in ("main", "side")] == [10.0, 12.0]


async def test_a_killed_pod_shows_its_verdict_and_never_runs_again() -> None:
    async with running_agent() as agent:
        agent.add(api_pod())
        await agent.until_running("main")
        agent.workers.kill(PodUID(UID), StatusOverride(phase="Failed", reason="Evicted", message="low on memory"), 1)
        await agent.until_finished()
        assert (agent.status().phase, agent.status().reason) == ("Failed", "Evicted")
        await asyncio.sleep(300)
        assert agent.runtime.running() == []


async def test_a_pod_removed_while_its_sandbox_is_made_goes_away() -> None:
    async with running_agent() as agent:
        hang = agent.runtime.hang(Verb.RUN_POD_SANDBOX)
        one = pod()
        agent.add(one)
        await hang.entered.wait()
        agent.remove(one)
        await agent.until_gone()
        assert agent.runtime.sandboxes == {}


async def test_a_pod_removed_while_its_image_is_pulled_goes_away_at_once() -> None:
    # behaviours.md §1: "Deletion, kill and terminal phase cancel a running normal sync"
    async with running_agent() as agent:
        agent.runtime.pulls["registry.local/app:1"] = Pull(takes=3600)
        one = pod(container(image="registry.local/app:1"))
        agent.add(one)
        await asyncio.sleep(5)
        agent.remove(one)
        began = agent.clock.monotonic()
        await agent.until_gone()
        assert agent.clock.monotonic() - began < 1
        assert agent.runtime.sandboxes == {}


async def test_a_shorter_grace_counts_for_the_next_try_only() -> None:
    # behaviours.md §4: "a StopContainer call already running is not cut short (the new value counts for the next try)"
    async with running_agent() as agent:
        agent.runtime.program("main", IGNORES_TERM)
        one = api_pod()
        agent.add(one)
        await agent.until_running("main")
        began = agent.clock.monotonic()
        agent.delete(deleted(one, grace=20))
        await asyncio.sleep(1)
        agent.delete(deleted(one, grace=3))
        await agent.until_finished()
        assert 20 <= agent.clock.monotonic() - began < 21


async def test_a_container_that_ends_while_the_runtime_kills_it_holds_nothing_up() -> None:
    """containerd 1.6 fails the call then; a node that shuts down has no ten seconds for the next try."""
    async with running_agent() as agent:
        agent.runtime.fail(Verb.STOP_CONTAINER, RuntimeRejected("StopContainer", "failed to kill: ttrpc: closed"))
        one = pod()
        agent.add(one)
        await agent.until_running("main")
        began = agent.clock.monotonic()
        agent.remove(one)
        await agent.until_gone()
        assert agent.clock.monotonic() - began < 3
        assert agent.events.of("FailedKillPod") == []


async def test_a_stop_that_fails_is_told_and_tried_again() -> None:
    async with running_agent() as agent:
        for _ in range(2):
            agent.runtime.fail(Verb.STOP_CONTAINER, RuntimeRejected("StopContainer", "busy"))
        one = pod()
        agent.add(one)
        await agent.until_running("main")
        agent.remove(one)
        await agent.until_gone()
        assert agent.events.of("FailedKillPod")[0].message == "error killing pod: StopContainer failed"


async def test_volumes_that_cannot_be_unmounted_keep_the_pod_from_finishing() -> None:
    async with running_agent() as agent:
        one = api_pod()
        agent.add(one)
        await agent.until_running("main")
        agent.node.volumes.problem = "target is busy"
        agent.delete(deleted(one, grace=1))
        await asyncio.sleep(30)
        assert UID not in agent.statuses.finished
        assert agent.runtime.running() == []
        agent.node.volumes.problem = ""
        await agent.until_finished()


async def test_a_static_pod_waits_for_the_end_of_the_one_of_the_same_name() -> None:
    # behaviours.md §1: "A static pod with the full name of one still running waits until that one is finished"
    async with running_agent() as agent:
        agent.runtime.program("main", Program(term_takes=5), Program())
        old, new = pod(uid="old"), pod(uid="new")
        agent.add(old)
        await agent.until_running("main", uid="old")
        agent.add(new)
        agent.remove(old)
        await asyncio.sleep(3)
        assert agent.runtime.running("new") == []
        (wait,) = (w for w in agent.record.live_waits() if w.kind == WaitKind.QUEUE)
        assert wait.on == "end of the pod of the same name (uid old)"
        began = agent.clock.monotonic()
        await agent.until_running("main", uid="new")
        assert agent.clock.monotonic() - began < 3
        assert agent.runtime.running("old") == []


async def test_api_pods_of_one_name_do_not_wait_for_each_other() -> None:
    async with running_agent() as agent:
        agent.add(api_pod(uid="old"))
        agent.add(api_pod(uid="new"))
        await agent.until_running("main", uid="old")
        await agent.until_running("main", uid="new")


async def test_a_pod_that_waits_for_its_turn_can_be_removed() -> None:
    async with running_agent() as agent:
        old, new, third = pod(uid="old"), pod(uid="new"), pod(uid="third")
        for one in (old, new, third):
            agent.add(one)
        await agent.until_running("main", uid="old")
        agent.remove(new)
        await agent.until_gone("new")
        agent.remove(old)
        await agent.until_running("main", uid="third")


async def test_the_same_pod_added_again_while_it_stops_starts_afresh_and_counts_on() -> None:
    # behaviours.md §1: "The same UID added again while terminating starts afresh after the termination finished."
    async with running_agent() as agent:
        agent.runtime.program("main", Program(term_takes=5), Program())
        one = pod()
        agent.add(one)
        await agent.until_running("main")
        first = agent.runtime.container("main").id
        agent.remove(one)
        await asyncio.sleep(1)
        assert isinstance(agent.census.lifecycle(PodUID(UID)), Terminating)
        agent.add(one)
        await agent.until(lambda: agent.runtime.container("main").id != first)
        await agent.until_running("main")
        # "CRI container attempt = restart count = count of the newest instance + 1" (§2): the dead instance is kept.
        assert agent.runtime.container("main").spec.attempt == 1


async def test_a_pod_deleted_before_it_ever_ran_here_is_only_cleaned_up() -> None:
    # behaviours.md §1: "A pod with deletionTimestamp that never started here is only cleaned up and deleted from the
    # API."
    async with running_agent() as agent:
        agent.add(deleted(api_pod(), grace=30))
        await agent.until_finished()
        assert agent.runtime.sandboxes == {}
        assert UID in agent.statuses.finished


async def test_remains_of_a_crowd_are_removed_two_at_a_time() -> None:
    """Removals can wait: the runtime has other pods to stop."""
    async with running_agent() as agent:
        uids = await crowd(agent, 6)
        agent.runtime.latency[Verb.REMOVE_POD_SANDBOX] = 1.0
        began = agent.clock.monotonic()
        for uid in uids:
            agent.remove(pod(name=uid, uid=uid))
        await agent.until(lambda: len(agent.runtime.sandboxes) == 4)
        assert all(not sandbox.ready for sandbox in agent.runtime.sandboxes.values())
        await agent.until(lambda: not agent.runtime.sandboxes)
        assert 3.0 <= agent.clock.monotonic() - began < 4.0


async def test_removal_that_hangs_holds_no_other_back_for_long() -> None:
    async with running_agent() as agent:
        uids = await crowd(agent, 6)
        hang = agent.runtime.hang(Verb.REMOVE_POD_SANDBOX, only=lambda sandbox: sandbox in stuck)
        stuck = {one.id for one in agent.runtime.sandboxes.values() if one.uid in uids[:3]}
        for uid in uids:
            agent.remove(pod(name=uid, uid=uid))
        await agent.until(lambda: len(agent.runtime.sandboxes) == 3, seconds=10)
        hang.release()
        await agent.until(lambda: not agent.runtime.sandboxes)


async def crowd(agent: Agent, count: int) -> list[str]:
    """UIDs, and names, of pods that run."""
    uids = [f"web-{number}" for number in range(count)]
    for uid in uids:
        agent.add(pod(name=uid, uid=uid))
    for uid in uids:
        await agent.until_running("main", uid=uid)
    await asyncio.sleep(2)
    return uids
