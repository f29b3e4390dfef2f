"""The node object at a real API server: complete, kept true, and back when somebody deletes it."""

from __future__ import annotations

import json
import platform
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import cluster_member, loopback_address
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, condition, is_ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

LEASES = "kube-node-lease"


def node(plane: ControlPlane) -> dict[str, Any]:
    found = plane.get("node", NODE)
    assert found is not None
    return found


def has_images_and_storage(found: dict[str, Any] | None) -> bool:
    """A slow machine may give them later than all else."""
    status = (found or {}).get("status", {})
    return bool(status.get("images")) and "ephemeral-storage" in status.get("capacity", {})


def test_a_registered_node_has_every_field(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    found = controlplane.wait_for(NODE, has_images_and_storage, kind="node")
    assert found is not None
    labels, status = found["metadata"]["labels"], found["status"]
    assert {name: labels[name] for name in ("kubernetes.io/hostname", "kubernetes.io/os")} == {
        "kubernetes.io/hostname": NODE,
        "kubernetes.io/os": "linux",
    }
    assert found["metadata"]["annotations"]["volumes.kubernetes.io/controller-managed-attach-detach"] == "true"
    assert [one["type"] for one in status["conditions"]] == ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
    assert all(one["lastHeartbeatTime"] and one["lastTransitionTime"] for one in status["conditions"])
    assert status["addresses"] == [
        {"type": "InternalIP", "address": loopback_address()},
        {"type": "Hostname", "address": NODE},
    ]
    assert {"cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi"} <= status["capacity"].keys()
    assert status["capacity"].keys() == status["allocatable"].keys()
    assert status["capacity"]["pods"] == "110"
    info = status["nodeInfo"]
    assert info["kernelVersion"] == platform.release()
    assert info["containerRuntimeVersion"].startswith("containerd://")
    assert info["kubeletVersion"].startswith("v1.34.0")
    assert all(info[name] for name in ("machineID", "systemUUID", "bootID", "osImage"))
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": cluster_agent.port}}
    sizes = [one["sizeBytes"] for one in status["images"]]
    assert sizes
    assert sizes == sorted(sizes, reverse=True)


def test_a_steady_node_is_not_patched(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    """Its status is looked at every ten seconds; the first rounds may still report images or addresses."""
    deadline, version, since = time.monotonic() + 150, "", 0.0
    while not version or time.monotonic() - since < 25:
        assert time.monotonic() < deadline, node(controlplane)["metadata"]["managedFields"]
        found = node(controlplane)["metadata"]["resourceVersion"]
        if found != version:
            version, since = found, time.monotonic()
        time.sleep(0.5)


def test_the_lease_is_renewed_and_belongs_to_the_node(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    uid = node(controlplane)["metadata"]["uid"]
    lease = lease_of(controlplane, uid)
    assert lease["spec"]["holderIdentity"] == NODE
    assert lease["spec"]["leaseDurationSeconds"] == 40
    deadline = time.monotonic() + 39  # by then it would be over
    while lease_of(controlplane, uid)["spec"]["renewTime"] <= lease["spec"]["renewTime"]:
        assert time.monotonic() < deadline
        time.sleep(0.5)


def lease_of(plane: ControlPlane, uid: str) -> dict[str, Any]:
    """That of the node with this UID alone; one of an earlier node of its name may not be collected yet."""
    deadline = time.monotonic() + 120
    while True:
        found = plane.get("lease", NODE, LEASES)
        if found is not None and [one["uid"] for one in found["metadata"].get("ownerReferences", [])] == [uid]:
            return found
        assert time.monotonic() < deadline, f"no lease of {uid}: {found}"
        time.sleep(0.2)


def test_a_deleted_node_comes_back(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    first = node(controlplane)["metadata"]["uid"]
    controlplane.kubectl("delete", "node", NODE)
    controlplane.wait_for(
        NODE, lambda found: found is not None and found["metadata"]["uid"] != first and is_ready(found), 120, "node"
    )


def test_a_start_and_cordoning_are_told_as_events(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.kubectl("cordon", NODE)
    controlplane.kubectl("uncordon", NODE)
    deadline = time.monotonic() + 120
    wanted = {"Starting", "NodeNotSchedulable", "NodeSchedulable", "NodeHasSufficientMemory"}
    while not wanted <= {reason for reason, _ in controlplane.events(NODE)}:
        assert time.monotonic() < deadline, controlplane.events(NODE)
        time.sleep(0.5)


def test_a_runtime_that_stops_makes_the_node_unready_until_it_is_back(
    controlplane: ControlPlane, containerd: PrivateContainerd, cluster_agent: Agent
) -> None:
    containerd.kill()
    try:
        # behaviours.md §11: "runtime considered down when no good status for 30 s"
        found = controlplane.wait_for(NODE, lambda found: condition(found, "Ready") == "False", 120, "node")
        assert found is not None
        ready = next(one for one in found["status"]["conditions"] if one["type"] == "Ready")
        assert (ready["reason"], ready["message"]) == ("KubeletNotReady", "container runtime is down")
    finally:
        containerd.start()
    controlplane.wait_for(NODE, is_ready, kind="node")


def test_a_restarted_agent_flips_no_readiness(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    before = node(controlplane)
    cluster_agent.kill()
    cluster_agent.start()
    deadline = time.monotonic() + 12
    while time.monotonic() < deadline:
        assert is_ready(node(controlplane))
        time.sleep(0.2)
    after = node(controlplane)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    transitions = [
        [(one["type"], one["lastTransitionTime"]) for one in found["status"]["conditions"]] for found in (before, after)
    ]
    assert transitions[0] == transitions[1]


def test_labels_and_taints_come_from_the_start(
    controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path
) -> None:
    taint = {"key": "dedicated", "value": "tests", "effect": "NoSchedule"}
    agent = cluster_member(
        controlplane,
        containerd,
        tmp_path,
        registerWithTaints=[taint],
        providerID="cloud://7",
        maxPods=9,
        kubeReserved={"cpu": "100m", "memory": "64Mi"},
    )
    agent.flags += ("--node-labels", "node.kubernetes.io/role=edge,team=blue")
    agent.start()
    try:
        found = controlplane.wait_for(NODE, is_ready, kind="node")
        assert found is not None
        assert found["metadata"]["labels"]["node.kubernetes.io/role"] == "edge"
        assert found["metadata"]["labels"]["team"] == "blue"
        assert taint in found["spec"]["taints"]
        assert found["spec"]["providerID"] == "cloud://7"
        capacity, allocatable = found["status"]["capacity"], found["status"]["allocatable"]
        assert capacity["pods"] == "9"
        assert allocatable["cpu"] == f"{int(capacity['cpu']) * 1000 - 100}m"
    finally:
        agent.kill()
        controlplane.kubectl("delete", "node", NODE, "--ignore-not-found")


def test_with_an_external_cloud_the_node_waits_for_its_controller(
    controlplane: ControlPlane, containerd: PrivateContainerd, tmp_path: Path
) -> None:
    agent = cluster_member(controlplane, containerd, tmp_path)
    agent.flags += ("--cloud-provider", "external")
    agent.start()
    try:
        found = controlplane.wait_for(NODE, is_ready, kind="node")
        assert found is not None
        taints = {one["key"]: one for one in found["spec"]["taints"]}
        assert taints["node.cloudprovider.kubernetes.io/uninitialized"]["effect"] == "NoSchedule"
        assert found["metadata"]["annotations"]["alpha.kubernetes.io/provided-node-ip"] == loopback_address()
    finally:
        agent.kill()
        controlplane.kubectl("delete", "node", NODE, "--ignore-not-found")


def test_nothing_that_the_node_asks_for_is_refused(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    time.sleep(2)
    about_nodes = [line for line in controlplane.refusals() if "/nodes" in line or "/leases" in line]
    assert about_nodes == [], json.dumps(about_nodes, indent=1)
