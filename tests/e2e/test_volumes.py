"""Volumes on a real API server and a real runtime: many at once, claims, and what is left after the end."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import cluster_member, joined
from tests.e2e.test_api_pods import api_pod
from tests.e2e.test_config_data import text_of
from tests.fakes.agent import FOR_EVER, Agent
from tests.fakes.cgroups import RealRoot, real_root
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, is_ready

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

PODS = 5
MAPS = 50


@pytest.fixture(autouse=True)
def _cleared(controlplane: ControlPlane) -> Iterator[None]:
    yield
    controlplane.kubectl("delete", "configmap", "-l", "test=volumes", "--ignore-not-found")
    for kind in ("pvc", "pv"):
        if controlplane.get(kind, "disk") is not None:
            controlplane.kubectl("delete", kind, "disk", "--wait=false")
            # Nobody here takes the finalizers off.
            controlplane.kubectl(
                "patch", kind, "disk", "--type=merge", "-p", '{"metadata":{"finalizers":null}}', check=False
            )


@pytest.fixture
def root() -> Iterator[RealRoot]:
    with real_root() as made:
        yield made


@pytest.fixture
def holding_agent(
    controlplane: ControlPlane, containerd: PrivateContainerd, root: RealRoot, tmp_path: Path
) -> Iterator[Agent]:
    """One that holds its pods in cgroups."""
    settings = {"cgroupRoot": root.path, "cgroupsPerQOS": True, "enforceNodeAllocatable": ["pods"]}
    one = cluster_member(controlplane, containerd, tmp_path, **settings)
    with joined(controlplane, containerd, one):
        yield one


def until(happens: Callable[[], bool], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.1)


def config_map(number: int, value: str) -> dict[str, Any]:
    meta = {"name": f"conf-{number}", "labels": {"test": "volumes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"key": value}}


def uid_of(plane: ControlPlane, name: str) -> str:
    """That of a pod, once it is ready."""
    found = plane.wait_for(name, is_ready, seconds=180)
    assert found is not None
    return str(found["metadata"]["uid"])


def mounted_below(root: Path) -> list[str]:
    with open("/proc/self/mountinfo") as table:
        return [line.split()[4] for line in table if line.split()[4].startswith(f"{os.path.realpath(root)}/")]


def assert_nothing_left(agent: Agent, root: RealRoot, names: str, uids: set[str]) -> None:
    """Once the folders of pods are gone. `names`: how the pods' names begin."""
    assert mounted_below(agent.root) == []
    until(lambda: root.pods() == {})
    until(lambda: not any(uid in name for name in os.listdir(agent.logs) for uid in uids))
    until(lambda: not [link for link in agent.log_links() if link.name.startswith(names)])


def test_fifty_config_maps_in_each_of_five_pods_follow_and_leave_nothing(
    controlplane: ControlPlane, holding_agent: Agent, root: RealRoot
) -> None:
    controlplane.apply(*(config_map(number, "old") for number in range(MAPS)))
    bodies = []
    for pod in range(PODS):
        body = api_pod(f"many-{pod}")
        sources = [{"name": f"v{n}", "configMap": {"name": f"conf-{n}"}} for n in range(MAPS)]
        body["spec"]["volumes"] = [*sources, {"name": "mem", "emptyDir": {"medium": "Memory"}}]
        mounts = [{"name": f"v{n}", "mountPath": f"/etc/v{n}"} for n in range(MAPS)]
        mounts += [{"name": "mem", "mountPath": "/mem"}, {"name": "mem", "mountPath": "/part", "subPath": "a/b"}]
        body["spec"]["containers"][0]["volumeMounts"] = mounts
        bodies.append(body)
    controlplane.apply(*bodies)
    uids = {uid_of(controlplane, f"many-{pod}") for pod in range(PODS)}
    assert root.pods().keys() == uids
    pods = holding_agent.root / "pods"
    shown = [path / "key" for uid in uids for path in (pods / uid).glob("volumes/*configmap/*")]
    assert len(shown) == PODS * MAPS
    assert {path.read_text() for path in shown} == {"old"}
    controlplane.apply(*(config_map(number, "new") for number in range(MAPS)))
    until(lambda: {text_of(path) for path in shown} == {"new"})
    inside = controlplane.kubectl("exec", "many-0", "--", "sh", "-c", "cat /etc/v*/key")
    assert inside.strip() == "new" * MAPS

    controlplane.kubectl("delete", "pod", *(f"many-{pod}" for pod in range(PODS)), "--grace-period=1", "--wait=false")
    until(lambda: not any((pods / uid).exists() for uid in uids))
    assert_nothing_left(holding_agent, root, "many-", uids)


