"""Pods that tests run on the machine."""

from __future__ import annotations

from typing import Any

from tests.fakes.agent import FOR_EVER, NODE
from tests.fakes.containerd import BUSYBOX
from tests.fakes.control_plane import ControlPlane, Plain, is_ready

SECONDS = 240.0
"""For a pod to start; about five on a machine with nothing else to do."""
FIVE: dict[str, Plain] = {
    "guaranteed": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}},
    "guaranteed-too": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"cpu": "50m", "memory": "32Mi"}},
    "burstable": {"requests": {"cpu": "200m", "memory": "32Mi"}, "limits": {"memory": "96Mi"}},
    "burstable-too": {"requests": {"cpu": "300m"}},
    "best-effort": {},
}
"""Resources of five pods of the three classes, by name."""


def pod(name: str, command: str = FOR_EVER, resources: Plain | None = None, **spec: Any) -> Plain:
    """With one busybox container `main`, bound to the node; it needs no token. In the machine's network: one of its
    own costs four programs at its start and at its end, which are slow here; `hostNetwork=False` gives it one."""
    main = {
        "name": "main",
        "image": BUSYBOX,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", command],
        "resources": resources or {},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": NODE,
            "hostNetwork": True,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            "containers": [main],
            **spec,
        },
    }


def started(plane: ControlPlane, *pods: Plain) -> dict[str, Plain]:
    """Creates them and waits until all are Ready; the objects then, by name."""
    plane.apply(*pods)
    found = {}
    for one in pods:
        name = one["metadata"]["name"]
        ready = plane.wait_for(name, is_ready, SECONDS)
        assert ready is not None
        found[name] = ready
    return found


def five_pods() -> list[Plain]:
    """Of the three classes; one has a network of its own."""
    return [pod(name, resources=resources, hostNetwork=name != "burstable") for name, resources in FIVE.items()]


def containers(plane: ControlPlane) -> dict[str, tuple[str, int]]:
    """(id, restarts) of the only container of each pod."""
    found = {}
    for name, one in plane.pods().items():
        (status,) = one["status"]["containerStatuses"]
        found[name] = (status["containerID"], status["restartCount"])
    return found
