"""Configuration data on a real API server and a real runtime: what a container reads and sees in its environment."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_api_pods import api_pod
from tests.fakes.agent import Agent
from tests.fakes.control_plane import ControlPlane, is_ready, phase

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

VOLUME = "/etc/data"


@pytest.fixture(autouse=True)
def _cleared(controlplane: ControlPlane) -> Iterator[None]:
    yield
    controlplane.kubectl("delete", "configmap,secret", "-l", "test=data", "--ignore-not-found")


def data_object(kind: str, name: str, **data: str) -> dict[str, Any]:
    field = "stringData" if kind == "Secret" else "data"
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": {"test": "data"}}, field: data}


def with_volume(name: str, source: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod that runs for ever with one volume."""
    body = api_pod(name, volumes=[{"name": "v", **source}], **spec)
    body["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": VOLUME}]
    return body


def run(plane: ControlPlane, pod: str, command: str) -> str:
    return plane.kubectl("exec", pod, "--", "sh", "-c", command)


def text_of(path: Path) -> str:
    """Of a file that is replaced at times; "" while it is not there."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def within(seconds: float, happens: Callable[[], bool]) -> None:
    """Waits until it happens."""
    began = time.monotonic()
    while not happens():
        assert time.monotonic() - began < seconds, f"did not happen in {seconds} s"
        time.sleep(0.05)


def test_environment_comes_from_every_source(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(
        data_object("ConfigMap", "settings", MODE="fast"), data_object("Secret", "db", password="hunter2")
    )
    body = api_pod("env")
    body["spec"]["containers"][0] |= {
        "envFrom": [{"prefix": "C_", "configMapRef": {"name": "settings"}}],
        "env": [
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "x", "optional": True}}},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "ALL", "value": "$(NAME)-$(C_MODE)"},
        ],
    }
    controlplane.apply(body)
    controlplane.wait_for("env", is_ready)
    lines = run(controlplane, "env", "env").splitlines()
    assert {"C_MODE=fast", "PASSWORD=hunter2", "NAME=env", "ALL=env-fast"} <= set(lines)
    assert not [line for line in lines if line.startswith("NONE")]
    assert "KUBERNETES_SERVICE_PORT=443" in lines
    assert [path for path, content in cluster_agent.own_files() if b"hunter2" in content] == []


def test_a_changed_config_map_reaches_a_running_container_before_the_pod_is_looked_at_again(
    controlplane: ControlPlane, cluster_agent: Agent
) -> None:
    controlplane.apply(data_object("ConfigMap", "settings", mode="1", gone="x"))
    controlplane.apply(with_volume("follows", {"configMap": {"name": "settings"}}))
    controlplane.wait_for("follows", is_ready)
    (shown,) = Path(cluster_agent.root, "pods").glob("*/volumes/kubernetes.io~configmap/v")
    assert run(controlplane, "follows", f"cat {VOLUME}/mode") == "1"
    controlplane.kubectl("patch", "configmap", "settings", "--type=merge", "-p", '{"data":{"mode":"2","gone":null}}')
    within(40, lambda: text_of(shown / "mode") == "2")
    assert run(controlplane, "follows", f"cat {VOLUME}/mode; ls {VOLUME}") == "2mode\n"


def test_a_missing_secret_is_told_and_its_arrival_noticed(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(with_volume("waits", {"secret": {"secretName": "late"}}))
    message = 'MountVolume.SetUp failed for volume "v" : secret "late" not found'
    controlplane.wait_for_event("waits", "FailedMount", message)
    time.sleep(5)
    controlplane.apply(data_object("Secret", "late", key="here"))
    controlplane.wait_for("waits", is_ready)
    assert run(controlplane, "waits", f"cat {VOLUME}/key; stat -f -c %T {VOLUME}") == "heretmpfs\n"


def test_the_token_of_a_pod_is_good_for_the_api_server(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("robot", automountServiceAccountToken=True))
    controlplane.wait_for("robot", is_ready)
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    assert sorted(run(controlplane, "robot", f"ls {folder}").split()) == ["ca.crt", "namespace", "token"]
    assert run(controlplane, "robot", f"cat {folder}/namespace") == "default"
    token = run(controlplane, "robot", f"cat {folder}/token")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = json.loads(controlplane.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(review)))["status"]
    assert status["user"]["username"] == "system:serviceaccount:default:default"
    assert status["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["robot"]
    assert token not in cluster_agent.log.read_text()


def test_labels_of_a_pod_follow_it_into_its_volume(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    controlplane.apply(with_volume("labelled", {"downwardAPI": {"items": items}}))
    controlplane.wait_for("labelled", is_ready)
    controlplane.kubectl("label", "pod", "labelled", "tier=gold")
    within(120, lambda: run(controlplane, "labelled", f"cat {VOLUME}/labels") == 'tier="gold"')


def test_nothing_is_left_of_many_volumes(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    """1. 5 pods with 50 ConfigMaps each start at once. 2. An update is reflected in all. 3. They go without a trace."""
    names = [f"c{number}" for number in range(50)]
    controlplane.apply(*(data_object("ConfigMap", name, key="1") for name in names))
    pods = [f"many{number}" for number in range(5)]
    for pod in pods:
        body = api_pod(pod, volumes=[{"name": name, "configMap": {"name": name}} for name in names])
        mounts = [{"name": name, "mountPath": f"/data/{name}"} for name in names]
        body["spec"]["containers"][0]["volumeMounts"] = mounts
        controlplane.apply(body)
    for pod in pods:
        controlplane.wait_for(pod, is_ready, seconds=120)
    controlplane.apply(*(data_object("ConfigMap", name, key="2") for name in names))
    root = Path(cluster_agent.root, "pods")
    shown = list(root.glob("*/volumes/kubernetes.io~configmap/*/key"))
    assert len(shown) == 250
    within(120, lambda: all(text_of(path) == "2" for path in shown))
    controlplane.kubectl("delete", "pod", *pods)
    within(120, lambda: list(root.iterdir()) == [])
    assert str(root) not in Path("/proc/self/mountinfo").read_text()


def test_a_node_may_do_all_that_was_asked_for(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(data_object("Secret", "db", key="x"))
    controlplane.apply(with_volume("reads", {"secret": {"secretName": "db"}}))
    controlplane.wait_for("reads", lambda found: phase(found) == "Running")
    assert [one for one in controlplane.refusals() if "secrets" in one or "configmaps" in one] == []
