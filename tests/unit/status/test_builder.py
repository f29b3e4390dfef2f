"""PodStatus from facts: one healthy pod, one thing changed per test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from glasslet.api.codec import encode
from glasslet.api.container import Container, EphemeralContainer, VolumeMount
from glasslet.api.lifecycle import Probe
from glasslet.api.meta import ObjectMeta
from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.api.pod import Pod, PodReadinessGate, PodSpec
from glasslet.api.pod_status import PodCondition, PodStatus
from glasslet.exchange.facts import ProbeOutcome, StatusFacts, StatusOverride, Waiting
from glasslet.exchange.finality import with_end_withheld
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod, ObservedSandbox
from glasslet.status.builder import build_status, status_builder

NOW = datetime(2026, 1, 1, 12, 0, 0, 400_000, tzinfo=UTC)


def container(name: str = "main", **fields: Any) -> Container:
    return Container(name=name, image=f"{name}:1", **fields)


def pod(*containers: Container, source: str = "api", **spec: Any) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name="web",
            namespace="default",
            uid="u1",
            generation=3,
            annotations={"kubernetes.io/config.source": source},
        ),
        spec=PodSpec(containers=containers or (container(),), **{"restart_policy": "Always", **spec}),
    )


def instance(name: str = "main", attempt: int = 0, exited: int | None = None, **fields: Any) -> ObservedContainer:
    made = NOW - timedelta(seconds=100 - attempt)
    return ObservedContainer(
        **{
            "id": ContainerID(f"{name}-{attempt}"),
            "name": name,
            "attempt": attempt,
            "phase": ContainerPhase.RUNNING if exited is None else ContainerPhase.EXITED,
            "sandbox_id": SandboxID("s0"),
            "created_at": made,
            "started_at": made,
            "finished_at": None if exited is None else NOW,
            "exit_code": exited or 0,
            **fields,
        }
    )


def observed(*containers: ObservedContainer, ips: tuple[str, ...] = ("10.0.0.9",)) -> ObservedPod:
    sandbox = ObservedSandbox(id=SandboxID("s0"), attempt=0, ready=True, created_at=NOW, ips=ips)
    return ObservedPod(uid=PodUID("u1"), name="web", namespace="default", sandboxes=(sandbox,), containers=containers)


def status(the_pod: Pod, seen: ObservedPod | None, **facts: Any) -> PodStatus:
    return build_status(StatusFacts(pod=the_pod, now=NOW, observed=seen, **facts), "containerd")


def condition(of: PodStatus, kind: str) -> PodCondition:
    return next(c for c in of.conditions if c.type == kind)


def test_running_container_makes_the_pod_running_and_ready() -> None:
    result = status(pod(), observed(instance()))
    assert (result.phase, condition(result, "Ready").status) == ("Running", "True")
    assert result.container_statuses[0].container_id == "containerd://main-0"
    assert result.pod_ip == "10.0.0.9"


def test_times_are_whole_seconds() -> None:
    assert status(pod(), None).start_time == NOW.replace(microsecond=0)


def test_conditions_come_in_upstreams_order_after_those_of_others() -> None:
    # behaviours §6: "Order in the list: foreign ones, resize conditions, DisruptionTarget, PodReadyToStartContainers,
    # Initialized, Ready, ContainersReady, PodScheduled (static pods: always True)."
    before = PodStatus(conditions=(PodCondition(type="acme.io/gate", status="True"),))
    kinds = [c.type for c in status(pod(), observed(instance()), previous=before).conditions]
    assert kinds == [
        "acme.io/gate",
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]


def test_transition_time_stays_while_the_value_stays() -> None:
    # behaviours §6: "Transition time changes only with the status value."
    first = status(pod(), observed(instance()))
    facts = StatusFacts(pod=pod(), now=NOW + timedelta(hours=1), observed=observed(instance()), previous=first)
    assert condition(build_status(facts, "x"), "Ready").last_transition_time == NOW.replace(microsecond=0)


def test_unknown_container_waits_as_container_creating() -> None:
    # behaviours §5: "Default waiting reason: ContainerCreating, or PodInitializing for regular containers of a pod with
    # init containers."
    waiting = status(pod(), observed()).container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "ContainerCreating"


def test_containers_of_a_pod_with_init_containers_wait_as_pod_initializing() -> None:
    result = status(pod(init_containers=(container("setup"),)), observed(instance("setup")))
    waiting = result.container_statuses[0].state.waiting
    assert waiting is not None
    assert (waiting.reason, result.phase) == ("PodInitializing", "Pending")
    assert condition(result, "Initialized").message == "containers with incomplete status: [setup]"


def test_back_off_shows_waiting_with_the_exit_as_last_state() -> None:
    back_off = {"main": Waiting(reason="CrashLoopBackOff", message="back-off 10s")}
    shown = status(pod(), observed(instance(exited=1)), waiting=back_off).container_statuses[0]
    assert shown.state.waiting is not None
    assert shown.last_state.terminated is not None
    assert (shown.state.waiting.reason, shown.last_state.terminated.exit_code) == ("CrashLoopBackOff", 1)


def test_last_state_is_the_instance_before_a_running_one() -> None:
    # behaviours §5: "lastState = second newest instance when the newest runs or exited, or the newest exit while
    # waiting."
    shown = status(pod(), observed(instance(attempt=1), instance(exited=2))).container_statuses[0]
    assert shown.last_state.terminated is not None
    assert (shown.last_state.terminated.exit_code, shown.restart_count) == (2, 1)


def test_termination_message_follows_the_runtimes_own() -> None:
    # behaviours §19: "A message of the runtime comes first, joined by `: `."
    gone = instance(exited=1, message="runtime said")
    shown = status(pod(), observed(gone), termination_messages={gone.id: "file said"}).container_statuses[0]
    assert shown.state.terminated is not None
    assert shown.state.terminated.message == "runtime said: file said"


@pytest.mark.parametrize(("parts", "left"), [(1, 12288), (2, 6144), (3, 4096)])
def test_containers_share_the_room_for_last_words_equally(parts: int, left: int) -> None:
    # behaviours §19: "All containers together at most 12 KiB: longer ones are cut to 12288/number of regular, init and
    # ephemeral containers."
    gone = instance(exited=1, message="é" * 10000)
    others = tuple(container(f"other-{n}") for n in range(1, parts))
    [shown] = [s for s in status(pod(container(), *others), observed(gone)).container_statuses if s.name == "main"]
    assert shown.state.terminated is not None
    assert len(shown.state.terminated.message.encode()) == left


def test_half_a_character_is_no_last_word() -> None:
    gone = instance(exited=1, message="a" + "é" * 10000)
    [shown] = status(pod(), observed(gone)).container_statuses
    assert shown.state.terminated is not None
    assert shown.state.terminated.message == "a" + "é" * 6143


def test_regular_containers_are_sorted_by_name() -> None:
    # behaviours §5: "Container order in status: regular and ephemeral sorted by name; init in spec order."
    shown = status(pod(container("b"), container("a")), observed())
    assert [s.name for s in shown.container_statuses] == ["a", "b"]


def test_container_that_vanished_while_running_will_restart_and_counts() -> None:
    # behaviours §5: "A container that vanished while Running: terminated (or lastState, if it will restart) with reason
    # ContainerStatusUnknown, exit 137, message that it could not be located; restartCount + 1 if the pod is not
    # deleted."
    before = status(pod(), observed(instance()))
    shown = status(pod(), observed(), previous=before).container_statuses[0]
    assert shown.last_state.terminated is not None
    assert (shown.last_state.terminated.reason, shown.last_state.terminated.exit_code) == (
        "ContainerStatusUnknown",
        137,
    )
    assert (shown.restart_count, shown.ready) == (1, False)


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        ("Always", 0, "Running"),
        ("Always", 1, "Running"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 1, "Running"),
        ("Never", 0, "Succeeded"),
        ("Never", 1, "Failed"),
    ],
)
def test_phase_when_all_containers_stopped(policy: str, code: int, phase: str) -> None:
    # behaviours §5: "running = 0, stopped > 0, unknown = 0: [...] Otherwise Always: Running; all succeeded: Succeeded;
    # Never: Failed; OnFailure: Running."
    assert status(pod(restart_policy=policy), observed(instance(exited=code))).phase == phase


def test_failed_init_container_fails_a_pod_that_never_restarts() -> None:
    # behaviours §5: "failed init and restartPolicy Never: Failed."
    the_pod = pod(init_containers=(container("setup"),), restart_policy="Never")
    assert status(the_pod, observed(instance("setup", exited=1))).phase == "Failed"


def test_running_sidecar_alone_keeps_the_pod_running_once_a_regular_container_ran() -> None:
    the_pod = pod(init_containers=(container("side", restart_policy="Always"),))
    assert status(the_pod, observed(instance("side"), instance(exited=1))).phase == "Running"


def test_sidecar_that_is_not_ready_makes_the_pod_unready() -> None:
    # behaviours.md §3: "their readiness counts for ContainersReady"
    side = container("side", restart_policy="Always", readiness_probe=Probe())
    shown = status(pod(init_containers=(side,)), observed(instance("side"), instance()))
    assert condition(shown, "ContainersReady").message == "containers with unready status: [side]"


def test_readiness_probe_without_a_result_means_not_ready() -> None:
    shown = status(pod(container(readiness_probe=Probe())), observed(instance()))
    assert shown.container_statuses[0].ready is False


def test_passed_readiness_probe_means_ready() -> None:
    results = {ContainerID("main-0"): ProbeOutcome(ready=True)}
    shown = status(pod(container(readiness_probe=Probe())), observed(instance()), probes=results)
    assert shown.container_statuses[0].ready is True


def test_container_whose_startup_probe_has_not_passed_is_not_started() -> None:
    shown = status(pod(container(startup_probe=Probe())), observed(instance())).container_statuses[0]
    assert (shown.started, shown.ready) == (False, False)


def test_missing_readiness_gate_is_named() -> None:
    # behaviours.md §6: "Ready = ContainersReady and all readinessGates True; else reason ReadinessGatesNotReady with
    # `corresponding condition of pod readiness gate "<type>" does not exist.` or `the status of pod readiness gate
    # "<type>" is not "True", but <status>`."
    gated = pod(readiness_gates=tuple(PodReadinessGate(condition_type=f"acme.io/{name}") for name in ("lb", "dns")))
    before = PodStatus(conditions=(PodCondition(type="acme.io/dns", status="Unknown"),))
    ready = condition(status(gated, observed(instance()), previous=before), "Ready")
    assert (ready.status, ready.reason) == ("False", "ReadinessGatesNotReady")
    assert ready.message == (
        'corresponding condition of pod readiness gate "acme.io/lb" does not exist., '
        'the status of pod readiness gate "acme.io/dns" is not "True", but Unknown'
    )


@pytest.mark.parametrize(("code", "reason"), [(0, "PodCompleted"), (1, "PodFailed")])
def test_a_pod_that_ended_is_not_ready_for_that_reason(code: int, reason: str) -> None:
    # behaviours.md §6: "At a terminal phase Ready and ContainersReady are forced False (PodCompleted or PodFailed)."
    # "UnknownContainerStatuses when there are no statuses; PodCompleted; PodFailed."
    # "Initialized: ... True with reason PodCompleted for Succeeded pods"
    shown = status(pod(restart_policy="Never"), observed(instance(exited=code)))
    for kind in ("Ready", "ContainersReady"):
        assert (condition(shown, kind).status, condition(shown, kind).reason) == ("False", reason)
    expected = ("True", "PodCompleted" if code == 0 else "")
    assert (condition(shown, "Initialized").status, condition(shown, "Initialized").reason) == expected


@pytest.mark.parametrize("ips", [(), ("10.0.0.9",)])
def test_a_pod_may_start_containers_once_its_sandbox_has_an_address(ips: tuple[str, ...]) -> None:
    # behaviours.md §6: "PodReadyToStartContainers True = no new sandbox needed by the rules of section 2; no reason, no
    # message."
    found = condition(status(pod(), observed(ips=ips)), "PodReadyToStartContainers")
    assert (found.status, found.reason, found.message) == ("True" if ips else "False", "", "")


def test_verdict_decides_the_phase() -> None:
    verdict = StatusOverride(phase="Failed", reason="DeadlineExceeded", message="too long")
    shown = status(pod(), observed(instance()), verdict=verdict)
    assert (shown.phase, shown.reason) == ("Failed", "DeadlineExceeded")
    assert condition(shown, "Ready").reason == "PodFailed"


def test_terminal_phase_never_goes_back() -> None:
    # behaviours §5: "A terminal phase in the API never goes back."
    before = PodStatus(phase="Succeeded")
    assert status(pod(), observed(instance()), previous=before).phase == "Succeeded"


def test_pod_that_finished_without_terminal_phase_is_failed() -> None:
    # behaviours §4: "Phase at the end: Succeeded or Failed from exit codes; a non-static pod still Pending or Running
    # becomes Failed."
    assert status(pod(), observed(), terminating=True, finished=True).phase == "Failed"


def test_finished_pod_shows_missing_containers_as_terminated() -> None:
    # behaviours §4: "Containers missing in the runtime at the end: terminated, reason ContainerStatusUnknown, exit code
    # 137."
    shown = status(pod(), observed(), terminating=True, finished=True).container_statuses[0].state.terminated
    assert shown is not None
    assert (shown.reason, shown.exit_code) == ("ContainerStatusUnknown", 137)


def test_host_network_pod_has_the_nodes_addresses() -> None:
    shown = status(pod(host_network=True), observed(instance(), ips=()), host_ips=("192.0.2.1",))
    assert (shown.pod_ip, condition(shown, "PodReadyToStartContainers").status) == ("192.0.2.1", "True")


def test_building_again_from_its_own_result_changes_nothing() -> None:
    first = status(pod(), observed(instance()))
    assert status(pod(), observed(instance()), previous=first) == first
    assert msgspec.structs.replace(first) == first


def test_failed_init_container_leaves_the_pod_uninitialized_also_at_its_end() -> None:
    # behaviours §6: "Initialized: stays True once a regular container started"
    the_pod = pod(init_containers=(container("setup"),), restart_policy="Never")
    shown = status(the_pod, observed(instance("setup", exited=1)), terminating=True, finished=True)
    assert condition(shown, "Initialized").message == "containers with incomplete status: [setup]"


def test_containers_that_waited_for_a_failed_init_container_go_on_waiting_at_the_end() -> None:
    the_pod = pod(init_containers=(container("setup"),), restart_policy="Never")
    shown = status(the_pod, observed(instance("setup", exited=1)), terminating=True, finished=True)
    assert shown.container_statuses[0].state.waiting is not None


def test_static_pod_that_ends_before_it_ran_is_not_shown_as_running() -> None:
    # behaviours §4: "Phase at the end: Succeeded or Failed from exit codes; a non-static pod still Pending or Running
    # becomes Failed."
    assert status(pod(source="file"), observed(), terminating=True, finished=True).phase == "Pending"


def test_static_pod_that_ended_before_it_ran_never_turns_running_later() -> None:
    ended = status(pod(source="file"), observed(), terminating=True, finished=True)
    again = status(pod(source="file"), observed(), terminating=True, finished=True, previous=ended)
    assert (again.phase, again.container_statuses) == ("Pending", ended.container_statuses)


@pytest.mark.parametrize("seen", [None, observed(instance()), observed(instance(exited=1))])
def test_mounts_are_listed_whatever_the_container_does(seen: ObservedPod | None) -> None:
    # The status of a container that waits or ended names its mounts too: they follow from the spec alone.
    mounts = (VolumeMount(name="v", mount_path="/v", read_only=True),)
    shown = status(pod(container(volume_mounts=mounts)), seen).container_statuses[0].volume_mounts
    assert [(mount.name, mount.recursive_read_only) for mount in shown] == [("v", "Disabled")]


@pytest.mark.parametrize(
    ("mode", "able", "shown"),
    [
        ("Disabled", True, "Disabled"),
        ("IfPossible", True, "Enabled"),
        ("IfPossible", False, "Disabled"),
        ("Enabled", True, "Enabled"),
    ],
)
def test_a_read_only_mount_says_whether_all_below_it_is_read_only(mode: str, able: bool, shown: str) -> None:
    # behaviours.md §22: "recursiveReadOnly IfPossible/Enabled/Disabled"
    mounts = (VolumeMount(name="v", mount_path="/v", read_only=True, recursive_read_only=mode),)
    facts = StatusFacts(pod=pod(container(volume_mounts=mounts)), observed=observed(), now=NOW)
    built = status_builder("fake", lambda handler: able)(facts)
    assert built.container_statuses[0].volume_mounts[0].recursive_read_only == shown


def test_a_container_without_resources_shows_that_it_has_none() -> None:
    # behaviours §5: "resources: of non-running containers the allocated values"
    shown = status(pod(), observed(instance())).container_statuses[0]
    assert shown.resources is not None
    assert msgspec.json.encode(shown.resources) == b"{}"


@pytest.mark.parametrize("phase", [ContainerPhase.RUNNING, ContainerPhase.EXITED, ContainerPhase.CREATED])
def test_an_ephemeral_container_is_never_ready_and_has_no_started(phase: ContainerPhase) -> None:
    # kubelet/prober/prober_manager.go, UpdatePodStatus: only regular and init containers get either.
    debug = EphemeralContainer(name="debug", image="debug:1")
    shown = status(pod(ephemeral_containers=(debug,)), observed(instance("debug", phase=phase)))
    [one] = shown.ephemeral_container_statuses
    assert (one.ready, one.started) == (False, None)


def test_an_ephemeral_container_without_an_instance_has_no_started() -> None:
    debug = EphemeralContainer(name="debug", image="debug:1")
    for observation in (None, observed()):
        [one] = status(pod(ephemeral_containers=(debug,)), observation).ephemeral_container_statuses
        assert (one.ready, one.started) == (False, None)


def test_a_container_that_never_started_has_begun_in_1970() -> None:
    # kubelet/kuberuntime/kuberuntime_container.go, toKubeContainerStatus: time.Unix(0, status.StartedAt)
    never = instance(exited=128, started_at=None, reason="StartError")
    ended = status(pod(), observed(never)).container_statuses[0].state.terminated
    assert ended is not None
    assert encode(ended).startswith(b'{"exitCode":128,"reason":"StartError","startedAt":"1970-01-01T00:00:00Z"')


@pytest.mark.parametrize("seen", [observed(instance(exited=1)), None], ids=["containers ended", "never begun"])
def test_the_end_of_an_evicted_pod_has_its_disruption_from_the_first(seen: ObservedPod | None) -> None:
    evicted = StatusOverride(phase="Failed", reason="Evicted", message="no room", disruption="no room")
    ended = status(pod(), seen, verdict=evicted, terminating=True)
    assert (ended.phase, condition(ended, "DisruptionTarget").status) == ("Failed", "True")
    withheld = with_end_withheld(ended, PodStatus(phase="Running"))
    assert withheld.phase == "Running"
    assert "DisruptionTarget" not in [one.type for one in withheld.conditions]
