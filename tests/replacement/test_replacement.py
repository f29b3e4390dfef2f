"""A Go kubelet is replaced by glasslet and the other way round, while pods of all kinds run.

Go kubelets are built from their module, which takes minutes: `scripts/test-replacement` runs this.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest
from benchmarks.contender import contender, go_kubelet

from tests.e2e.conftest import running_control_plane
from tests.e2e.test_api_pods import wait_until
from tests.e2e.test_devices import plugin
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import BUSYBOX, PrivateContainerd, mounts_below
from tests.fakes.control_plane import ControlPlane, Plain, is_ready, phase
from tests.replacement.pods import (
    DATA,
    DONE,
    EXAMINED,
    GPU,
    LATER,
    RESIZED,
    api_pods,
    resources,
    static_pods,
    with_device,
)
from tests.skips import on_purpose

ROUNDS = int(os.environ.get("GLASSLET_REPLACEMENTS", "0"))
"""How often each of the two takes over from the other."""
pytestmark = [
    pytest.mark.containerd,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not ROUNDS, reason=on_purpose("scripts/test-replacement replaces kubelets")),
]

CALM = 20.0
"""Seconds in which a kubelet that is wrong about a pod has restarted it."""
GO_CHANGES = ("ips", "ready since")
"""A Go kubelet that starts takes the IP from pods that have ended, and begins startup probes anew."""
PLUGINS = Path("/var/lib/kubelet/device-plugins")
"""A Go kubelet has no other place for them."""


@pytest.fixture
def plugins() -> Iterator[Path]:
    """The machine's folder of device plugins, as empty at the end as it was."""
    if PLUGINS.exists() and any(PLUGINS.iterdir()):
        pytest.fail(f"{PLUGINS} is in use on this machine")
    made = [path for path in (PLUGINS, PLUGINS.parent) if not path.exists()]
    PLUGINS.mkdir(parents=True, exist_ok=True)
    yield PLUGINS
    for path in PLUGINS.iterdir():
        path.unlink()
    for path in made:
        shutil.rmtree(path)


@pytest.fixture(scope="module")
def controlplane() -> Iterator[ControlPlane]:
    """Its controllers leave the node in peace for as long as they do in a cluster with usual settings."""
    with running_control_plane() as plane:
        yield plane


@pytest.fixture
def agent(controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path, plugins: Path) -> Iterator[Agent]:
    with contender(tmp_path, controlplane, containerd) as made:
        made.device_plugins = plugins
        yield made


@pytest.mark.parametrize("first", ["go", "glasslet"])
def test_no_pod_notices_that_the_kubelet_is_another_one(
    controlplane: ControlPlane, containerd: PrivateContainerd, agent: Agent, first: str
) -> None:
    programs = {"go": (str(go_kubelet()),), "glasslet": agent.program}
    order = ("glasslet", "go") if first == "go" else ("go", "glasslet")
    agent.program = programs[first]
    for manifest in static_pods():
        agent.put(manifest)
    agent.start()
    node = controlplane.wait_for(NODE, is_ready, kind="node")
    with plugin(agent, "a", "b"):
        controlplane.wait_for(NODE, lambda found: _gpus(found) == "2", kind="node")
        _make_pods(controlplane)
        before = _World(controlplane, containerd)
        for number in range(ROUNDS):
            for name in order:
                _replace(controlplane, agent, programs[name])
                now = _World(controlplane, containerd)
                changed = before.differences(now, but=GO_CHANGES if name == "go" else ())
                before = now
                assert not changed, "\n".join([f"{name} took over, round {number}:", *changed, agent.tail_of_log()])
                if name == "glasslet":
                    # The Go kubelet reports NotReady for a moment whenever it starts.
                    assert _ready_since(controlplane.get("node", NODE)) == _ready_since(node)
                node = controlplane.get("node", NODE)
        _replace(controlplane, agent, programs["glasslet"])
        _a_new_pod_gets_the_free_device(controlplane)
        _every_pod_goes_and_leaves_nothing(controlplane, containerd, agent)


class _World:
    """What is the same as long as no pod was touched."""

    def __init__(self, plane: ControlPlane, runtime: PrivateContainerd) -> None:
        self.processes = runtime.pids()
        self.pods = {name: _essence(found) for name, found in plane.pods().items()}

    def differences(self, now: _World, but: Collection[str]) -> list[str]:
        """In words; `but`: parts of a pod that do not count."""
        gone = [f"process of {one} was {pid}" for one, pid in self.processes.items() if now.processes.get(one) != pid]
        new = [f"{one} is new" for one in now.processes if one not in self.processes]
        changed = [
            f"{part} of {name} was {self.pods[name][part]}, is {now.pods.get(name, {}).get(part)}"
            for name in self.pods
            for part in self.pods[name]
            if part not in but and self.pods[name][part] != now.pods.get(name, {}).get(part)
        ]
        return gone + new + changed + [f"pod {name} is new" for name in now.pods if name not in self.pods]


