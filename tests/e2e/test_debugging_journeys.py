"""The breakpoints that people set in a Go kubelet to learn how it works, each as one break for one pod, while the node
stays Ready. docs/howto/from-delve-to-breaks.md and docs/howto/follow-a-pod-by-breaks.md go the same ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from glasslet.answers.stops import ReleasedAnswer
from tests.e2e.test_api_pods import api_pod, wait_until
from tests.e2e.test_stops import client, glasslet, held_at, probed, until_held
from tests.fakes.agent import NODE, Agent
from tests.fakes.control_plane import ControlPlane, is_ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]


def hold(agent: Agent, place: str, pod: str, *more: str) -> None:
    said = glasslet(agent, "break", place, "--pod", f"default/{pod}", *more)
    assert said.startswith("break "), said


def look(agent: Agent, pod: str, path: str) -> Any:
    return json.loads(glasslet(agent, "inspect", f"default/{pod}", path, "-o", "json"))


def go_on(agent: Agent, pod: str, plane: ControlPlane) -> None:
    client(agent).delete("/breaks", ReleasedAnswer)
    plane.wait_for(pod, is_ready)
    node = plane.get("node", NODE)
    assert is_ready(node)


# -- five places in the code that make a pod run -----------------------------------------------------------------------


def test_the_sync_of_a_new_pod_shows_the_pod_its_status_and_what_is_to_be_done(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    hold(cluster_agent, "plan", "nginx")
    controlplane.apply(api_pod("nginx"))
    until_held(cluster_agent, "nginx")
    assert look(cluster_agent, "nginx", ".pod.metadata.name") == "nginx"
    assert look(cluster_agent, "nginx", ".status.phase") == "Pending"
    actions = look(cluster_agent, "nginx", ".plan.actions")
    assert [one["action"] for one in actions] == ["PreparePod", "CreateSandbox"]
    assert {"name": "sandbox", "value": "there is none", "tipped": True} in actions[1]["because"]
    go_on(cluster_agent, "nginx", controlplane)


def test_one_call_of_the_runtime_shows_its_request(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    hold(cluster_agent, "cri:CreateContainer", "nginx-cri")
    controlplane.apply(api_pod("nginx-cri"))
    until_held(cluster_agent, "nginx-cri")
    request = look(cluster_agent, "nginx-cri", ".request")
    assert request["podSandboxId"] == look(cluster_agent, "nginx-cri", ".observed.sandboxes[0].id")
    assert request["config"]["metadata"]["name"] == "main"
    assert request["config"]["image"]["image"]
    go_on(cluster_agent, "nginx-cri", controlplane)


def test_the_mount_of_a_claim_shows_the_volume_before_and_its_path_after(
    controlplane: ControlPlane, cluster_agent: Agent, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeMode": "Filesystem"}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "journey"},
        "spec": {
            **spec,
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": str(disk)},
            "claimRef": {"namespace": "default", "name": "test-pvc"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "test-pvc"},
        "spec": {**spec, "volumeName": "journey", "resources": {"requests": {"storage": "1Gi"}}},
    }
    claims = {"name": "data", "persistentVolumeClaim": {"claimName": "test-pvc"}}
    pod = api_pod("test-pod", volumes=[claims])
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    hold(cluster_agent, "volumes", "test-pod")
    hold(cluster_agent, "volumes", "test-pod", "--after")
    controlplane.apply(volume, claim, pod)
    until_held(cluster_agent, "test-pod")
    assert look(cluster_agent, "test-pod", ".pod.spec.volumes[0].persistentVolumeClaim.claimName") == "test-pvc"
    assert look(cluster_agent, "test-pod", ".volumes") == {}
    glasslet(cluster_agent, "continue", "test-pod")
    wait_until(lambda: look(cluster_agent, "test-pod", ".after"))
    glasslet(cluster_agent, "continue", "test-pod")
    go_on(cluster_agent, "test-pod", controlplane)
    assert look(cluster_agent, "test-pod", ".volumes.data.path") == str(disk)
    controlplane.kubectl("delete", "pod", "test-pod", "--grace-period=1")
    controlplane.kubectl("delete", "pvc/test-pvc", "pv/journey", "--wait=false")


def test_a_liveness_probe_shows_what_is_probed_and_then_its_answer(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    pod = api_pod("liveness-test", "trap 'exit 0' TERM; touch /tmp/fine; while :; do sleep 0.1; done")
    main = pod["spec"]["containers"][0]
    main["livenessProbe"] = {"exec": {"command": ["cat", "/tmp/fine"]}, "periodSeconds": 1, "failureThreshold": 1}
    controlplane.apply(pod)
    controlplane.wait_for("liveness-test", is_ready)
    hold(cluster_agent, "probes", "liveness-test", "--when", 'probe.kind == "liveness"', "--once")
    until_held(cluster_agent, "liveness-test")
    assert look(cluster_agent, "liveness-test", ".probe.kind") == "liveness"
    assert look(cluster_agent, "liveness-test", ".container") == "main"
    assert look(cluster_agent, "liveness-test", ".probe.spec.exec.command") == ["cat", "/tmp/fine"]
    failed = 'probe.kind == "liveness" && probe.verdict == "failure"'
    hold(cluster_agent, "probes", "liveness-test", "--after", "--when", failed, "--once")
    glasslet(cluster_agent, "continue", "liveness-test")
    controlplane.kubectl("exec", "liveness-test", "--", "rm", "/tmp/fine")
    until_held(cluster_agent, "liveness-test")
    assert look(cluster_agent, "liveness-test", ".probe.verdict") == "failure"
    hold(cluster_agent, "plan", "liveness-test", "--when", 'plan.actions.exists(a, a.action == "KillContainer")')
    glasslet(cluster_agent, "continue", "liveness-test")
    wait_until(lambda: held_at(cluster_agent).get("liveness-test") == "plan")
    kill = look(cluster_agent, "liveness-test", ".plan.actions[0]")
    assert (kill["action"], kill["container"]) == ("KillContainer", "main")
    assert {"name": "liveness probe", "value": "failed 1 times in a row", "tipped": True} in kill["because"]
    go_on(cluster_agent, "liveness-test", controlplane)


def test_a_change_in_the_runtime_shows_in_the_next_plan(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("crashes", "sleep 3; exit 3"))
    exited = 'observed.containers.exists(c, c.name == "main" && c.phase == "exited")'
    hold(cluster_agent, "plan", "crashes", "--when", exited, "--once")
    until_held(cluster_agent, "crashes")
    ended = look(cluster_agent, "crashes", ".observed.containers[0]")
    assert (ended["phase"], ended["exitCode"]) == ("exited", 3)
    assert look(cluster_agent, "crashes", ".observed.observedAt")
    (start,) = look(cluster_agent, "crashes", ".plan.actions")
    assert [one["value"] for one in start["because"] if one["tipped"]] == ["exited with code 3 (Error)", "Always"]
    client(cluster_agent).delete("/breaks", ReleasedAnswer)
    controlplane.wait_for("crashes", lambda found: found and found["status"]["containerStatuses"][0]["restartCount"])


# -- the way of a pod from the API server to its end -------------------------------------------------------------------


def test_a_pod_comes_from_the_watch_is_merged_and_gets_a_worker(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    hold(cluster_agent, "seen", "arrives")
    controlplane.apply(api_pod("arrives"))
    until_held(cluster_agent, "arrives")
    found = controlplane.get("pod", "arrives")
    assert found is not None
    assert [one["type"] for one in found["status"]["conditions"]] == ["PodScheduled"]
    assert look(cluster_agent, "arrives", ".source") == "api"
    way: list[str] = []
    for _ in range(3):
        way.append(held_at(cluster_agent)["arrives"])
        glasslet(cluster_agent, "step", "arrives")
    assert way == ["seen", "merged", "woken"]
    assert held_at(cluster_agent)["arrives"] == "admitted"
    assert any("pods/worker.py" in frame for frame in look(cluster_agent, "arrives", ".stack"))
    glasslet(cluster_agent, "continue", "arrives")
    go_on(cluster_agent, "arrives", controlplane)


def test_the_containers_of_a_pod_are_made_one_step_after_the_other(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    hold(cluster_agent, "planned", "made", "--once")
    controlplane.apply(probed("made"))
    until_held(cluster_agent, "made")
    way: list[str] = []
    while (place := held_at(cluster_agent).get("made")) is not None and len(way) < 40:
        way.append(place)
        glasslet(cluster_agent, "step", "made")
    known = ["planned", "cgroup", "volumes", "sandbox", "plan", "planned", "init", "image", "created", "started"]
    assert way[: len(known)] == known
    # The init container runs to its end; then the pod goes on from station to station.
    glasslet(cluster_agent, "continue", "made")
    go_on(cluster_agent, "made", controlplane)


def test_the_status_is_held_before_the_api_server_gets_it(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    hold(cluster_agent, "status", "tells", "--when", 'newStatus.phase == "Running"')
    controlplane.apply(api_pod("tells"))
    until_held(cluster_agent, "tells")
    found = controlplane.get("pod", "tells")
    assert found is not None
    assert found["status"]["phase"] == "Pending"
    assert look(cluster_agent, "tells", ".newStatus.phase") == "Running"
    go_on(cluster_agent, "tells", controlplane)


def test_a_deleted_pod_is_held_before_its_containers_are_stopped_and_before_its_object_is_deleted(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    controlplane.apply(api_pod("leaves"))
    controlplane.wait_for("leaves", is_ready)
    hold(cluster_agent, "stopping", "leaves", "--once")
    hold(cluster_agent, "gone", "leaves")
    controlplane.kubectl("delete", "pod", "leaves", "--wait=false")
    wait_until(lambda: held_at(cluster_agent).get("leaves") == "stopping")
    assert look(cluster_agent, "leaves", ".lifecycle") == "terminating"
    assert look(cluster_agent, "leaves", ".observed.containers[0].phase") == "running"
    glasslet(cluster_agent, "continue", "leaves")
    wait_until(lambda: held_at(cluster_agent).get("leaves") == "gone")
    assert look(cluster_agent, "leaves", ".observed.containers[0].phase") == "exited"
    assert controlplane.get("pod", "leaves") is not None
    client(cluster_agent).delete("/breaks", ReleasedAnswer)
    controlplane.wait_for("leaves", lambda found: found is None)
    assert is_ready(controlplane.get("node", NODE))


def test_a_condition_picks_the_one_pod_of_several_that_one_wants_to_see(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    said = glasslet(cluster_agent, "break", "sandbox", "--when", 'name == "mine" && pod.spec.restartPolicy == "Always"')
    assert said.startswith("break 1")
    controlplane.apply(api_pod("mine"), api_pod("yours"))
    controlplane.wait_for("yours", is_ready)
    assert set(held_at(cluster_agent)) == {"mine"}
    go_on(cluster_agent, "mine", controlplane)
