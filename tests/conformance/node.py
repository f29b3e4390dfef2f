"""The node under test: a control plane, containerd and the agent of this checkout, as the suite wants to find them."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.conformance.image_mirror import ImageMirror
from tests.conformance.isolation import NODE_IP, in_cgroup
from tests.conformance.options import Options
from tests.conformance.runtime import NodeContainerd
from tests.conformance.storage import running_driver
from tests.fakes.control_plane import ControlPlane

NODE = "conformance-node"
_CONFIGURATION = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs",
    "cgroupRoot": "/",
    "kubeletCgroups": "/kubelet",
    "systemCgroups": "/system",
    "clusterDomain": "cluster.local",
    "readOnlyPort": 10255,
    "fileCheckFrequency": "10s",
    "volumeStatsAggPeriod": "10s",
    "serializeImagePulls": False,
    "failSwapOn": False,
    "evictionPressureTransitionPeriod": "30s",
    "evictionHard": {"memory.available": "250Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
}
"""What the suite's own way of starting a kubelet sets, and evictions that a developer's disk does not meet."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """`server` and `token`: the API server. `work`: the suite's working folder, with the file `kubelet-config`."""

    server: str
    token: str
    endpoint: str
    work: Path
    drop_ins: Path
    kubeconfig: str


@contextlib.contextmanager
def running_node(folder: Path, options: Options, sandbox_image: str, environment: Mapping[str, str]) -> Iterator[Node]:
    """A node that is Ready. `environment`: containerd's, beside this process's own. What was started ends with the
    namespaces. Raises RuntimeError when it does not come up."""
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f"{token},suite,suite,system:masters\n")
    with contextlib.ExitStack() as stack:
        runtime = NodeContainerd(folder / "ctd", sandbox_image)
        with in_cgroup("runtime"):
            runtime.start(environment)
        runtime.account_for_disks()
        if options.images:
            for archive in options.images:
                runtime.keep_images(Path(archive))
            mirror = stack.enter_context(ImageMirror(runtime.blobs, runtime.kept_images()))
            runtime.pull_from(mirror.url)
        plane = ControlPlane(
            "-allow-all",
            f"-apiserver-flags=--token-auth-file={folder}/tokens.csv",
            # What watches nodes would act on a node that a busy machine keeps waiting.
            "-controller-manager-flags=--controllers=-node-lifecycle-controller",
            node=NODE,
        )
        stack.callback(plane.stop)
        work = _write_work(folder, runtime)
        with in_cgroup("kubelet"), (folder / "kubelet.log").open("wb") as log:
            agent = subprocess.Popen(_command(folder, options, plane), stdout=log, stderr=log, cwd=work)
        stack.callback(agent.kill)
        _wait_until_ready(agent, plane, folder / "kubelet.log")
        if options.storage:
            stack.enter_context(running_driver(plane, folder, work))
        yield Node(
            server=plane.answer["server"],
            token=token,
            endpoint=runtime.endpoint,
            work=work,
            drop_ins=folder / "kubelet.conf.d",
            kubeconfig=plane.kubeconfig,
        )


def _write_work(folder: Path, runtime: NodeContainerd) -> Path:
    work = folder / "work"
    (folder / "static-pods").mkdir()
    (folder / "kubelet.conf.d").mkdir()
    work.mkdir()
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    configuration = {
        **_CONFIGURATION,
        "staticPodPath": str(folder / "static-pods"),
        "resolvConf": str(folder / "resolv.conf"),
        "podCIDR": runtime.subnet,
        "containerRuntimeEndpoint": runtime.endpoint,
    }
    (work / "kubelet-config").write_text(yaml.safe_dump(configuration))
    return work


def _command(folder: Path, options: Options, plane: ControlPlane) -> list[str]:
    return [
        *((options.kubelet,) if options.kubelet else (sys.executable, "-m", "glasslet.kubelet")),
        *("--config", str(folder / "work" / "kubelet-config")),
        *("--config-dir", str(folder / "kubelet.conf.d"), "--kubeconfig", plane.node_kubeconfig),
        *("--hostname-override", NODE, "--node-ip", NODE_IP, "--runtime-cgroups", "/runtime"),
        *("--v", str(options.verbosity)),
    ]


def _wait_until_ready(agent: subprocess.Popen[bytes], plane: ControlPlane, log: Path, seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not _is_healthy() or not _is_ready(plane):
        if agent.poll() is not None or time.monotonic() > deadline:
            end = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            raise RuntimeError(f"the node does not become Ready:\n{end}")
        time.sleep(0.2)


def _is_healthy() -> bool:
    try:
        with urllib.request.urlopen("http://127.0.0.1:10248/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _is_ready(plane: ControlPlane) -> bool:
    arguments = (NODE, "--ignore-not-found", "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')
    return plane.kubectl("get", "node", *arguments, check=False).strip() == "True"
