"""In-place resize through a real API server, down to the kernel's files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import wait_until
from tests.fakes.agent import Agent, busybox_pod
from tests.fakes.cgroups import RealRoot, real_root
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane
from tests.skips import on_purpose

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(240)]

MI = 2**20


@pytest.fixture
def root() -> Iterator[RealRoot]:
    with real_root() as made:
        yield made


@pytest.fixture
def agent(controlplane: ControlPlane, containerd: PrivateContainerd, root: RealRoot, tmp_path: Path) -> Iterator[Agent]:
    settings = {"cgroupRoot": root.path, "cgroupsPerQOS": True, "enforceNodeAllocatable": ["pods"]}
    one = cluster_member(controlplane, containerd, tmp_path, **settings)
    with joined(controlplane, containerd, one):
        yield one


def with_resources(name: str, cpu: str, memory: str, **fields: Any) -> dict[str, Any]:
    pod = busybox_pod(name, nodeName="node-a")
    both = {"cpu": cpu, "memory": memory}
    pod["spec"]["containers"][0] |= {"resources": {"requests": both, "limits": both}, **fields}
    return pod


def resize(plane: ControlPlane, name: str, cpu: str, memory: str) -> None:
    both = {"cpu": cpu, "memory": memory}
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": both, "limits": both}}]}}
    plane.kubectl("patch", "pod", name, "--subresource", "resize", "-p", json.dumps(patch))


def conditions(pod: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    return {one["type"]: one for one in (pod or {}).get("status", {}).get("conditions", [])}


def is_running(pod: dict[str, Any] | None) -> bool:
    return conditions(pod).get("Ready", {}).get("status") == "True"


def has(cpu: str) -> Any:
    def look(pod: dict[str, Any] | None) -> bool:
        status = (pod or {}).get("status", {}).get("containerStatuses", [{}])[0]
        given = status.get("resources", {}).get("limits", {}).get("cpu")
        return given == cpu and "PodResizeInProgress" not in conditions(pod)

    return look


def main_status(pod: dict[str, Any] | None) -> dict[str, Any]:
    assert pod is not None
    (status,) = pod["status"]["containerStatuses"]
    return dict(status)


def values(root: RealRoot, uid: str, container_id: str) -> tuple[int, int, int, int]:
    """(quota, memory limit) of the pod's cgroup and of the container's."""
    pod = f"/kubepods/pod{uid}"
    found = []
    for path in (pod, f"{pod}/{container_id.rpartition('/')[2]}"):
        found.append(int(root.read(path, "cpu", "cpu.cfs_quota_us")))
        found.append(int(root.read(path, "memory", "memory.limit_in_bytes")))
    return found[0], found[1], found[2], found[3]


def test_a_running_pod_grows_and_shrinks_without_a_restart(
    controlplane: ControlPlane, agent: Agent, root: RealRoot
) -> None:
    if root.tree.version != 1:
        pytest.skip(on_purpose("reads files of cgroups version 1"))
    controlplane.apply(with_resources("grows", "100m", "64Mi"))
    pod = controlplane.wait_for("grows", is_running)
    before = main_status(pod)
    assert pod is not None
    uid = pod["metadata"]["uid"]
    assert values(root, uid, before["containerID"]) == (10_000, 64 * MI, 10_000, 64 * MI)

    resize(controlplane, "grows", "300m", "128Mi")
    grown = main_status(controlplane.wait_for("grows", has("300m")))
    wait_until(lambda: values(root, uid, before["containerID"]) == (30_000, 128 * MI, 30_000, 128 * MI))
    assert grown["allocatedResources"] == {"cpu": "300m", "memory": "128Mi"}

    resize(controlplane, "grows", "50m", "32Mi")
    shrunk = main_status(controlplane.wait_for("grows", has("50m")))
    wait_until(lambda: values(root, uid, before["containerID"]) == (5_000, 32 * MI, 5_000, 32 * MI))
    assert (shrunk["containerID"], shrunk["restartCount"]) == (before["containerID"], 0)
    controlplane.wait_for_event("grows", "ResizeCompleted")


def test_more_than_the_node_has_is_infeasible(controlplane: ControlPlane, agent: Agent) -> None:
    controlplane.apply(with_resources("greedy", "100m", "64Mi"))
    controlplane.wait_for("greedy", is_running)
    resize(controlplane, "greedy", "4000", "64Mi")
    pod = controlplane.wait_for("greedy", lambda found: "PodResizePending" in conditions(found))
    pending = conditions(pod)["PodResizePending"]
    assert pending["reason"] == "Infeasible"
    assert pending["message"].startswith("Node didn't have enough capacity: cpu, requested: 4000000, capacity: ")
    assert main_status(pod)["resources"]["limits"]["cpu"] == "100m"


def test_a_container_that_wants_it_is_restarted_with_its_new_memory(
    controlplane: ControlPlane, agent: Agent, root: RealRoot
) -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    controlplane.apply(with_resources("restarts", "100m", "64Mi", resizePolicy=policy))
    before = main_status(controlplane.wait_for("restarts", is_running))
    resize(controlplane, "restarts", "200m", "96Mi")
    after = main_status(
        controlplane.wait_for(
            "restarts", lambda pod: has("200m")(pod) and is_running(pod) and main_status(pod)["restartCount"] == 1
        )
    )
    assert after["containerID"] != before["containerID"]
