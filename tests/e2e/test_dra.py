"""Resource claims on a real API server with the Node authorizer, and containerd 2.x, which knows CDI. The driver is a
process of ours; the test is the scheduler."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import cluster_member, joined, running_control_plane
from tests.e2e.test_api_pods import api_pod
from tests.e2e.test_csi import until
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, Plain, phase

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

DRIVER = "gpu.example"
CDI = Path("/var/run/cdi")


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        yield made


@pytest.fixture
def member(plane: ControlPlane, newer_containerd: PrivateContainerd, tmp_path: Path) -> Iterator[Agent]:
    agent = cluster_member(plane, newer_containerd, tmp_path)
    with joined(plane, newer_containerd, agent):
        yield agent
    for path in CDI.glob(f"{DRIVER}-*.json"):
        path.unlink()


@contextmanager
def driver(agent: Agent, log: Path) -> Iterator[None]:
    words = [sys.executable, "-m", "tests.fakes.dra_driver", "--root", str(agent.root), "--log", str(log)]
    process = subprocess.Popen([*words, "--cdi", str(CDI)], cwd=Path(__file__).parents[2])
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def claim() -> Plain:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpus"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c1", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def claiming_pod() -> Plain:
    body = api_pod("web", nodeName=NODE, resourceClaims=[{"name": "gpu", "resourceClaimName": "c1"}])
    body["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return body


def allocate(plane: ControlPlane) -> str:
    """What the scheduler does. The claim's UID."""
    made, found = plane.get("pod", "web"), plane.get("resourceclaim", "c1")
    assert made is not None
    assert found is not None
    device = {"request": "gpu", "driver": DRIVER, "pool": "pool", "device": "gpu-0"}
    status = {
        "allocation": {"devices": {"results": [device]}},
        "reservedFor": [{"resource": "pods", "name": "web", "uid": made["metadata"]["uid"]}],
    }
    patch = json.dumps({"status": status})
    plane.kubectl("patch", "resourceclaim", "c1", "--subresource=status", "--type=merge", "-p", patch)
    return str(found["metadata"]["uid"])


def resource_slice() -> Plain:
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"nodeName": NODE, "driver": DRIVER, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "old"}, "spec": spec}


def test_a_claim_is_prepared_survives_the_agent_and_is_given_back(
    plane: ControlPlane, member: Agent, tmp_path: Path
) -> None:
    log, state = tmp_path / "calls", Path(member.root) / "dra_manager_state"
    plane.apply(claim(), claiming_pod())
    uid = allocate(plane)
    plane.wait_for_event("web", "FailedPrepareDynamicResources", f"DRA driver {DRIVER} is not registered")
    with driver(member, log):
        plane.wait_for("web", lambda found: phase(found) == "Running")
        assert plane.kubectl("exec", "web", "--", "/bin/sh", "-c", "echo $CLAIM").strip() == uid
        assert uid in state.read_text()

        before = plane.get("pod", "web")
        plane.apply(resource_slice())
        member.kill()
        member.start()
        until(lambda: plane.get("resourceslice", "old") is None)
        assert before is not None
        after = plane.get("pod", "web")
        assert after is not None
        ids = [one["containerID"] for it in (before, after) for one in it["status"]["containerStatuses"]]
        assert len(set(ids)) == 1
        assert log.read_text().split("\n")[:-1] == [f"NodePrepareResources {uid}"]

        plane.kubectl("delete", "pod", "web", "--grace-period=1")
        assert log.read_text().split("\n")[:-1] == [f"NodePrepareResources {uid}", f"NodeUnprepareResources {uid}"]
        assert uid not in state.read_text()
