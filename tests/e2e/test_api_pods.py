"""Pods from a real API server on a real runtime: what people do with kubectl works."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.agent import FOR_EVER, NODE, Agent
from tests.fakes.containerd import BUSYBOX
from tests.fakes.control_plane import ControlPlane, is_ready, phase

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]


def api_pod(name: str, command: str = FOR_EVER, **spec: Any) -> dict[str, Any]:
    """A pod with one busybox container; it needs no token."""
    main = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", command]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 2,
            "containers": [main],
            **spec,
        },
    }


def test_scheduled_pod_becomes_ready(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("web"))
    found = controlplane.wait_for("web", is_ready)
    assert found is not None
    assert found["spec"]["nodeName"] == NODE
    assert found["status"]["phase"] == "Running"
    assert found["status"]["podIP"]
    assert found["status"]["hostIP"]


def test_pod_is_deleted_with_grace(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("web"))
    controlplane.wait_for("web", is_ready)
    controlplane.kubectl("delete", "pod", "web")
    assert controlplane.get("pod", "web") is None


def test_logs_come_through_the_api_server(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("talks", "echo hello; " + FOR_EVER))
    controlplane.wait_for("talks", is_ready)
    assert controlplane.kubectl("logs", "talks") == "hello\n"


def test_pod_that_ends_succeeds(controlplane: ControlPlane, cluster_agent: Agent) -> None:
    controlplane.apply(api_pod("job", "exit 0", restartPolicy="Never"))
    controlplane.wait_for("job", lambda found: phase(found) == "Succeeded")
