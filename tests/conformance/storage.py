"""What the storage suite wants to find: a CSI driver with its controllers, and what it says of itself."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.fakes import csi_sidecars
from tests.fakes.containerd import REPOSITORY
from tests.fakes.control_plane import ControlPlane

DRIVER = "loop.example"
_ROOT = Path("/var/lib/kubelet")
_CAPABILITIES = {
    "persistence": True,
    "block": True,
    "fsGroup": True,
    "exec": True,
    "multipods": True,
    "RWX": False,
    "controllerExpansion": True,
    "nodeExpansion": True,
    "onlineExpansion": True,
    "offlineExpansion": True,
    "pvcDataSource": True,
    "snapshotDataSource": True,
    "readWriteOncePod": True,
    "singleNodeVolume": False,
    "topology": False,
    "volumeLimits": False,
}
_NODE = "conformance-node"
"""As `tests.conformance.node` names it."""


@contextlib.contextmanager
def running_driver(plane: ControlPlane, folder: Path, work: Path) -> Iterator[None]:
    """The driver is registered, its controllers run, and `driver.yaml` in `work` describes it."""
    logs = folder / "storage"
    logs.mkdir()
    plane.kubectl("apply", "-f", str(csi_sidecars.snapshot_definitions()))
    attached = {"attachRequired": True, "podInfoOnMount": True, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}
    spec = {**attached, "fsGroupPolicy": "File"}
    plane.apply({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec})
    (work / "class.yaml").write_text(yaml.safe_dump(_storage_class()))
    (work / "driver.yaml").write_text(yaml.safe_dump(_description(work)))
    words = [
        sys.executable,
        "-m",
        "tests.fakes.loop_csi_driver",
        "--root",
        str(_ROOT),
        "--data",
        str(folder / "volumes"),
    ]
    with (logs / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [*words, "--name", DRIVER, "--node", _NODE, "--attach"], cwd=REPOSITORY, stdout=log, stderr=log
        )
    try:
        _wait_until_registered(plane)
        socket = _ROOT / "plugins" / DRIVER / "csi.sock"
        with csi_sidecars.sidecars(*csi_sidecars.ARGUMENTS, kubeconfig=plane.kubeconfig, socket=socket, logs=logs):
            yield
    finally:
        driver.kill()


def _storage_class() -> dict[str, object]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": DRIVER},
        "provisioner": DRIVER,
        "allowVolumeExpansion": True,
        "volumeBindingMode": "Immediate",
    }


def _description(work: Path) -> dict[str, object]:
    """See k8s.io/kubernetes/test/e2e/storage/external."""
    return {
        "StorageClass": {"FromFile": str(work / "class.yaml")},
        "SnapshotClass": {"FromName": True},
        "InlineVolumes": [{"Attributes": {}, "Shared": False, "ReadOnly": False}],
        "DriverInfo": {
            "Name": DRIVER,
            "SupportedSizeRange": {"Min": "16Mi", "Max": "10Gi"},
            "SupportedFsType": {"": {}, "ext4": {}},
            "SupportedMountOption": {"noatime": {}},
            "Capabilities": _CAPABILITIES,
        },
    }


def _wait_until_registered(plane: ControlPlane, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while DRIVER not in plane.kubectl("get", "csinodes", "-o", "jsonpath={.items[*].spec.drivers[*].name}"):
        if time.monotonic() > deadline:
            raise RuntimeError("the CSI driver does not register")
        time.sleep(0.2)
