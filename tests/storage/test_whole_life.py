"""A claim's whole life with the real controllers: made, attached, in a pod, grown, copied, restored, deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import running_control_plane
from tests.fakes.agent import FOR_EVER, NODE
from tests.fakes.containerd import BUSYBOX, PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain, is_ready
from tests.fakes.csi_sidecars import ARGUMENTS, asked_for, snapshot_definitions
from tests.storage.node import DRIVER, StorageNode, storage_node, until

pytestmark = [pytest.mark.containerd, pytest.mark.go, pytest.mark.timeout(1800)]

SNAPSHOTS = "snapshot.storage.k8s.io"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    asked_for()
    with running_control_plane() as found:
        yield found


@pytest.fixture
def node(plane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path) -> Iterator[StorageNode]:
    plane.kubectl("apply", "-f", str(snapshot_definitions()))
    plane.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "loop"},
            "provisioner": DRIVER,
            "allowVolumeExpansion": True,
        },
    )
    until(lambda: plane.kubectl("get", "volumesnapshotclasses", check=False).startswith("No resources"), 60)
    name = {"name": "loop"}
    one = {"apiVersion": f"{SNAPSHOTS}/v1", "kind": "VolumeSnapshotClass", "metadata": name, "driver": DRIVER}
    plane.apply({**one, "deletionPolicy": "Delete"})
    others = [program for program in ARGUMENTS if program != "csi-attacher"]
    try:
        with storage_node(plane, containerd, tmp_path, *others) as found:
            yield found
    finally:
        plane.kubectl("delete", "storageclass", "loop", check=False)


def claim(name: str, size: str = "32Mi", **spec: Any) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "loop",
            "resources": {"requests": {"storage": size}},
            **spec,
        },
    }


def pod(name: str, of: str, *, block: bool = False) -> Plain:
    """One that uses the claim, at /data or as /dev/data."""
    use = {"volumeDevices": [{"name": "data", "devicePath": "/dev/data"}]}
    if not block:
        use = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    main = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", FOR_EVER]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": NODE,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": [{**main, **use}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": of}}],
        },
    }


def delete(node: StorageNode, kind: str, name: str) -> None:
    node.plane.kubectl("delete", kind, name, "--wait=false")
    until(lambda: node.plane.get(kind, name) is None, 180)


def test_a_claim_is_made_used_grown_copied_and_deleted(node: StorageNode) -> None:
    plane = node.plane
    plane.apply(claim("first"), pod("writer", "first"))
    plane.wait_for("writer", is_ready, seconds=240)
    plane.kubectl("exec", "writer", "--", "sh", "-c", "echo kept > /data/file; sync")
    assert kilobytes(node, "writer") < 32 << 10

    grown = '{"spec":{"resources":{"requests":{"storage":"96Mi"}}}}'
    plane.kubectl("patch", "pvc", "first", "--type=merge", "-p", grown)
    until(lambda: plane.get("pvc", "first")["status"]["capacity"]["storage"] == "96Mi", 240)  # type: ignore[index]
    until(lambda: kilobytes(node, "writer") > 64 << 10, 120)

    source = {"source": {"persistentVolumeClaimName": "first"}, "volumeSnapshotClassName": "loop"}
    kind = {"apiVersion": f"{SNAPSHOTS}/v1", "kind": "VolumeSnapshot", "metadata": {"name": "copy"}}
    plane.apply({**kind, "spec": source})
    until(lambda: (plane.get("volumesnapshot", "copy") or {}).get("status", {}).get("readyToUse"), 240)
    plane.kubectl("exec", "writer", "--", "sh", "-c", "echo changed > /data/file; sync")

    wanted = {"apiGroup": SNAPSHOTS, "kind": "VolumeSnapshot", "name": "copy"}
    plane.apply(claim("second", "96Mi", dataSource=wanted), pod("reader", "second"))
    plane.wait_for("reader", is_ready, seconds=240)
    assert plane.kubectl("exec", "reader", "--", "cat", "/data/file") == "kept\n"
    assert plane.kubectl("exec", "writer", "--", "cat", "/data/file") == "changed\n"

    for what, name in (
        ("pod", "reader"),
        ("pod", "writer"),
        ("volumesnapshot", "copy"),
        ("pvc", "first"),
        ("pvc", "second"),
    ):
        delete(node, what, name)
    until(lambda: not plane.kubectl("get", "pv", "-o", "name"), 240)
    node.assert_nothing_left()
    assert not list(node.driver.data.glob("*.img"))
    assert not list(node.driver.data.glob("*.snap"))


def test_a_disk_as_it_is_grows_under_its_pod_and_keeps_what_was_written(node: StorageNode) -> None:
    plane = node.plane
    plane.apply(claim("disk", volumeMode="Block"), pod("raw", "disk", block=True))
    plane.wait_for("raw", is_ready, seconds=240)
    plane.kubectl("exec", "raw", "--", "sh", "-c", "echo kept | dd of=/dev/data conv=notrunc,fsync 2>/dev/null")
    grown = '{"spec":{"resources":{"requests":{"storage":"64Mi"}}}}'
    plane.kubectl("patch", "pvc", "disk", "--type=merge", "-p", grown)
    until(lambda: plane.get("pvc", "disk")["status"]["capacity"]["storage"] == "64Mi", 240)  # type: ignore[index]
    delete(node, "pod", "raw")
    plane.apply(pod("again", "disk", block=True))
    plane.wait_for("again", is_ready, seconds=240)
    assert plane.kubectl("exec", "again", "--", "head", "-c", "5", "/dev/data") == "kept\n"
    delete(node, "pod", "again")
    delete(node, "pvc", "disk")
    node.assert_nothing_left()


def kilobytes(node: StorageNode, name: str) -> int:
    """The size of the file system in the pod."""
    return int(node.plane.kubectl("exec", name, "--", "df", "-k", "/data").splitlines()[-1].split()[1])
