"""Volumes of a CSI driver on a real API server with its attach/detach controller, and a real runtime. The driver is a
process of ours; the test is the external attacher."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod
from tests.e2e.test_volumes import mounted_below
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, is_ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

DRIVER = "d.example"
UNIQUE = f"kubernetes.io/csi/{DRIVER}^h1"


@contextmanager
def driver(agent: Agent, log: Path) -> Iterator[None]:
    words = [sys.executable, "-m", "tests.fakes.csi_driver", "--root", str(agent.root), "--node", "node-id"]
    process = subprocess.Popen([*words, "--log", str(log), "--expand", "--stats"], cwd=Path(__file__).parents[2])
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture(autouse=True)
def _cleared(controlplane: ControlPlane) -> Iterator[None]:
    yield
    for kind, name in (("pvc", "csi-claim"), ("pv", "csi-volume"), ("csidriver", DRIVER)):
        if controlplane.get(kind, name) is not None:
            controlplane.kubectl("delete", kind, name, "--wait=false")
            controlplane.kubectl(
                "patch", kind, name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}', check=False
            )
    controlplane.kubectl("delete", "csinode", "--all", "--wait=false", check=False)
    controlplane.kubectl("delete", "volumeattachment", "--all", "--wait=false", check=False)


@pytest.fixture
def member(controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path) -> Iterator[Agent]:
    agent = cluster_member(controlplane, containerd, tmp_path, syncFrequency="2s", volumeStatsAggPeriod="1s")
    with joined(controlplane, containerd, agent):
        yield agent


def until(happens: Callable[[], object], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.1)


def calls(log: Path) -> list[str]:
    found = log.read_text().split() if log.exists() else []
    return [method for method in found if method != "NodeGetVolumeStats"]


def volume_and_claim(size: str = "1Gi") -> list[dict[str, Any]]:
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    source = {"driver": DRIVER, "volumeHandle": "h1", "fsType": "ext4"}
    reference = {"namespace": "default", "name": "csi-claim"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "csi-volume"},
            "spec": spec | {"capacity": {"storage": size}, "csi": source, "claimRef": reference},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "csi-claim", "namespace": "default"},
            "spec": spec | {"volumeName": "csi-volume", "resources": {"requests": {"storage": size}}},
        },
    ]


def pod_with(volume: dict[str, Any], **spec: Any) -> dict[str, Any]:
    body = api_pod("db", nodeName=NODE, volumes=[{"name": "data", **volume}], **spec)
    body["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return body


def csi_driver(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec}


def status_of_node(plane: ControlPlane) -> dict[str, Any]:
    found: dict[str, Any] = (plane.get("node", NODE) or {}).get("status", {})
    return found


def test_a_driver_is_in_csinode_and_on_the_node(controlplane: ControlPlane, member: Agent, tmp_path: Path) -> None:
    with driver(member, tmp_path / "calls"):
        until(lambda: (controlplane.get("csinode", NODE) or {}).get("spec", {}).get("drivers"))
        found = controlplane.get("csinode", NODE)
        node = controlplane.get("node", NODE)
        assert found is not None
        assert node is not None
        (shown,) = found["spec"]["drivers"]
        topology = f"topology.{DRIVER}/node"
        assert shown == {
            "name": DRIVER,
            "nodeID": "node-id",
            "topologyKeys": [topology],
            "allocatable": {"count": 5},
        }
        assert found["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
        assert node["metadata"]["labels"][topology] == "node-id"
        ids = json.loads(node["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"])
        assert ids == {DRIVER: "node-id"}


def test_a_claimed_volume_is_attached_mounted_kept_over_a_killed_agent_and_undone(
    controlplane: ControlPlane, member: Agent, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    with driver(member, log):
        controlplane.apply(csi_driver(attachRequired=True), *volume_and_claim(), pod_with(claim()))
        # The controller makes the VolumeAttachment, the test attaches.
        until(lambda: attachments(controlplane))
        until(lambda: UNIQUE in status_of_node(controlplane).get("volumesInUse", []))
        assert "NodeStageVolume" not in calls(log)
        (name,) = attachments(controlplane)
        done = '{"status":{"attached":true}}'
        controlplane.kubectl("patch", "volumeattachment", name, "--subresource=status", "--type=merge", "-p", done)
        controlplane.wait_for("db", is_ready, seconds=240)
        controlplane.kubectl("exec", "db", "--", "sh", "-c", "echo kept > /data/file")
        mounts = mounted_below(member.root)
        assert [path for path in mounts if path.endswith("/globalmount")]
        assert [path for path in mounts if path.endswith("/csi-volume/mount")]

        member.kill()
        member.start()
        # After a restart it is staged and published once more, and the pod never noticed.
        until(lambda: calls(log).count("NodePublishVolume") == 2)
        assert controlplane.kubectl("exec", "db", "--", "cat", "/data/file") == "kept\n"
        assert UNIQUE in status_of_node(controlplane)["volumesInUse"]

        controlplane.kubectl("delete", "pod", "db", "--grace-period=1", "--wait=false")
        until(lambda: controlplane.get("pod", "db") is None)
        until(lambda: calls(log)[-1] == "NodeUnstageVolume")
        until(lambda: UNIQUE not in status_of_node(controlplane).get("volumesInUse", []))
        assert not [path for path in mounted_below(member.root) if "csi" in path]
        data = member.root / "plugins" / DRIVER / "data" / "h1" / "file"
        assert data.read_text() == "kept\n"


def test_an_inline_volume_comes_and_goes_with_its_pod(
    controlplane: ControlPlane, member: Agent, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    with driver(member, log):
        spec = csi_driver(attachRequired=False, podInfoOnMount=True, volumeLifecycleModes=["Ephemeral"])
        controlplane.apply(spec, pod_with({"csi": {"driver": DRIVER}}))
        controlplane.wait_for("db", is_ready, seconds=240)
        assert calls(log) == ["NodeGetInfo", "NodePublishVolume"]
        controlplane.kubectl("delete", "pod", "db", "--grace-period=1", "--wait=false")
        until(lambda: controlplane.get("pod", "db") is None)
        assert calls(log)[-1] == "NodeUnpublishVolume"
        assert not [path for path in mounted_below(member.root) if "csi" in path]


def test_a_volume_that_grew_grows_under_its_pod(controlplane: ControlPlane, member: Agent, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    with driver(member, log):
        controlplane.apply(csi_driver(attachRequired=False), *volume_and_claim(), pod_with(claim()))
        controlplane.wait_for("db", is_ready, seconds=240)
        grown = '{"spec":{"capacity":{"storage":"2Gi"}}}'
        controlplane.kubectl("patch", "pv", "csi-volume", "--type=merge", "-p", grown)
        until(lambda: "NodeExpandVolume" in calls(log))
        until(
            lambda: (
                (controlplane.get("pvc", "csi-claim") or {})["status"]["capacity"]["storage"] in ("2Gi", "2147483648")
            )
        )


def claim() -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": "csi-claim"}}


def attachments(plane: ControlPlane) -> list[str]:
    return plane.kubectl("get", "volumeattachments", "-o", "jsonpath={.items[*].metadata.name}").split()