def test_an_agent_killed_again_and_again_while_pods_come_and_go_leaves_nothing_of_them(
    controlplane: ControlPlane, holding_agent: Agent, root: RealRoot
) -> None:
    chance = random.Random(7)
    names = [f"dying-{number}" for number in range(4)]
    controlplane.apply(*(config_map(number, "value") for number in range(5)))
    controlplane.apply(*(with_every_volume(name) for name in names))
    for _ in range(4):
        time.sleep(chance.uniform(0.3, 1.5))
        holding_agent.kill()
        holding_agent.start()
    uids = {uid_of(controlplane, name) for name in names}
    # The status may be that of an agent before; the one of now may not listen yet.
    until(lambda: all(started_once(controlplane, name) for name in names))
    shown = controlplane.kubectl("exec", names[0], "--", "sh", "-c", "cat /etc/v*/key; df -P /mem | tail -n 1")
    assert shown.startswith("value" * 5 + "tmpfs")
    assert root.pods().keys() == uids
    # A file system in memory and a part, for each pod.
    assert len(mounted_below(holding_agent.root)) == 2 * len(names)

    controlplane.kubectl("delete", "pod", *names, "--grace-period=1", "--wait=false")
    for _ in range(4):
        time.sleep(chance.uniform(0.1, 0.8))
        holding_agent.kill()
        holding_agent.start()
    until(lambda: not controlplane.pods().keys() & set(names))
    until(lambda: not any((holding_agent.root / "pods" / uid).exists() for uid in uids))
    assert_nothing_left(holding_agent, root, "dying-", uids)


def started_once(controlplane: ControlPlane, name: str) -> bool:
    return controlplane.kubectl("exec", name, "--", "cat", "/part/started", check=False) == "once\n"


def with_every_volume(name: str) -> dict[str, Any]:
    """A pod with files, memory, a directory and a part of it."""
    body = api_pod(name, f"echo once >> /part/started; {FOR_EVER}")
    sources = [{"name": f"v{n}", "configMap": {"name": f"conf-{n}"}} for n in range(5)]
    body["spec"]["volumes"] = [
        *sources,
        {"name": "mem", "emptyDir": {"medium": "Memory"}},
        {"name": "disk", "emptyDir": {}},
    ]
    mounts = [{"name": f"v{n}", "mountPath": f"/etc/v{n}"} for n in range(5)]
    mounts += [{"name": "mem", "mountPath": "/mem"}, {"name": "disk", "mountPath": "/part", "subPath": "a/b"}]
    body["spec"]["containers"][0]["volumeMounts"] = mounts
    return body


def test_a_claimed_directory_of_the_node_outlives_its_pod(
    controlplane: ControlPlane, cluster_agent: Agent, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    meta = {"name": "disk", "labels": {"test": "volumes"}}
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none"}
    node = controlplane.kubectl("get", "nodes", "-o", "name").strip().rpartition("/")[2]
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": meta,
        "spec": spec
        | {
            "capacity": {"storage": "1Gi"},
            "local": {"path": str(disk)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            "claimRef": {"namespace": "default", "name": "disk"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta | {"namespace": "default"},
        "spec": spec | {"volumeName": "disk", "resources": {"requests": {"storage": "1Gi"}}},
    }
    # The scheduler would wait for the claim.
    body = api_pod("claiming", nodeName=node, volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}])
    body["spec"]["containers"][0]["volumeMounts"] = [{"name": "d", "mountPath": "/d"}]
    controlplane.apply(volume, body)
    missing = 'failed to fetch PVC from API server: persistentvolumeclaims "disk" not found'
    until(lambda: any(text.endswith(missing) for text in told_of("claiming", controlplane)))
    controlplane.apply(claim)
    controlplane.wait_for("claiming", is_ready, seconds=180)
    controlplane.kubectl("exec", "claiming", "--", "sh", "-c", "echo kept > /d/file")
    controlplane.kubectl("delete", "pod", "claiming", "--grace-period=1", "--wait=false")
    until(lambda: not [path for path in mounted_below(Path(cluster_agent.root)) if path.endswith("/disk")])
    assert (disk / "file").read_text() == "kept\n"


def told_of(pod: str, plane: ControlPlane) -> list[str]:
    """Events of mounts that failed."""
    return [text for reason, text in plane.events(pod) if reason == "FailedMount"]
