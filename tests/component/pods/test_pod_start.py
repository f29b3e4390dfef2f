"""Pods that come up, over the fake runtime in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from glasslet.api.container import VolumeMount
from glasslet.api.object import PodUID
from glasslet.api.pod import PodResourceClaim
from glasslet.api.volume import EmptyDirVolumeSource, Volume
from glasslet.concurrency.clock import LoopClock
from glasslet.exchange.facts import ProbeOutcome
from glasslet.pods.executor import Executor
from glasslet.pods.failures import StepFailed
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner import Action
from glasslet.record.events import Waited
from glasslet.record.stations import WaitKind
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected
from tests.builders.pod import UID, container, pod, post_start, probe, sidecar
from tests.component.pod_agent import Agent, running_agent
from tests.fakes.programs import Command, Program, Pull, exits

EPOCH = LoopClock().start

pytestmark = pytest.mark.looptime


async def test_a_pod_with_one_container_runs_and_says_so() -> None:
    async with running_agent() as agent:
        agent.add(pod())
        await agent.until(lambda: agent.statuses.of(UID) and agent.status().phase == "Running")
        assert agent.runtime.running() == ["main"]
        assert agent.container().ready
        assert agent.container().restart_count == 0
        assert agent.events.reasons() == ["Pulled", "Created", "Started"]
        assert agent.statuses.phases(UID) == ["Pending", "Running"]


async def test_a_start_takes_six_calls_two_of_them_reads_of_what_was_just_made() -> None:
    async with running_agent() as agent:
        await asyncio.sleep(2)
        before = len(agent.runtime.calls)
        agent.add(pod())
        await agent.until_running("main")
        await asyncio.sleep(5)
        assert [call.verb for call in agent.runtime.calls[before:]] == [
            Verb.RUN_POD_SANDBOX,
            Verb.POD_SANDBOX_STATUS,
            Verb.IMAGE_STATUS,
            Verb.CREATE_CONTAINER,
            Verb.START_CONTAINER,
            Verb.CONTAINER_STATUS,
        ]


async def test_starting_takes_no_time_of_the_agents_own() -> None:
    async with running_agent() as agent:
        await agent.observed.synced.wait()
        began = agent.clock.monotonic()
        agent.add(pod())
        await agent.until(lambda: agent.statuses.of(UID) and agent.status().phase == "Running", step=0.001)
        assert agent.clock.monotonic() - began < 0.01


async def test_init_containers_run_one_by_one_before_the_regular_ones() -> None:
    # behaviours.md §3: "Init containers run one by one in spec order; each must exit 0 first."
    async with running_agent() as agent:
        agent.runtime.program("first", exits(0, after=5))
        agent.runtime.program("second", exits(0, after=5))
        agent.add(pod(init=(container("first"), container("second"))))
        await agent.until_running("first")
        await asyncio.sleep(1)
        assert agent.runtime.running() == ["first"]
        await agent.until_running("second")
        assert agent.runtime.running() == ["second"]
        await agent.until_running("main")
        assert [c.exit_code for c in agent.runtime.instances("first") + agent.runtime.instances("second")] == [0, 0]


async def test_a_pod_whose_init_container_runs_says_that_it_waits_for_its_exit() -> None:
    async with running_agent() as agent:
        agent.runtime.program("first", exits(0, after=60))
        agent.add(pod(init=(container("first"),)))
        await agent.until_running("first")
        await asyncio.sleep(1)
        waits = agent.record.live_waits()
        assert [(w.kind, w.container) for w in waits if w.kind == WaitKind.EXIT] == [(WaitKind.EXIT, "first")]


async def test_a_wait_ends_when_its_end_is_acted_on_not_when_that_is_done() -> None:
    async with running_agent() as agent:
        agent.runtime.program("first", exits(0, after=10))
        agent.runtime.latency[Verb.CREATE_CONTAINER] = 5
        agent.add(pod(init=(container("first"),)))
        await agent.until_running("main")
        record = agent.record.of(UID)
        assert record is not None
        (waited,) = [e for e in record.events if isinstance(e, Waited) and e.kind == WaitKind.EXIT]
        assert waited.end - waited.start == pytest.approx(10, abs=0.5)


async def test_a_failed_init_container_fails_the_pod_whose_policy_is_never() -> None:
    # behaviours.md §3: "Failed init container: pod restartPolicy Never makes the pod Failed"
    async with running_agent() as agent:
        agent.runtime.program("first", exits(3, after=1))
        agent.add(pod(init=(container("first"),), restart_policy="Never"))
        await agent.until_finished()
        assert agent.status().phase == "Failed"
        assert not any(c.name == "main" for c in agent.runtime.containers.values())


async def test_a_failed_init_container_is_run_again_with_back_off() -> None:
    # behaviours.md §3: "otherwise restart with back-off, starting at that container"
    async with running_agent() as agent:
        agent.runtime.program("first", exits(1), exits(1), exits(0))
        agent.add(pod(init=(container("first"),)))
        await agent.until_running("main")
        before, last = agent.runtime.instances("first")
        assert [c.spec.attempt for c in (before, last)] == [1, 2], "only the newest dead instance is kept"
        assert before.started_at is not None
        assert before.finished_at is not None
        assert last.started_at is not None
        assert (before.started_at - EPOCH).total_seconds() < 1
        assert 10 <= (last.started_at - before.finished_at).total_seconds() < 11


async def test_a_sidecar_starts_first_and_stays() -> None:
    async with running_agent() as agent:
        agent.runtime.program("setup", exits(0, after=2))
        agent.add(pod(init=(sidecar(), container("setup"))))
        await agent.until_running("side", "setup")
        assert "main" not in agent.runtime.running()
        await agent.until_running("side", "main")


async def test_the_next_container_waits_for_the_startup_probe_of_a_sidecar() -> None:
    # behaviours.md §3: "Sidecars ... must be started (startup probe passed, or running without one) before the next
    # begins"
    async with running_agent() as agent:
        agent.add(pod(init=(sidecar(startup_probe=probe()),)))
        await agent.until_running("side")
        await asyncio.sleep(30)
        assert agent.runtime.running() == ["side"]
        assert WaitKind.PROBE in {wait.kind for wait in agent.record.live_waits()}
        agent.outcomes[agent.runtime.container("side").id] = ProbeOutcome(started=True)
        agent.wakes.wake(PodUID(UID))
        await agent.until_running("side", "main")


async def test_regular_containers_start_side_by_side() -> None:
    async with running_agent() as agent:
        agent.runtime.latency[Verb.CREATE_CONTAINER] = 1.0
        await agent.observed.synced.wait()
        began = agent.clock.monotonic()
        agent.add(pod(container("a"), container("b"), container("c")))
        await agent.until_running("a", "b", "c")
        assert agent.clock.monotonic() - began < 1.5


async def test_a_post_start_hook_keeps_later_containers_back() -> None:
    # behaviours.md §3: "postStart must finish too."
    # behaviours.md §2: "a postStart hook blocks the next"
    async with running_agent() as agent:
        agent.runtime.commands["warm up"] = Command(takes=10)
        agent.add(pod(container("a", lifecycle=post_start("warm", "up")), container("b")))
        await agent.until_running("a")
        await asyncio.sleep(5)
        assert agent.runtime.running() == ["a"]
        assert WaitKind.HOOK in {wait.kind for wait in agent.record.live_waits()}
        await agent.until_running("a", "b")


async def test_a_failed_post_start_hook_kills_the_container() -> None:
    # behaviours.md §4: "postStart failure: event FailedPostStartHook (`PostStartHook failed`), container killed,
    # waiting reason PostStartHookError."
    async with running_agent() as agent:
        agent.runtime.commands["warm up"] = Command(exit_code=1, stdout=b"cold")
        agent.add(pod(container(lifecycle=post_start("warm", "up")), restart_policy="Always"))
        await agent.until(lambda: agent.events.of("FailedPostStartHook"))
        await agent.until(lambda: agent.container().state.waiting)
        waiting = agent.container().state.waiting
        assert waiting is not None
        assert waiting.reason == "PostStartHookError"
        assert waiting.message.startswith('Exec lifecycle hook ([warm up]) for Container "main" in Pod "web_default(')
        assert agent.events.of("FailedPostStartHook")[0].message == "PostStartHook failed"
        assert agent.events.of("Killing")[0].message == "FailedPostStartHook"


async def test_an_image_that_cannot_be_pulled_shows_both_reasons_in_turn() -> None:
    async with running_agent() as agent:
        agent.runtime.pulls["registry.local/app:1"] = Pull(error="no such host")
        agent.add(pod(container(image="registry.local/app:1")))
        await asyncio.sleep(20)
        states = [status.container_statuses[0].state.waiting for status in agent.statuses.of(UID)]
        reasons = [key for key, _ in itertools.groupby(state.reason for state in states if state)]
        assert reasons[:4] == ["ContainerCreating", "ErrImagePull", "ImagePullBackOff", "ErrImagePull"]


async def test_an_image_that_appears_later_lets_the_container_start() -> None:
    async with running_agent() as agent:
        agent.runtime.pulls["registry.local/app:1"] = Pull(error="no such host")
        agent.add(pod(container(image="registry.local/app:1"), container("other")))
        await agent.until_running("other")
        await asyncio.sleep(15)
        agent.runtime.pulls["registry.local/app:1"] = Pull(takes=2)
        await agent.until_running("main", "other")


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        # events-and-reasons.md: `FailedMapVolume`, "block volume mapping failed"; `FailedMount`, "also
        # MapVolume.NodeAffinity check failed"
        ('MapVolume.SetUpDevice failed for volume "disk" : no such disk', "FailedMapVolume"),
        ('MapVolume.NodeAffinity check failed for volume "disk" : no node matches', "FailedMount"),
        ('MountVolume.SetUp failed for volume "data" : permission denied', "FailedMount"),
    ],
)
async def test_the_event_of_a_volume_says_whether_a_disk_or_a_file_system_failed(problem: str, reason: str) -> None:
    async with running_agent() as agent:
        agent.node.volumes.problem = problem
        agent.add(pod())
        await agent.until(lambda: agent.events.of(reason))
        assert agent.events.of(reason)[0].message == problem


async def test_volumes_that_are_not_ready_hold_the_pod_and_nothing_else() -> None:
    async with running_agent() as agent:
        agent.node.volumes.problem = "hostPath type check failed: /data is not a directory"
        agent.add(pod())
        agent.add(pod(name="other", uid="other"))
        await asyncio.sleep(5)
        assert agent.runtime.sandboxes == {}
        assert agent.events.of("FailedMount")[0].message == "hostPath type check failed: /data is not a directory"
        agent.node.volumes.problem = ""
        await agent.until_running("main")
        await agent.until_running("main", uid="other")


async def test_a_sandbox_that_fails_is_tried_again() -> None:
    async with running_agent() as agent:
        agent.runtime.fail(Verb.RUN_POD_SANDBOX, RuntimeRejected("RunPodSandbox", "no cni"))
        agent.add(pod())
        await agent.until_running("main")
        assert agent.events.of("FailedCreatePodSandBox")[0].message == (
            "Failed to create pod sandbox: RunPodSandbox: no cni"
        )
        assert 10 <= agent.clock.monotonic() <= 16


async def test_a_sandbox_that_cannot_be_read_after_it_was_made_is_told_and_not_made_twice() -> None:
    async with running_agent() as agent:
        agent.runtime.fail(Verb.POD_SANDBOX_STATUS, RuntimeRejected("PodSandboxStatus", "gone", code="INTERNAL"))
        busy = RuntimeRejected("ListPodSandbox", "busy", code="INTERNAL")
        agent.runtime.fail(Verb.LIST_POD_SANDBOX, busy, times=20, only=lambda uid: uid == UID)
        agent.add(pod())
        await agent.until_running("main")
        told = [event.message for event in agent.events.of("FailedPodSandBoxStatus")]
        assert told == ["Unable to get pod sandbox status: rpc error: code = Internal desc = gone"]
        assert agent.events.of("FailedCreatePodSandBox") == []
        unread = agent.events.of("FailedSync")[0]
        assert unread.message == "error determining status: rpc error: code = Internal desc = busy"
        assert sum(1 for call in agent.runtime.calls if call.verb is Verb.RUN_POD_SANDBOX) == 1


async def test_a_container_that_cannot_be_created_keeps_no_other_back() -> None:
    # behaviours.md §2: "A failed regular container does not stop the next ones"
    async with running_agent() as agent:
        agent.runtime.fail(
            Verb.CREATE_CONTAINER, RuntimeRejected("CreateContainer", "bad"), only=lambda name: name == "a"
        )
        agent.add(pod(container("a"), container("b")))
        await agent.until_running("b")
        await agent.until(lambda: agent.container("a").state.waiting)
        waiting = agent.container("a").state.waiting
        assert waiting is not None
        assert (waiting.reason, waiting.message) == ("CreateContainerError", "bad")
        await agent.until_running("a", "b")
        assert agent.container("a").restart_count == 0


async def test_a_program_that_cannot_start_shows_run_container_error_and_is_backed_off() -> None:
    async with running_agent() as agent:
        agent.runtime.program("main", Program(start_error="exec: no such file"))
        agent.add(pod())
        await agent.until(lambda: agent.statuses.of(UID) and agent.container().state.waiting)
        await agent.until(lambda: agent.container().state.waiting.reason == "RunContainerError")  # type: ignore[union-attr]
        await agent.until(lambda: agent.container().state.waiting.reason == "CrashLoopBackOff")  # type: ignore[union-attr]
        assert len(agent.runtime.instances("main")) <= 3


async def test_a_hung_sandbox_call_holds_its_own_pod_only() -> None:
    async with running_agent() as agent:
        hang = agent.runtime.hang(Verb.RUN_POD_SANDBOX, only=lambda name: name == "web")
        agent.add(pod())
        await hang.entered.wait()
        agent.add(pod(name="other", uid="other"))
        await agent.until_running("main", uid="other")
        assert agent.runtime.running(UID) == []


async def test_the_attempt_goes_on_from_the_logs_when_no_instance_is_left() -> None:
    # behaviours.md §2: "If no instance exists: highest number among `<n>.log*` files in the container's log directory
    # + 1, else 0."
    async with running_agent() as agent:
        agent.node.files.logged["main"] = 4
        agent.add(pod())
        await agent.until_running("main")
        assert agent.runtime.container("main").spec.attempt == 5


async def test_a_running_container_is_linked_for_log_collectors() -> None:
    async with running_agent() as agent:
        agent.add(pod())
        await agent.until_running("main")
        await agent.until(lambda: agent.node.files.links)
        assert agent.node.files.links == {agent.runtime.container("main").id}


async def test_a_pod_waits_for_the_network_unless_it_uses_the_hosts() -> None:
    # behaviours.md §1: "network check (host-network pods skip it; event NetworkNotReady)"
    async with running_agent() as agent:
        agent.network_error = "network state unknown"
        agent.add(pod())
        agent.add(pod(name="host", uid="host", host_network=True))
        await agent.until_running("main", uid="host")
        await asyncio.sleep(30)
        assert agent.runtime.running(UID) == []
        assert [e.message for e in agent.events.of("NetworkNotReady")] == [
            "network is not ready: network state unknown"
        ]
        agent.network_error = None
        agent.wakes.wake_all(retry=True)
        began = agent.clock.monotonic()
        await agent.until_running("main")
        assert agent.clock.monotonic() - began < 0.1


async def test_a_part_of_a_volume_is_bound_before_its_container_is_made() -> None:
    async with running_agent() as agent:
        mount = VolumeMount(name="data", mount_path="/data", sub_path="logs/today")
        agent.add(
            pod(container(volume_mounts=(mount,)), volumes=(Volume(name="data", empty_dir=EmptyDirVolumeSource()),))
        )
        await agent.until_running("main")
        mounts = {m.container_path: m.host_path for m in agent.runtime.container("main").spec.mounts}
        assert mounts["/data"] == "/volumes/data/logs/today"


async def test_a_pod_that_needs_claimed_devices_gets_no_sandbox() -> None:
    async with running_agent() as agent:
        agent.add(pod(resource_claims=(PodResourceClaim(name="gpu", resource_claim_name="gpu-1"),)))
        await agent.until(lambda: agent.events.of("FailedPrepareDynamicResources"))
        [told, *_] = agent.events.of("FailedPrepareDynamicResources")
        assert told.message.startswith("Failed to prepare dynamic resources: this kubelet has no dynamic")
        assert agent.runtime.sandboxes == {}
        agent.add(pod(uid="other", name="web-2"))
        await agent.until_running("main", uid="other")


async def test_a_node_without_cluster_dns_is_told_with_the_pod() -> None:
    # behaviours.md §20: "MissingClusterDNS is an event on the node and on the pod."
    async with running_agent() as agent:
        agent.add(pod(dns_policy="ClusterFirst"))
        await agent.until_running("main")
        [told] = agent.events.of("MissingClusterDNS")
        [(type_, reason, message)] = agent.node_events
        assert (type_, reason) == ("Warning", "MissingClusterDNS")
        assert told.message == f'pod: "web_default({UID})". {message}'


def stalled(agent: Agent) -> bool:
    record = agent.record.of(UID)
    return record is not None and any("acting changed nothing" in text for text in record.findings())


async def test_actions_without_effect_are_a_finding_until_they_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Executor, memory: PodMemory, actions: Sequence[Action]) -> list[StepFailed]:
        await asyncio.sleep(0)
        return []

    async with running_agent() as agent:
        with monkeypatch.context() as patched:
            patched.setattr(Executor, "run", nothing)
            agent.add(pod())
            await agent.until(lambda: stalled(agent))
        await agent.until_running("main")
        await agent.until(lambda: not stalled(agent))
