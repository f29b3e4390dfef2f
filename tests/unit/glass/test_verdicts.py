"""Why a pod is as it is: from the same healthy pod, one thing changed at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.container import ResourceRequirements
from glasslet.api.env import EnvVar, EnvVarSource, SecretKeySelector
from glasslet.api.lifecycle import HTTPGetAction, Probe
from glasslet.api.pod import Pod, PodReadinessGate
from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from glasslet.api.quantity import Quantity
from glasslet.glass.pod_rows import pod_description, pod_row
from glasslet.glass.stuck import Stuck
from glasslet.glass.verdicts.ending import removed
from glasslet.glass.verdicts.pod_rules import is_settled, pod_verdict
from glasslet.glass.verdicts.situation import Situation, condition_since
from glasslet.record.events import ChangeObserved, Decided, StationSpan
from glasslet.record.stations import WaitKind
from tests.builders.pod import container, pod, sidecar
from tests.builders.record import BASE, START, record, standing, station, waited, waiting

EPOCH = datetime.fromtimestamp(0, UTC)
NOW = START + timedelta(seconds=100)
SINCE = START + timedelta(seconds=60)
RUNNING = ContainerState(running=ContainerStateRunning(started_at=SINCE))
STARTED = (
    station("admitted", 0, 0),
    station("volumes", 0, 1),
    station("sandbox", 1, 2),
    station("image", 2, 3, "main"),
)


def reported(name: str = "main", state: ContainerState = RUNNING, **fields: Any) -> ContainerStatus:
    defaults = {
        "ready": False,
        "restart_count": 0,
        "image": "busybox",
        "image_id": "",
        "container_id": "containerd://1",
    }
    return ContainerStatus(name=name, state=state, **{**defaults, **fields})


def held(reason: str, message: str = "") -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))


def ended(code: int, *, reason: str = "Error", at: datetime = SINCE, ran: float = 3.0) -> ContainerState:
    begun = at - timedelta(seconds=ran)
    state = ContainerStateTerminated(exit_code=code, reason=reason, started_at=begun, finished_at=at)
    return ContainerState(terminated=state)


def status(*containers: ContainerStatus, is_ready: bool = False, **fields: Any) -> PodStatus:
    ready = PodCondition(type="Ready", status="True" if is_ready else "False", last_transition_time=SINCE)
    defaults = {"phase": "Running", "pod_ip": "10.42.0.17", "conditions": (ready,)}
    return PodStatus(container_statuses=containers, **{**defaults, **fields})


def situation(what: Pod | None = None, now: PodStatus | None = None, **fields: Any) -> Situation:
    defaults = {
        "pod": what or pod(),
        "status": now or status(reported(ready=True), is_ready=True),
        "now": NOW,
        "record": record(*STARTED),
        "lifecycle": "syncing",
    }
    return Situation(**{**defaults, **fields})


def evidence(it: Situation) -> dict[str, str]:
    return {item.label: item.text for item in pod_verdict(it).evidence}


def test_a_healthy_pod_is_fine_and_has_nothing_to_do() -> None:
    verdict = pod_verdict(situation())
    assert (verdict.rule, verdict.state, verdict.brief, verdict.next_step) == ("fine", "fine", "", "")
    assert "1 of 1 containers ready for 40 s" in verdict.sentence


def test_a_restarted_pod_shows_how_it_ended_before() -> None:
    it = situation(
        now=status(reported(ready=True, restart_count=1, last_state=ended(3)), is_ready=True),
        last_words={"main": "panic: no database"},
    )
    assert evidence(it)["last end"] == "container main exited with code 3"
    assert evidence(it)["last words"] == "panic: no database"


def test_a_missing_secret_is_named_with_who_needs_it() -> None:
    source = EnvVarSource(secret_key_ref=SecretKeySelector(name="db-credentials", key="password"))
    it = situation(
        pod(container(env=(EnvVar(name="DB_PASSWORD", value_from=source),))),
        status(reported(state=held("CreateContainerConfigError", 'secret "db-credentials" not found'))),
    )
    verdict = pod_verdict(it)
    assert verdict.sentence == "default/web waits for Secret default/db-credentials, which does not exist."
    assert evidence(it)["needed by"] == 'container main, env DB_PASSWORD (key "password")'
    assert verdict.rest == "admitted, volumes mounted, sandbox up (10.42.0.17), image present"
    assert verdict.next_step == "create the Secret, or mark the reference optional"


def test_a_missing_config_map_of_a_volume_is_named() -> None:
    text = 'MountVolume.SetUp failed for volume "settings" : configmap "app" not found'
    it = situation(
        now=status(reported(state=held("ContainerCreating")), phase="Pending", pod_ip=""),
        record=record(STARTED[0], waits=(waiting("back_off", text, 90),)),
    )
    assert pod_verdict(it).sentence == "default/web waits for ConfigMap default/app, which does not exist."
    assert evidence(it)["needed by"] == "volume settings"
    assert pod_verdict(it).next_step == "create the ConfigMap, or mark the reference optional"


def test_a_missing_key_is_named() -> None:
    text = "couldn't find key password in Secret default/db"
    verdict = pod_verdict(situation(now=status(reported(state=held("CreateContainerConfigError", text)))))
    assert 'key "password" of Secret default/db' in verdict.sentence


def test_another_configuration_error_quotes_the_runtime() -> None:
    text = "container has runAsNonRoot and image will run as root"
    verdict = pod_verdict(situation(now=status(reported(state=held("CreateContainerConfigError", text)))))
    assert verdict.rule == "config_error"
    assert text in verdict.sentence


def test_an_image_that_waits_for_a_credential_provider_names_it() -> None:
    on = "credential provider ecr for r.example/app"
    waits = (waiting("credentials", on, 3, container="main"),)
    it = situation(now=status(phase="Pending"), record=record(waits=waits, stations=(standing("image", 2, "main"),)))
    verdict = pod_verdict(it)
    assert (verdict.rule, verdict.state) == ("image_pulling", "starting")
    assert f"which waits for {on} " in verdict.sentence
    assert verdict.brief.endswith(on)


@pytest.mark.parametrize(
    "reason",
    [
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    ],
)
def test_every_reason_of_a_failed_image_is_explained_with_a_next_step(reason: str) -> None:
    verdict = pod_verdict(situation(now=status(reported(state=held(reason, "it said so")))))
    assert (verdict.rule, verdict.state) == ("image_failed", "failing")
    assert reason in verdict.sentence
    assert verdict.next_step


def test_an_image_in_back_off_shows_the_time_of_the_next_try() -> None:
    waits = (waiting("back_off", "pull", 95, until=120, container="main"),)
    it = situation(
        now=status(reported(state=held("ImagePullBackOff", "Back-off pulling image"))),
        record=record(*STARTED[:3], station("image", 2, 3, "main", "failed"), waits=waits),
    )
    assert pod_verdict(it).brief == "image docker.io/library/busybox:1.36: ImagePullBackOff, next try in 20 s"
    assert evidence(it)["tried"] == "once"
    assert "image present" not in pod_verdict(it).rest


PULL = 'failed to pull and unpack image "r.example/app:1": failed to resolve reference "r.example/app:1": '
HEAD = 'failed to do request: Head "https://r.example/v2/app/manifests/1": '


@pytest.mark.parametrize(
    ("chain", "cause"),
    [
        (HEAD + "dial tcp 127.0.0.1:5000: connect: connection refused", "127.0.0.1:5000 refused the connection"),
        (HEAD + "dial tcp: lookup r.example on 10.0.0.2:53: no such host", "host r.example is unknown"),
        (HEAD + "dial tcp: lookup r.example: no such host", "host r.example is unknown"),
        (HEAD + "dial tcp 192.0.2.1:443: i/o timeout", "no connection to 192.0.2.1:443: i/o timeout"),
        (
            HEAD + "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "TLS with the registry fails: certificate signed by unknown authority",
        ),
        (
            HEAD + "x509: certificate has expired or is not yet valid: current time 2026-01-01 is after 2025-01-01",
            "TLS with the registry fails: certificate has expired or is not yet valid",
        ),
        (HEAD + "http: server gave HTTP response to HTTPS client", "the registry speaks HTTP, not TLS"),
        ("r.example/app:1: not found", "the registry has no such image or tag"),
        ("unexpected status from HEAD request to https://r.example/v2: 401 Unauthorized", "(unauthorized)"),
        (
            "pull access denied, repository does not exist or may require authorization: insufficient_scope",
            "access denied: the repository does not exist or needs a login",
        ),
        (
            'Head "https://r.example/v2/denied/manifests/1": dial tcp 127.0.0.1:5000: connect: connection refused',
            "127.0.0.1:5000 refused the connection",
        ),
        ("no match for platform in manifest: not found", "the image has no variant for this node's platform"),
        ("write /var/lib/blob: no space left on device: unknown", "no space is left on the runtime's disk"),
        ("unexpected status from GET request to https://r.example: 503 Service Unavailable", "503 Service Unavailable"),
    ],
)
def test_a_failed_pull_names_its_cause_and_keeps_the_chain_as_evidence(chain: str, cause: str) -> None:
    text = f'Back-off pulling image "r.example/app:1": ErrImagePull: {PULL}{chain}'
    it = situation(
        now=status(reported(state=held("ImagePullBackOff", text))),
        record=record(*STARTED[:3], station("image", 62, 63, "main", "failed", PULL)),
    )
    verdict = pod_verdict(it)
    first, _, _ = verdict.sentence.partition(" (ImagePullBackOff)")
    assert first.startswith("default/web cannot get image docker.io/library/busybox:1.36 of container main: ")
    assert first.endswith(cause)
    assert evidence(it)["said"] == text
    assert verdict.since == START + timedelta(seconds=62)
    assert verdict.next_step


def test_the_cause_of_a_pull_comes_from_the_record_where_the_status_has_none() -> None:
    refused = PULL + HEAD + "dial tcp 127.0.0.1:5000: connect: connection refused"
    it = situation(
        now=status(reported(state=held("ImagePullBackOff", "Back-off pulling image"))),
        record=record(*STARTED[:3], station("image", 62, 63, "main", "failed", refused)),
    )
    assert "of container main: 127.0.0.1:5000 refused the connection" in pod_verdict(it).sentence
    assert evidence(it)["last error"] == refused


def test_a_crash_back_off_shows_exit_code_back_off_and_next_start() -> None:
    waits = (waiting("back_off", "restart", 60, until=140, container="main"),)
    it = situation(
        now=status(
            reported(state=held("CrashLoopBackOff", "back-off 1m20s"), last_state=ended(1), restart_count=4),
        ),
        record=record(*STARTED, waits=waits),
        last_words={"main": "panic: no database"},
    )
    verdict = pod_verdict(it)
    assert verdict.brief == "back-off after exit 1 (1 min 20 s), next start in 40 s"
    assert "restarted 4 times (next start in 40 s)" in verdict.sentence
    assert evidence(it)["last words"] == "panic: no database"
    assert evidence(it)["last run"] == "exited with code 1 40 s ago, ran 3 s"
    assert verdict.next_step == "read its log: glasslet logs default/web -c main"


def test_out_of_memory_is_called_by_its_name() -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(137, reason="OOMKilled"))
    assert "ran out of memory" in pod_verdict(situation(now=status(crashed))).sentence


def killed(message: str, at: float = 58) -> StationSpan:
    return station("stopping", at, 60, "main", detail=message)


@pytest.mark.parametrize(("probe", "code"), [("liveness", 137), ("startup", 0)])
def test_a_container_that_a_probe_killed_names_the_probe_its_answer_and_threshold(probe: str, code: int) -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(code), restart_count=2)
    failed = ChangeObserved(BASE + 57, f"{probe} probe", "", "status 503, 3 of 3 failures", "main")
    later = ChangeObserved(BASE + 90, f"{probe} probe", "", "status 500, 1 of 3 failures", "main")
    kill = killed(f"Container main failed {probe} probe, will be restarted")
    it = situation(now=status(crashed), record=record(*STARTED, failed, kill, later))
    because = f"its {probe} probe failed (status 503, 3 of 3 failures)"
    assert f"container main was killed because {because}, exit code {code}, restarted" in pod_verdict(it).sentence
    assert pod_verdict(it).brief.startswith(f"back-off after failed {probe} probe")
    assert evidence(it)["killed"] == f"42 s ago, because {because}"
    assert f"check what the {probe} probe of main checks" in pod_verdict(it).next_step


def test_the_kill_of_an_earlier_instance_is_not_blamed_for_the_last_end() -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(1))
    earlier = station("stopping", 20, 30, "main", detail="Container main failed liveness probe, will be restarted")
    it = situation(now=status(crashed), record=record(*STARTED, earlier))
    assert "main exited with code 1, restarted" in pod_verdict(it).sentence


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("Container main definition changed, will be restarted", "its definition changed"),
        ("Container main resize requires restart", "a resize requires a restart"),
        ('Container is in "unknown" state, try killing it before restart', "the runtime does not know its state"),
    ],
)
def test_a_container_that_the_agent_killed_names_the_reason(message: str, why: str) -> None:
    it = situation(now=status(reported(state=ended(143))), record=record(*STARTED, killed(message)))
    assert f"container main was killed because {why}, exit code 143" in pod_verdict(it).sentence


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("DeadlineExceeded", "the pod's deadline passed (activeDeadlineSeconds 30)"),
        ("Preempting", "the pod was preempted for a critical pod"),
        ("Evicted", "the pod was stopped (Evicted)"),
    ],
)
def test_a_container_killed_with_its_pod_names_the_reason_of_the_pod(reason: str, why: str) -> None:
    gone = status(reported(state=ended(137)), phase="Failed", reason=reason)
    it = situation(pod(active_deadline_seconds=30), gone, record=record(*STARTED, killed("Stopping container main")))
    assert evidence(it)["containers"] == f"main was killed because {why}, exit code 137"


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (126, "its command cannot be executed"),
        (127, "its command was not found"),
        (137, "signal KILL, not sent by this agent"),
        (139, "signal SEGV, a segmentation fault"),
        (143, "signal TERM, not sent by this agent"),
    ],
)
def test_exit_codes_with_a_meaning_name_it(code: int, meaning: str) -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(code))
    assert f"exited with code {code} ({meaning})" in pod_verdict(situation(now=status(crashed))).sentence


@pytest.mark.parametrize(
    ("limits", "of_pod", "words"),
    [
        ({"memory": Quantity.parse("64Mi")}, None, "its memory limit is 64Mi"),
        ({}, {"memory": Quantity.parse("1Gi")}, "the pod's memory limit is 1Gi"),
        ({}, None, "it has no memory limit, so the node itself was short of memory"),
    ],
)
def test_out_of_memory_names_the_limit(
    limits: dict[str, Quantity], of_pod: dict[str, Quantity] | None, words: str
) -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(137, reason="OOMKilled"))
    what = pod(
        container(resources=ResourceRequirements(limits=limits)),
        resources=ResourceRequirements(limits=of_pod) if of_pod is not None else None,
    )
    assert f"ran out of memory (OOMKilled; {words})" in pod_verdict(situation(what, status(crashed))).sentence


def test_a_container_that_never_ran_has_no_log_to_read() -> None:
    never = ContainerStateTerminated(exit_code=128, reason="StartError", started_at=EPOCH, finished_at=SINCE)
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ContainerState(terminated=never))
    verdict = pod_verdict(situation(now=status(crashed)))
    assert "exited with code 128 (StartError)" in verdict.sentence
    assert "glasslet logs" not in verdict.next_step


def test_a_running_init_container_is_named_with_its_place() -> None:
    it = situation(
        pod(init=(container("fetch"), container("migrate"))),
        status(
            phase="Pending",
            init_container_statuses=(reported("fetch", ended(0, reason="Completed")), reported("migrate")),
        ),
    )
    assert "waits for init container migrate (2 of 2) to finish; it has run for 40 s" in pod_verdict(it).sentence


def test_a_failed_init_container_stops_the_pod() -> None:
    it = situation(
        pod(init=(container("migrate"),)),
        status(phase="Pending", init_container_statuses=(reported("migrate", ended(3)),)),
    )
    assert pod_verdict(it).rule == "init_failed"


def test_a_sidecar_without_its_startup_probe_holds_up_the_rest() -> None:
    it = situation(
        pod(init=(sidecar("proxy", startup_probe=Probe(http_get=HTTPGetAction(path="/ok", port=8080))),)),
        status(phase="Pending", init_container_statuses=(reported("proxy", started=False),)),
    )
    assert pod_verdict(it).rule == "sidecar_not_started"
    assert evidence(it)["probe"] == "http :8080/ok"


def test_a_failing_readiness_probe_is_quoted() -> None:
    it = situation(
        pod(container(readiness_probe=Probe(http_get=HTTPGetAction(path="/ready", port=8181)))),
        status(reported(started=True)),
        record=record(*STARTED, ChangeObserved(BASE + 90, "readiness probe", "", "503, 3 of 3 failures", "main")),
    )
    assert pod_verdict(it).brief == "readiness probe http :8181/ready: 503, 3 of 3 failures"


def test_a_volume_that_fails_is_named_with_its_error() -> None:
    failed = station("volumes", 1, 2, outcome="failed", detail='hostPath "/data" does not exist')
    it = situation(
        now=status(phase="Pending", pod_ip=""),
        record=record(STARTED[0], failed, waits=(waiting("volume", "data", 2),)),
    )
    verdict = pod_verdict(it)
    assert (verdict.rule, verdict.state) == ("volume_not_ready", "failing")
    assert 'volume data, not ready for 1 min 38 s: hostPath "/data" does not exist' in verdict.sentence


def test_a_volume_that_came_right_is_not_blamed() -> None:
    failed = station("volumes", 0, 0.5, outcome="failed", detail="not yet")
    assert pod_verdict(situation(record=record(failed, *STARTED))).rule == "fine"


def test_a_pod_that_the_node_cannot_run_shows_the_reason() -> None:
    why = 'runtimeclass.node.k8s.io "sealed" not found'
    failed = station("sandbox", 1, 2, outcome="failed", detail=f"attempt 0: the sandbox cannot be configured: {why}")
    it = situation(now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], STARTED[1], failed))
    verdict = pod_verdict(it)
    assert verdict.sentence == f"default/web cannot run on this node: {why}, since 10:00:01 UTC (1 min 39 s)."
    assert verdict.brief == why


CNI = 'RunPodSandbox: failed to setup network for sandbox "0f1e": '


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        (
            CNI + 'plugin type="bridge" name="pods" failed (add): failed to allocate for range 0: no IP addresses left',
            "network plugin bridge of network pods failed: failed to allocate for range 0: no IP addresses left",
        ),
        (
            CNI + 'plugin type="flannel" failed (add): context deadline exceeded',
            "network plugin flannel did not answer (context deadline exceeded)",
        ),
        (
            CNI + 'plugin type="slow" name="pods" failed (add): netplugin failed with no error message: signal: killed',
            "network plugin slow of network pods did not answer (killed)",
        ),
        (
            CNI + 'failed to find plugin "ptp" in path [/opt/cni/bin]',
            "network plugin ptp is not installed in /opt/cni/bin",
        ),
        ("RunPodSandbox: cni plugin not initialized", "its network cannot be set up: cni plugin not initialized"),
        (
            'failed to get sandbox image "r.example/pause:3": dial tcp 127.0.0.1:5000: connect: connection refused',
            "the sandbox image r.example/pause:3 cannot be pulled: 127.0.0.1:5000 refused the connection",
        ),
        (
            "RunPodSandbox: Deadline Exceeded",
            "the runtime did not finish in time, most often because a network plugin hangs",
        ),
        ("RunPodSandbox: no such shim", "the runtime refuses it: no such shim"),
    ],
)
def test_a_sandbox_that_fails_names_the_plugin_and_the_cause(detail: str, words: str) -> None:
    failed = station("sandbox", 1, 2, outcome="failed", detail=detail)
    it = situation(now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], STARTED[1], failed))
    verdict = pod_verdict(it)
    assert verdict.sentence.startswith(f"default/web has no sandbox: {words} (tried once)")
    assert (verdict.brief, verdict.since) == (f"sandbox fails: {words}", START + timedelta(seconds=1))
    assert evidence(it)["last error"] == detail
    assert verdict.next_step


def test_a_runtime_that_is_down_comes_before_its_consequences() -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(1))
    it = situation(now=status(crashed), runtime_error="connection refused")
    assert pod_verdict(it).rule == "runtime_down"


def test_a_pod_that_is_ready_does_not_care_that_the_runtime_is_down() -> None:
    assert pod_verdict(situation(runtime_error="connection refused")).rule == "fine"


def test_a_network_that_is_not_ready_holds_up_pods_that_need_it() -> None:
    held_up = status(phase="Pending", pod_ip="")
    it = situation(now=held_up, record=record(STARTED[0]), network_error="cni plugin not initialized")
    assert pod_verdict(it).rule == "network_not_ready"
    host = situation(pod(host_network=True), held_up, record=record(STARTED[0]), network_error="cni plugin")
    assert pod_verdict(host).rule != "network_not_ready"


def test_a_successor_waits_for_the_pod_of_the_same_name() -> None:
    waits = (waiting("queue", "end of the pod of the same name (uid 12)", 90),)
    it = situation(now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], waits=waits))
    assert pod_verdict(it).sentence == (
        "default/web waits for end of the pod of the same name (uid 12) (10 s), since 10:01:30 UTC."
    )


def test_a_device_plugin_that_does_not_answer_is_named() -> None:
    wait = waiting("device", "device plugin example.com/gpu: Allocate", 60)
    found = pod_verdict(situation(now=status(), record=record(*STARTED[:1], waits=(wait,))))
    assert found.rule == "device_plugin"
    assert "waits for device plugin example.com/gpu: Allocate" in found.sentence


def test_a_pull_shows_its_image() -> None:
    it = situation(now=status(phase="Pending"), record=record(*STARTED[:3], stations=(standing("image", 88, "main"),)))
    assert pod_verdict(it).brief == "image docker.io/library/busybox:1.36: pulling"
    assert not is_settled(pod_verdict(it))


def test_a_pod_in_its_grace_period_shows_the_time_left() -> None:
    waits = (waiting("grace_period", "end of main", 95, until=125, container="main"),)
    it = situation(lifecycle="terminating", record=record(*STARTED, waits=waits))
    assert pod_verdict(it).brief == "stopping, 25 s of grace left"
    assert pod_row(it, pod_verdict(it)).phase == "Terminating"


def deleted(grace: int = 30, **fields: Any) -> Pod:
    """Deleted 90 s after START."""
    at = START + timedelta(seconds=90 + grace)
    return pod(deletion_timestamp=at, deletion_grace_period_seconds=grace, **fields)


def test_a_grace_period_names_why_since_and_when_kill_comes() -> None:
    waits = (waiting("grace_period", "end of main", 95, until=125, container="main"),)
    verdict = pod_verdict(situation(deleted(), lifecycle="terminating", record=record(*STARTED, waits=waits)))
    assert verdict.sentence.startswith(
        "default/web is being stopped because the pod was deleted: main got its stop signal 5 s ago; "
        "KILL comes at 10:02:05 UTC (in 25 s)"
    )
    assert verdict.since == START + timedelta(seconds=90)
    assert {e.label: e.text for e in verdict.evidence}["deleted"] == "at 10:01:30 UTC, grace period 30 s"


def test_a_pre_stop_hook_is_named_with_the_latest_time_of_kill() -> None:
    waits = (waiting("hook", "preStop hook of main", 92, container="main"),)
    stations = (standing("stopping", 91), standing("stopping", 92, "main"))
    it = situation(deleted(), lifecycle="terminating", record=record(*STARTED, waits=waits, stations=stations))
    assert "the preStop hook of main runs (for 8 s); KILL comes at 10:02:02 UTC (in 22 s)" in pod_verdict(it).sentence
    assert pod_verdict(it).brief == "stopping, preStop hook of main"


def test_a_pod_past_its_deadline_is_stopped_for_that() -> None:
    it = situation(
        pod(active_deadline_seconds=60), status(reported(), reason="DeadlineExceeded"), lifecycle="terminating"
    )
    assert "because the pod's deadline passed (activeDeadlineSeconds 60)" in pod_verdict(it).sentence


def test_a_deadline_that_is_to_come_is_part_of_every_verdict() -> None:
    it = situation(pod(active_deadline_seconds=300), status(reported(ready=True), is_ready=True, start_time=START))
    assert evidence(it)["deadline"] == "the pod is stopped at 10:05:00 UTC (in 3 min 20 s)"


def test_a_container_that_is_being_killed_for_its_probe_does_not_look_like_the_end_of_the_pod() -> None:
    failed = ChangeObserved(BASE + 89, "liveness probe", "", "status 503, 3 of 3 failures", "main")
    stopping = replace(
        standing("stopping", 90, "main"), detail="Container main failed liveness probe, will be restarted"
    )
    waits = (waiting("grace_period", "end of main", 90, until=120, container="main"),)
    verdict = pod_verdict(situation(record=record(*STARTED, failed, waits=waits, stations=(stopping,))))
    assert verdict.rule == "container_stopping"
    assert (
        "container main is being killed because its liveness probe failed (status 503, 3 of 3 failures): "
        "main got its stop signal 10 s ago; KILL comes at 10:02:00 UTC (in 20 s)" in verdict.sentence
    )


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (None, "readiness gate example.com/lb is not set yet"),
        (
            PodCondition(type="example.com/lb", status="False", reason="Draining", last_transition_time=SINCE),
            "readiness gate example.com/lb is False (Draining)",
        ),
    ],
)
def test_a_readiness_gate_is_named(gate: PodCondition | None, words: str) -> None:
    ready = PodCondition(type="Ready", status="False", last_transition_time=START)
    conditions = (ready, replace(ready, type="ContainersReady", status="True", last_transition_time=SINCE))
    it = situation(
        pod(readiness_gates=(PodReadinessGate(condition_type="example.com/lb"),)),
        status(reported(ready=True), conditions=(*conditions, *([gate] if gate is not None else []))),
    )
    verdict = pod_verdict(it)
    assert (verdict.rule, verdict.since) == ("readiness_gate", SINCE)
    assert f"is not ready: its containers are, but {words}" in verdict.sentence


def test_a_finalizer_keeps_a_stopped_pod() -> None:
    what = deleted()
    kept = replace(what, metadata=replace(what.metadata, finalizers=("example.com/backup",)))
    it = situation(kept, status(reported(state=ended(0)), phase="Succeeded"), lifecycle="finished", since=SINCE)
    verdict = pod_verdict(it)
    assert (verdict.rule, verdict.since) == ("finalizer", SINCE)
    assert "has stopped; its object stays until finalizer example.com/backup is removed" in verdict.sentence
    assert pod_verdict(replace(it, lifecycle="syncing")).rule != "finalizer"


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        (
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 2000, used: 500, capacity: 1000",
            "2000m of cpu are asked, 500m are free (500m of 1000m are requested by other pods)",
        ),
        (
            "OutOfmemory",
            "Node didn't have enough resource: memory, requested: 2147483648, used: 536870912, capacity: 1073741824",
            "2.0 GiB of memory are asked, 512.0 MiB are free (512.0 MiB of 1.0 GiB are requested by other pods)",
        ),
        (
            "OutOfpods",
            "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110",
            "all 110 places for pods are taken",
        ),
        ("SysctlForbidden", 'forbidden sysctl: "kernel.x" not allowed', 'forbidden sysctl: "kernel.x" not allowed'),
    ],
)
def test_a_rejection_says_what_did_not_fit(reason: str, message: str, words: str) -> None:
    refused = PodStatus(phase="Failed", reason=reason, message=f"Pod was rejected: {message}")
    verdict = pod_verdict(situation(now=refused, record=record(Decided(BASE + 9, "rejected"))))
    assert verdict.sentence.startswith(f"default/web was rejected by this node: {words} ({reason})")
    assert (verdict.rule, verdict.since) == ("rejected", START + timedelta(seconds=9))
    assert evidence(situation(now=refused))["said"] == message
    assert "glasslet logs" not in verdict.next_step


def test_a_rejection_names_what_the_record_holds_of_the_misfit() -> None:
    message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    refused = PodStatus(phase="Failed", reason="NodePorts", message=f"Pod was rejected: {message}")
    held_by = "host port 80/TCP is held by pod default/other"
    noted = Decided(BASE + 8, "does not fit", "", (("because", held_by),))
    verdict = pod_verdict(situation(now=refused, record=record(noted, Decided(BASE + 9, "rejected"))))
    assert verdict.sentence.startswith(f"default/web was rejected by this node: {held_by} (NodePorts)")


def test_a_sentence_ends_with_the_time_since_when_it_holds() -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(1))
    it = situation(now=status(crashed))
    assert pod_verdict(it).sentence.endswith(", restarted 0 times, since 10:01:00 UTC (40 s).")
    tomorrow = replace(it, now=NOW + timedelta(days=1))
    assert pod_verdict(tomorrow).sentence.endswith(", since 2026-01-01 10:01:00 UTC (1 d).")


def test_a_runtime_that_is_down_says_since_when() -> None:
    agent = record(
        ChangeObserved(BASE + 1, "runtime", "container runtime status check may not have completed yet", "ready"),
        ChangeObserved(BASE + 60, "runtime", "ready", "container runtime is down"),
        ChangeObserved(BASE + 70, "runtime", "container runtime is down", "container runtime not ready"),
    )
    since = condition_since(agent, "runtime")
    it = situation(now=status(reported()), runtime_error="container runtime is down", runtime_since=since)
    assert pod_verdict(it).sentence.endswith("container runtime is down, since 10:01:00 UTC (40 s).")
    assert condition_since(agent, "runtime network") is None


def test_a_container_that_cannot_be_created_says_since_when() -> None:
    failed = [station("created", at, at + 1, "main", "failed", "no such user") for at in (60, 70)]
    refused = status(reported(state=held("CreateContainerError", "no such user")))
    assert pod_verdict(situation(now=refused, record=record(*STARTED, *failed))).since == SINCE


def test_a_finished_pod_shows_its_exit_codes() -> None:
    it = situation(pod(restart_policy="Never"), status(reported(state=ended(3)), phase="Failed"))
    verdict = pod_verdict(it)
    assert (verdict.state, verdict.rule) == ("ended", "failed")
    assert "main exited with code 3" in verdict.sentence
    done = situation(now=status(reported(state=ended(0, reason="Completed")), phase="Succeeded"))
    assert pod_verdict(done).rule == "succeeded"


def test_a_container_that_stays_down_shows_the_restart_policy() -> None:
    it = situation(
        pod(container(), container("other"), restart_policy="Never"),
        status(reported(state=ended(2)), reported("other", ready=True)),
    )
    assert "exited with code 2 40 s ago and stays down (restart policy Never)" in pod_verdict(it).sentence


def test_any_other_wait_is_named() -> None:
    it = situation(now=status(phase="Pending"), record=record(waits=(waiting("api_call", "GET secrets", 99),)))
    assert pod_verdict(it).sentence == (
        "default/web waits for the API server's answer to GET secrets (1 s), since 10:01:39 UTC."
    )


def test_without_a_wait_the_present_station_is_named() -> None:
    it = situation(now=status(phase="Pending"), record=record(stations=(standing("cgroup", 99),)))
    assert pod_verdict(it).brief == "cgroup"


def test_a_pod_without_any_facts_has_the_verdict_unknown() -> None:
    verdict = pod_verdict(situation(now=PodStatus(), record=record()))
    assert verdict.rule == "unknown"


def test_a_removed_pod_is_explained_from_its_record() -> None:
    verdict = removed(record(*STARTED, station("gone", 50, 60)), NOW)
    assert verdict.sentence == "default/web was removed, 40 s ago."


def test_a_row_counts_sidecars_as_containers_but_not_init_containers() -> None:
    it = situation(
        pod(init=(container("fetch"), sidecar("proxy"))),
        status(
            reported(ready=True, restart_count=2),
            init_container_statuses=(
                reported("fetch", ended(0), restart_count=1),
                reported("proxy", ready=True),
            ),
            is_ready=True,
        ),
    )
    row = pod_row(it, pod_verdict(it))
    assert (row.ready, row.containers, row.restarts) == (2, 2, 3)


def test_a_description_lists_containers_before_anything_was_reported() -> None:
    it = situation(pod(init=(container("fetch"), sidecar("proxy"))), PodStatus())
    kinds = [(row.name, row.kind, row.state) for row in pod_description(it, pod_verdict(it), source="file").containers]
    assert kinds == [("fetch", "init", "unknown"), ("proxy", "sidecar", "unknown"), ("main", "main", "unknown")]


def test_a_description_shows_the_last_end_of_a_container() -> None:
    it = situation(now=status(reported(state=held("CrashLoopBackOff"), last_state=ended(7))))
    (row,) = pod_description(it, pod_verdict(it), source="file").containers
    assert (row.state, row.reason, row.last_exit_code) == ("waiting", "CrashLoopBackOff", 7)


def test_environment_values_are_in_no_answer() -> None:
    it = situation(pod(container(env=(EnvVar(name="PASSWORD", value="hunter2"),))), PodStatus())
    assert "hunter2" not in repr(pod_description(it, pod_verdict(it), source="file"))


def test_waits_of_the_api_about_a_missing_object_are_counted() -> None:
    asked = waited("api_call", "GET /api/v1/namespaces/default/secrets/db", 90, 91)
    it = situation(
        now=status(reported(state=held("CreateContainerConfigError", 'secret "db" not found'))),
        record=record(*STARTED, asked),
    )
    assert evidence(it)["requested"] == "1 times, last 9 s ago"
    assert replace(pod_verdict(it), rest="").rule == "missing_object"


def test_what_hangs_comes_before_everything_but_the_end() -> None:
    hanging = Stuck(WaitKind.CRI_CALL, "CreateContainer", BASE + 10, 180.0, "main")
    dump = ChangeObserved(BASE + 95, "task pod default/web", "", "pods/worker.py:1 run < pods/sync.py:2 settle")
    early = ChangeObserved(BASE + 1, "task of long ago", "", "nowhere")
    it = situation(now=status(reported(state=held("ContainerCreating"))), record=record(*STARTED, early, dump))
    verdict = pod_verdict(replace(it, stuck=hanging))
    assert (verdict.rule, verdict.state) == ("no_progress", "failing")
    assert "the runtime's answer to CreateContainer (container main) takes 1 min 30 s" in verdict.sentence
    assert {e.label: e.text for e in verdict.evidence} == {"task pod default/web": dump.new}
    assert pod_verdict(replace(it, stuck=hanging, lifecycle="terminating")).rule == "no_progress"
    assert pod_verdict(it).rule != "no_progress"


def test_probes_take_one_row_of_a_description_and_push_nothing_out() -> None:
    rounds = [waited("probe", "readiness of main", 10 * n, 10 * n + 10) for n in range(1, 60)]
    calls = [waited("cri_call", "ExecSync", 10 * n, 10 * n + 1, "probes") for n in range(1, 60)]
    it = situation(record=replace(record(*STARTED, *rounds, *calls), routine=500))
    rows = pod_description(it, pod_verdict(it), source="file").timeline
    assert [row.text for row in rows] == ["admitted", "volumes", "sandbox", "image", "probes: 500 waits since then"]


def test_many_rows_leave_room_for_that_of_the_probes() -> None:
    many = [station("planned", n, n) for n in range(100)]
    it = situation(record=record(*many, waited("probe", "readiness of main", 1, 11)))
    rows = pod_description(it, pod_verdict(it), source="file").timeline
    assert (len(rows), rows[0].text) == (40, "probes: 1 waits since then")
