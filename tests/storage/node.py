"""A node with a CSI driver that truly mounts, the real attacher, and another node that only the API server has."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_volumes import mounted_below
from tests.fakes.agent import FOR_EVER, NODE, Agent
from tests.fakes.containerd import BUSYBOX, PrivateContainerd, unmount_below
from tests.fakes.control_plane import ControlPlane, Plain
from tests.fakes.csi_sidecars import Sidecar, sidecars

DRIVER = "loop.example"
OTHER = "node-b"
"""A node without a kubelet, to which volumes can be attached."""


class Driver:
    """The driver as a process. Its folder outlives it."""

    def __init__(self, root: Path, data: Path, *options: str) -> None:
        self.data = data
        self.socket = root / "plugins" / DRIVER / "csi.sock"
        words = [sys.executable, "-m", "tests.fakes.loop_csi_driver", "--root", str(root), "--data", str(data)]
        self._command = [*words, "--name", DRIVER, "--node", NODE, "--node", OTHER, *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        with (self.data / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=Path(__file__).parents[2], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def hold(self, *methods: str) -> None:
        """Calls of these do not go on until others are named."""
        (self.data / "hold").write_text(" ".join(methods))

    def calls(self) -> list[Plain]:
        """All that ended, in order."""
        return self._lines("calls")

    def methods(self, volume: str) -> list[str]:
        """What ended well for a volume, in order."""
        return [one["method"] for one in self.calls() if one["volume"] == volume and "error" not in one]

    def wrongs(self) -> list[str]:
        """What it was asked and must never be."""
        return [one["words"] for one in self._lines("wrongs")]

    def loops(self) -> list[str]:
        """Loop devices of its volumes."""
        said = subprocess.run(["losetup", "-n", "-O", "NAME,BACK-FILE"], capture_output=True, text=True, check=True)
        return [line.split()[0] for line in said.stdout.splitlines() if str(self.data) in line]

    def _lines(self, name: str) -> list[Plain]:
        path = self.data / name
        # The last line may be half written by a driver that was killed.
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


class StorageNode:
    """Agent, driver and attacher beside one API server."""

    def __init__(
        self, plane: ControlPlane, agent: Agent, driver: Driver, beside: dict[str, Sidecar], runtime: PrivateContainerd
    ) -> None:
        self.plane, self.agent, self.driver, self.beside, self.runtime = plane, agent, driver, beside, runtime

    def kill_agent(self) -> None:
        """And start it again."""
        self.agent.kill()
        self.agent.start()

    def kill_driver(self) -> None:
        """And start it again."""
        self.driver.kill()
        self.driver.start()

    def kill_attacher(self) -> None:
        """And start it again."""
        self.beside["csi-attacher"].kill()
        self.beside["csi-attacher"].start()

    def reboot(self) -> None:
        """No process, no mount, no device is left; files are."""
        self.agent.kill()
        self.driver.kill()
        self.runtime.remove_all_pods()
        unmount_below(self.agent.folder)
        for device in self.driver.loops():
            subprocess.run(["losetup", "-d", device], check=True)
        self.driver.start()
        self.agent.start()

    def mounted(self) -> list[str]:
        """What of the driver is mounted."""
        return [path for path in mounted_below(self.agent.root) if "kubernetes.io~csi" in path or "/csi/" in path]

    def notes(self) -> list[Path]:
        """What says that something may be mounted."""
        return [path for path in self.agent.root.rglob("vol_data.json") if path.is_file()]

    def pods(self) -> dict[str, Plain]:
        """By name."""
        return self.plane.pods()

    def in_use(self) -> list[str]:
        status = (self.plane.get("node", NODE) or {}).get("status", {})
        return [one for one in status.get("volumesInUse", []) if DRIVER in one]

    def attachments(self) -> list[Plain]:
        """All, of all nodes."""
        found: list[Plain] = json.loads(self.plane.kubectl("get", "volumeattachments", "-o", "json"))["items"]
        return found

    def assert_nothing_left(self, seconds: float = 240.0) -> None:
        """No mount, note, device, volume in use or attachment, once pods are gone."""
        until(lambda: not self.mounted(), seconds, self.mounted)
        until(lambda: not self.notes(), seconds, self.notes)
        until(lambda: not self.driver.loops(), seconds, self.driver.loops)
        until(lambda: not self.in_use(), seconds, self.in_use)
        until(lambda: not self.attachments(), seconds, self.attachments)
        assert self.driver.wrongs() == []


@contextmanager
def storage_node(
    plane: ControlPlane, runtime: PrivateContainerd, folder: Path, *programs: str, options: Sequence[str] = ()
) -> Iterator[StorageNode]:
    """A Ready node whose driver has registered, and the other node. `programs`: beside the attacher."""
    agent = cluster_member(plane, runtime, folder / "a", syncFrequency="5s", nodeStatusUpdateFrequency="5s")
    driver = Driver(agent.root, folder / "data", "--attach", *options)
    spec: Plain = {"attachRequired": True, "podInfoOnMount": True, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}
    plane.apply({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec})
    plane.apply(*other_node())
    with joined(plane, runtime, agent):
        driver.start()
        try:
            until(lambda: (plane.get("csinode", NODE) or {}).get("spec", {}).get("drivers"))
            names = ("csi-attacher", *programs)
            with sidecars(*names, kubeconfig=plane.kubeconfig, socket=driver.socket, logs=folder) as beside:
                yield StorageNode(plane, agent, driver, beside, runtime)
        finally:
            plane.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", check=False)
            for kind in ("pvc", "pv", "volumeattachment"):
                plane.kubectl("delete", kind, "--all", "--wait=false", check=False)
                for name in plane.kubectl("get", kind, "-o", "jsonpath={.items[*].metadata.name}", check=False).split():
                    nothing = '{"metadata":{"finalizers":null}}'
                    plane.kubectl("patch", kind, name, "--type=merge", "-p", nothing, check=False)
            plane.kubectl("delete", "csidriver", DRIVER, check=False)
            plane.kubectl("delete", "node", OTHER, check=False)
            driver.kill()
            unmount_below(folder)
            for device in driver.loops():
                subprocess.run(["losetup", "-d", device], check=False)


def other_node() -> list[Plain]:
    """The node without a kubelet, as the controller and the attacher want to find one."""
    managed = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    meta = {"name": OTHER, "annotations": managed}
    entry = {"name": DRIVER, "nodeID": OTHER, "topologyKeys": []}
    return [
        {"apiVersion": "v1", "kind": "Node", "metadata": meta},
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": OTHER},
            "spec": {"drivers": [entry]},
        },
    ]


def volume_and_claim(name: str, mode: str = "Filesystem") -> list[Plain]:
    """A volume that the driver makes when it is used first, and the claim that has it."""
    spec: Plain = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeMode": mode}
    source = {"driver": DRIVER, "volumeHandle": name, **({"fsType": "ext4"} if mode == "Filesystem" else {})}
    of = {"namespace": "default", "name": name}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": spec | {"capacity": {"storage": "16Mi"}, "csi": source, "claimRef": of},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec | {"volumeName": name, "resources": {"requests": {"storage": "16Mi"}}},
        },
    ]


WRITE = """
for v in /v/*; do
  cd $v
  n=$(ls -d data-* 2>/dev/null | wc -l)
  [ $n -ge $EXPECTED ] || { echo "$v has $n of $EXPECTED writes"; exit 1; }
  for f in data-*; do
    [ -e "$f" ] || continue
    [ "$f" = "data-$(sha256sum <$f | cut -c1-40)" ] || { echo "$v/$f is damaged"; exit 1; }
  done
  head -c 16384 /dev/urandom >new
  mv new data-$(sha256sum <new | cut -c1-40)
  sync
done
"""
"""A file is named by its checksum; there must be as many as pods that were seen to be Ready before."""


def writing_pod(
    name: str, volumes: Sequence[str], *, written: int = 0, inline: bool = False, node: str = NODE
) -> Plain:
    """A pod that is Ready once it has checked and written all of its volumes. `written`: how often that was done."""
    mounts = [{"name": f"v{number}", "mountPath": f"/v/{number}"} for number in range(len(volumes))]
    found: list[Plain] = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": volume}} for number, volume in enumerate(volumes)
    ]
    used = list(mounts)
    if inline:
        found.append({"name": "own", "csi": {"driver": DRIVER}})
        used.append({"name": "own", "mountPath": "/own"})
    environment = [{"name": "EXPECTED", "value": str(written)}]
    one = {"image": BUSYBOX, "imagePullPolicy": "IfNotPresent"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "initContainers": [
                {"name": "write", "command": ["sh", "-c", WRITE], "env": environment, "volumeMounts": mounts, **one}
            ],
            "containers": [{"name": "main", "command": ["sh", "-c", FOR_EVER], "volumeMounts": used, **one}],
            "volumes": found,
        },
    }


def until(happens: Callable[[], object], seconds: float = 240.0, instead: Callable[[], Any] = lambda: "") -> None:
    """Waits for a fact. `instead`: what to say in its place."""
    end = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > end:
            raise AssertionError(f"did not happen in {seconds} s: {instead()}")
        time.sleep(0.2)
