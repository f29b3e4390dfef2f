"""Why a pod is as it is: from the same healthy pod, one thing changed at a time."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from msgspec.structs import replace

from glasslet.api.env import EnvVar, EnvVarSource, SecretKeySelector
from glasslet.api.lifecycle import HTTPGetAction, Probe
from glasslet.api.pod_status import (
    PodStatus,
)
from glasslet.glass.pod_rows import pod_description, pod_row
from glasslet.glass.stuck import Stuck
from glasslet.glass.verdicts.causes import Cause
from glasslet.glass.verdicts.ending import removed
from glasslet.glass.verdicts.pod_rules import pod_verdict
from glasslet.record.events import ChangeObserved
from glasslet.record.stations import WaitKind
from tests.builders.pod import container, pod, sidecar
from tests.builders.record import BASE, START, record, standing, station, waited, waiting
from tests.builders.verdicts import (
    NOW,
    SINCE,
    STARTED,
    ended,
    evidence,
    held,
    reported,
    situation,
    status,
)


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


def test_the_process_below_a_call_that_lasts_is_named() -> None:
    it = situation(
        now=status(phase="Pending", pod_ip=""),
        record=record(waits=(waiting("cri_call", "RunPodSandbox", 2),)),
        beneath=("network plugin slow (pid 7) has run ADD for 41 s",),
    )
    assert "RunPodSandbox (1 min 38 s); below it network plugin slow (pid 7) has run ADD" in pod_verdict(it).sentence
    assert "look at that process" in pod_verdict(it).next_step


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (("cri_call", "RunPodSandbox"), "RunPodSandbox (1 min 38 s of at most 4 min)"),
        (("cri_call", "CreateContainer"), "CreateContainer (1 min 38 s of at most 2 min)"),
        (("cri_call", "StopContainer"), "StopContainer (1 min 38 s)"),
        (("api_call", "GET secret"), "GET secret (1 min 38 s)"),
    ],
)
def test_a_call_that_lasts_is_named_with_its_time_and_its_limit(wait: tuple[str, str], words: str) -> None:
    it = situation(
        now=status(phase="Pending", pod_ip=""), record=record(waits=(waiting(*wait, 2),)), request_seconds=120.0
    )
    verdict = pod_verdict(it)
    assert words in verdict.sentence
    assert ("gives it up" in verdict.next_step) == ("at most" in words)


def test_the_process_that_works_in_the_volumes_of_a_stopped_pod_is_named() -> None:
    it = situation(lifecycle="terminated", holders=("sleep (pid 7)",))
    assert "its volumes are busy: sleep (pid 7) works in them" in pod_verdict(it).sentence
    assert "end the processes" in pod_verdict(it).next_step


def test_another_configuration_error_quotes_the_runtime() -> None:
    text = "the device of this container is gone"
    verdict = pod_verdict(situation(now=status(reported(state=held("CreateContainerConfigError", text)))))
    assert verdict.rule == "config_error"
    assert text in verdict.sentence


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
    assert 'volume data: hostPath "/data" does not exist; a call runs for 1 min 38 s' in verdict.sentence


def test_a_volume_that_no_controller_attaches_is_named_with_its_driver_and_the_attachers_error() -> None:
    wait = waiting("volume", "volume kubernetes.io/csi/d.example^h1: attached by the controller", 2)
    it = situation(now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], waits=(wait,)))
    verdict = pod_verdict(it)
    assert (verdict.rule, verdict.state) == ("volume_not_ready", "waiting")
    assert "volume h1 of CSI driver d.example, which the controller has not attached to this node" in verdict.sentence
    assert "kubectl get volumeattachments" in verdict.next_step
    said = "volume x is not attached according to the node's status: rpc error: code = ResourceExhausted desc = full"
    failed = station("volumes", 1, 2, outcome="failed", detail=said)
    later = pod_verdict(
        situation(now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], failed, waits=(wait,)))
    )
    assert later.state == "failing"
    assert "its driver has no room for another volume [ResourceExhausted]: full" in later.sentence


def test_a_secret_of_a_driver_is_looked_for_in_its_own_namespace() -> None:
    text = (
        'MountVolume.MountDevice failed for volume "pv1" : fetching NodeStageSecretRef vault/key failed: '
        'kubernetes.io/csi: failed to find the secret key in the namespace vault with error: secrets "key" not found'
    )
    waits = (waiting("back_off", text, 90),)
    verdict = pod_verdict(situation(now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], waits=waits)))
    assert verdict.rule == "missing_object"
    assert "waits for Secret vault/key, which does not exist" in verdict.sentence
    assert "optional" not in verdict.next_step


def test_a_call_of_a_csi_driver_that_lasts_is_named_with_its_volume() -> None:
    call = waiting("csi_call", "CSI driver d.example: NodeStageVolume of volume pv1", 2)
    it = situation(now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], waits=(call,)))
    verdict = pod_verdict(it)
    assert (verdict.rule, verdict.state) == ("volume_not_ready", "waiting")
    assert "volume pv1; CSI driver d.example: NodeStageVolume runs for 1 min 38 s" in verdict.sentence


def test_a_call_of_a_csi_driver_that_failed_is_told_in_words() -> None:
    said = 'MountVolume.MountDevice failed for volume "pv1" : rpc error: code = Unavailable desc = refused'
    failed = station("volumes", 1, 2, outcome="failed", detail=said)
    tried = waited("csi_call", "CSI driver d.example: NodeStageVolume of volume pv1", 1, 2, "volumes")
    call = msgspec.structs.replace(tried, outcome="failed")
    it = situation(now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], call, failed))
    verdict = pod_verdict(it)
    assert "CSI driver d.example (NodeStageVolume) does not answer at its socket" in verdict.sentence
    assert "driver's pod on this node runs" in verdict.next_step


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


def test_a_sentence_ends_with_the_time_since_when_it_holds() -> None:
    crashed = reported(state=held("CrashLoopBackOff"), last_state=ended(1))
    it = situation(now=status(crashed))
    assert pod_verdict(it).sentence.endswith(", restarted 0 times, since 10:01:00 UTC (40 s).")
    tomorrow = replace(it, now=NOW + timedelta(days=1))
    assert pod_verdict(tomorrow).sentence.endswith(", since 2026-01-01 10:01:00 UTC (1 d).")


def test_a_runtime_that_is_down_is_named_with_its_cause_and_since_when() -> None:
    cause = Cause("the container runtime does not run: no process listens on /run/c.sock", "start it")
    it = situation(
        now=status(reported()), runtime_error="container runtime is down", runtime_cause=cause, runtime_since=SINCE
    )
    verdict = pod_verdict(it)
    assert verdict.sentence.endswith("no process listens on /run/c.sock, since 10:01:00 UTC (40 s).")
    assert verdict.next_step == "start it; the pod goes on by itself"


def test_a_container_that_cannot_be_created_says_since_when() -> None:
    failed = [station("created", at, at + 1, "main", "failed", "no such user") for at in (60, 70)]
    refused = status(reported(state=held("CreateContainerError", "no such user")))
    assert pod_verdict(situation(now=refused, record=record(*STARTED, *failed))).since == SINCE


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


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            'failed to fetch PVC from API server: persistentvolumeclaims "disk" not found',
            "waits for volume data: the claim does not exist",
        ),
        ("PVC is not bound", "the claim is not bound to a PersistentVolume yet"),
        ("configmap references non-existent config key: a", "its ConfigMap has no key a"),
        ("references non-existent secret key: a", "its Secret has no key a"),
        (
            'failed to fetch token: serviceaccounts "web" not found',
            "there is no token, because ServiceAccount web does not exist",
        ),
        ("failed to fetch token: forbidden: no", "the API server gives no token: forbidden: no"),
        (
            "driver name d.example not found in the list of registered CSI drivers",
            "CSI driver d.example is not registered on this node",
        ),
    ],
)
def test_causes_in_the_go_kubelets_words_are_told_in_plain_ones(said: str, words: str) -> None:
    failed = station("volumes", 0, 1, outcome="failed", detail=f'MountVolume.SetUp failed for volume "data" : {said}')
    verdict = pod_verdict(situation(now=status(phase="Pending", pod_ip=""), record=record(STARTED[0], failed)))
    assert words in verdict.sentence
    assert verdict.next_step