def _essence(found: Plain) -> Plain:
    """UID, phase, IPs, since when it is ready, and of each container: ID, restarts, readiness.

    A kubelet that starts does not read since when a static pod is ready: neither of the two does.
    """
    status = found["status"]
    static = "kubernetes.io/config.mirror" in found["metadata"].get("annotations", {})
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return {
        "uid": found["metadata"]["uid"],
        "phase": status["phase"],
        "ips": status.get("podIPs"),
        "ready since": None if static else _ready_since(found),
        "containers": {
            one["name"]: (one.get("containerID"), one["restartCount"], one["ready"], sorted(one["state"]))
            for kind in kinds
            for one in status.get(kind, ())
        },
    }


def _ready_since(found: Plain | None) -> list[tuple[str, str]]:
    conditions = (found or {}).get("status", {}).get("conditions", [])
    return [(one["status"], one["lastTransitionTime"]) for one in conditions if one["type"] == "Ready"]


def _make_pods(plane: ControlPlane) -> None:
    """All pods are as they stay."""
    plane.apply(*DATA, *api_pods())
    settled: dict[str, Callable[[Plain | None], object]] = {DONE: lambda found: phase(found) == "Succeeded"}
    for name in (one["metadata"]["name"] for one in api_pods()):
        plane.wait_for(name, settled.get(name, is_ready), seconds=180)
    for manifest in static_pods():
        plane.wait_for(f"{manifest['metadata']['name']}-{NODE}", is_ready)
    more = {"spec": {"containers": [{"name": "main", **resources(cpu="60m", memory="48Mi")}]}}
    plane.kubectl("patch", "pod", RESIZED, "--subresource", "resize", "-p", json.dumps(more))
    plane.wait_for(RESIZED, lambda found: _memory(found) == "48Mi")
    look = {"name": "look", "image": BUSYBOX, "command": ["sleep", "100000"]}
    patch = {"spec": {"ephemeralContainers": [look]}}
    plane.kubectl("patch", "pod", EXAMINED, "--subresource", "ephemeralcontainers", "-p", json.dumps(patch))
    plane.wait_for(
        EXAMINED, lambda found: found and "running" in str(found["status"].get("ephemeralContainerStatuses"))
    )


def _memory(found: Plain | None) -> str:
    statuses = (found or {}).get("status", {}).get("containerStatuses", [{}])
    return str(statuses[0].get("resources", {}).get("limits", {}).get("memory", ""))


def _gpus(node: Plain | None) -> str:
    return str((node or {}).get("status", {}).get("allocatable", {}).get(GPU, ""))


def _replace(plane: ControlPlane, agent: Agent, program: tuple[str, ...]) -> None:
    """The one ends, the other starts; it has renewed the lease, knows the devices, and had time to err."""
    agent.terminate()
    renewed = lease_time(plane)
    agent.program = program
    agent.start()
    wait_until(lambda: lease_time(plane) != renewed)
    plane.wait_for(NODE, lambda found: is_ready(found) and _gpus(found) == "2", kind="node")
    time.sleep(CALM)


def lease_time(plane: ControlPlane) -> str:
    """When the node's lease was renewed."""
    lease = plane.get("lease", NODE, "kube-node-lease")
    return str((lease or {}).get("spec", {}).get("renewTime", ""))


def _a_new_pod_gets_the_free_device(plane: ControlPlane) -> None:
    plane.apply(with_device(LATER))
    plane.wait_for(LATER, is_ready)
    devices = {plane.kubectl("logs", name).strip() for name in ("device", LATER)}
    assert devices == {"DEVICES=a", "DEVICES=b"}


def _every_pod_goes_and_leaves_nothing(plane: ControlPlane, runtime: PrivateContainerd, agent: Agent) -> None:
    for manifest in static_pods():
        agent.remove(manifest["metadata"]["name"])
    plane.kubectl("delete", "pods", "--all", "-n", "default")
    wait_until(lambda: not runtime.pids())
    wait_until(lambda: mounts_below(agent.root / "pods") == [] and not any((agent.root / "pods").iterdir()))
