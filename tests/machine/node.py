"""A node of a cluster on a machine: the control plane here, containerd and the packaged agent's unit there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.fakes.agent import NODE
from tests.fakes.control_plane import ControlPlane, Plain, is_ready
from tests.machine.image import GATEWAY, MACHINE_IP, Image
from tests.machine.qemu import Hardware, Machine, wait_until

UNIT = "glasslet.service"
PORT = 10250
_CONFIG = "/var/lib/kubelet/config.yaml"
_KUBECONFIG = "/etc/kubernetes/kubelet.conf"
_PKI = "/etc/kubernetes/pki"
_MANIFESTS = "/etc/kubernetes/manifests"
CONFIGURATION: Plain = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "cgroupDriver": "systemd",
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "staticPodPath": _MANIFESTS,
    "resolvConf": "/etc/resolv.conf",
    "failSwapOn": False,
    "podPidsLimit": 600,
    "systemReserved": {"memory": "200Mi"},
    "shutdownGracePeriod": "40s",
    "shutdownGracePeriodCriticalPods": "10s",
    "authentication": {
        "x509": {"clientCAFile": f"{_PKI}/ca.crt"},
        "webhook": {"enabled": True},
        "anonymous": {"enabled": False},
    },
    "authorization": {"mode": "Webhook"},
}
_DROP_IN = f"""
[Service]
ExecStart=
ExecStart=/opt/glasslet/bin/kubelet --config={_CONFIG} --kubeconfig={_KUBECONFIG} \
--hostname-override={NODE} --node-ip={MACHINE_IP}
"""


class MachineAgent:
    """The agent as the unit of its package; what `tests.fakes.agent.Agent` is for one that is a process here."""

    port = PORT

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def configure(self, **fields: Any) -> None:
        """Writes the configuration with these fields beside the usual ones; for the next start."""
        self._machine.write(_CONFIG, yaml.safe_dump({**CONFIGURATION, **fields}))

    def start(self) -> None:
        """Returns once the agent said that it is ready."""
        self._machine.run(f"systemctl daemon-reload; systemctl start {UNIT}", seconds=300)

    def restart(self) -> None:
        """As an administrator does."""
        self._machine.run(f"systemctl restart {UNIT}", seconds=300)

    def terminate(self) -> int:
        """The exit code of the process."""
        self._machine.run(f"systemctl stop {UNIT}", seconds=150)
        return int(self.shown("ExecMainStatus"))

    def kill(self) -> None:
        """As a crash that nothing follows."""
        self._machine.run(f"systemctl kill --signal=KILL --kill-who=main {UNIT}; systemctl stop {UNIT}")

    @property
    def pid(self) -> int:
        """Of the agent, in the machine."""
        return int(self.shown("MainPID"))

    def shown(self, name: str) -> str:
        """A property of the unit."""
        return self._machine.run(f"systemctl show --property={name} --value {UNIT}").strip()

    def put(self, manifest: Plain, name: str = "") -> None:
        """Places a manifest of a static pod."""
        self._machine.write(f"{_MANIFESTS}/{name or manifest['metadata']['name']}.yaml", yaml.safe_dump(manifest))

    def remove(self, name: str) -> None:
        """Takes a manifest away."""
        self._machine.run(f"rm {_MANIFESTS}/{name}.yaml")

    def ask(self, command: str) -> Any:
        """An answer of its command line tool."""
        return json.loads(self._machine.run(f"glasslet {command} -o json"))

    def journal(self, options: str = "") -> str:
        """The messages of the unit, of this boot."""
        return self._machine.run(f"journalctl -b -u {UNIT} --no-pager -o cat {options}")

    def tail_of_log(self, lines: int = 30) -> str:
        """The end of its journal."""
        return self.journal(f"-n {lines}")


class Node:
    """One machine that is a node, switched on."""

    def __init__(self, machine: Machine, plane: ControlPlane) -> None:
        self.machine = machine
        self.plane = plane
        self.agent = MachineAgent(machine)

    def join(self) -> None:
        """Gives the agent its credentials and starts it; the node is Ready then."""
        config = yaml.safe_load(Path(self.plane.node_kubeconfig).read_text())
        user = config["users"][0]["user"]
        for field in ("client-certificate", "client-key"):
            self.machine.write(f"{_PKI}/{Path(user[field]).name}", Path(user[field]).read_bytes())
            user[field] = f"{_PKI}/{Path(user[field]).name}"
        self.machine.write(f"{_PKI}/ca.crt", Path(self.plane.ca).read_bytes())
        cluster = config["clusters"][0]["cluster"]
        port = cluster["server"].rpartition(":")[2]
        # Its certificate is for names of a cluster and not for the tap's address.
        cluster |= {"server": f"https://{GATEWAY}:{port}", "tls-server-name": "kubernetes"}
        cluster["certificate-authority"] = f"{_PKI}/ca.crt"
        self.machine.write(_KUBECONFIG, yaml.safe_dump(config))
        self.machine.write(f"/etc/systemd/system/{UNIT}.d/node.conf", _DROP_IN)
        self.machine.run(f"mkdir -p {_MANIFESTS}; systemctl daemon-reload; systemctl enable --quiet {UNIT}")
        self.agent.configure()
        self.agent.start()
        self.wait_until_ready()

    def switch_on(self) -> None:
        """Where it is off; the unit starts with the boot."""
        if not self.machine.on:
            self.machine.start()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Until the API server has the readiness of the agent that runs now: its lease is renewed after this call."""
        since = self.machine.run("date -u +%FT%T").strip()
        wait_until(lambda: self._renewed(since), 240, f"a lease of {NODE}")
        self.plane.wait_for(NODE, is_ready, 240, kind="node")

    def _renewed(self, since: str) -> bool:
        lease = self.plane.get("lease", NODE, "kube-node-lease")
        return lease is not None and str(lease["spec"].get("renewTime", "")) > since

    @contextlib.contextmanager
    def configured(self, **fields: Any) -> Iterator[None]:
        """The agent runs with these fields of the configuration while the body does."""
        self._reconfigure(**fields)
        try:
            yield
        finally:
            self.switch_on()
            self._reconfigure()

    def _reconfigure(self, **fields: Any) -> None:
        self.agent.configure(**fields)
        self.agent.restart()
        self.wait_until_ready()

    def delete_pods(self) -> None:
        """All of them, with their cgroups."""
        self.machine.run(f"rm -f {_MANIFESTS}/*")
        self.plane.kubectl("delete", "deployments", "--all", "--wait=false")
        self.plane.kubectl("delete", "pods", "--all", "--grace-period=1", seconds=200)
        wait_until(lambda: not self.pod_slices(), 120, "the pods' cgroups to go")

    def pod_slices(self) -> list[str]:
        """Cgroups of pods, below /sys/fs/cgroup."""
        return self.machine.run(
            "cd /sys/fs/cgroup; find kubepods.slice -name '*-pod*.slice' -type d 2>/dev/null; true"
        ).split()

    def slice_of(self, pod: Plain) -> str:
        """The path of a pod's cgroup below /sys/fs/cgroup, by its class and UID."""
        quality = pod["status"]["qosClass"].lower()
        inner = "" if quality == "guaranteed" else f"-{quality}"
        between = f"/kubepods{inner}.slice" if inner else ""
        uid = pod["metadata"]["uid"].replace("-", "_")
        return f"kubepods.slice{between}/kubepods{inner}-pod{uid}.slice"

    def scope_of(self, pod: Plain, container: str = "main") -> str:
        """The path of a container's cgroup."""
        status = next(one for one in pod["status"]["containerStatuses"] if one["name"] == container)
        return f"{self.slice_of(pod)}/cri-containerd-{status['containerID'].rpartition('/')[2]}.scope"

    def cgroup(self, path: str, *files: str) -> dict[str, str]:
        """Contents of files of a cgroup, by name; "" for one that does not exist."""
        lines = "; ".join(f"printf '%s\\0' \"$(cat {file} 2>/dev/null)\"" for file in files)
        texts = self.machine.run(f"cd '/sys/fs/cgroup/{path}' && {{ {lines}; }}").split("\0")
        return dict(zip(files, texts, strict=False))


def prepared_disk(image: Image, package: Path) -> Path:
    """The image's disk with the package installed by dpkg and the test images imported. Made once for each package."""
    disk = image.disk.with_name(f"node-{hashlib.sha256(package.read_bytes()).hexdigest()[:16]}.qcow2")
    if disk.exists():
        return disk
    for older in disk.parent.glob("node-*.qcow2*"):
        older.unlink()
    started = disk.with_suffix(f".{os.getpid()}")
    layer(image.disk, "raw", started)
    with tempfile.TemporaryDirectory(prefix="glm-") as folder:
        machine = Machine(image, started, Path(folder), Hardware())
        machine.start()
        try:
            machine.write("/root/glasslet.deb", package.read_bytes())
            machine.run("dpkg -i /root/glasslet.deb && rm /root/glasslet.deb", seconds=600)
            machine.run("ctr -n k8s.io images import /root/images.tar && rm /root/images.tar && sync", seconds=600)
            machine.power_off()
        finally:
            machine.cut_power()
    started.rename(disk)
    return disk


def layer(below: Path, kind: str, path: Path) -> Path:
    """A disk that has what the one below has and takes all that is written."""
    command = ("qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", str(below), str(path))
    subprocess.run(command, check=True)
    return path
