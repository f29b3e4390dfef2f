"""A roomy node and pods that ask for little: what a test does not say is ordinary."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from glasslet.admission.candidate import Candidate
from glasslet.api.container import ContainerPort, ResourceRequirements
from glasslet.api.meta import ObjectMeta
from glasslet.api.node import Node, NodeSpec, NodeStatus, Taint
from glasslet.api.pod import Pod
from glasslet.api.pod_status import PodStatus
from glasslet.api.quantity import Quantity
from tests.builders.pod import container, pod

NODE = "n1"
ROOM = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def amounts(**texts: str) -> dict[str, Quantity]:
    """Quantities by resource; `_` in a name stands for a dash."""
    return {name.replace("_", "-"): Quantity.parse(text) for name, text in texts.items()}


def room(**changed: str) -> dict[str, Quantity]:
    """What pods may have of the node."""
    return {name: Quantity.parse(text) for name, text in ROOM.items()} | amounts(**changed)


def node(labels: dict[str, str] | None = None, taints: tuple[Taint, ...] = (), **status: Any) -> Node:
    """The node n1."""
    return Node(
        metadata=ObjectMeta(name=NODE, labels=labels or {}),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(allocatable=room(), **status),
    )


def api_pod(name: str = "web", *, requests: dict[str, str] | None = None, **fields: Any) -> Pod:
    """A pod of the API whose only container asks for `requests`."""
    resources = ResourceRequirements(requests={k: Quantity.parse(v) for k, v in (requests or {}).items()})
    ports, phase = fields.pop("ports", ()), fields.pop("phase", "Pending")
    main = container(resources=resources, ports=tuple(ContainerPort(**one) for one in ports))
    made = pod(main, name=name, uid=f"uid-{name}", source="api", **fields)
    return replace(made, status=PodStatus(phase=phase))


def candidate(wanted: Pod, *others: Pod, on: Node | None = None, **changed: str) -> Candidate:
    """`wanted` before the door of a node that has `others`; `changed` are other amounts of room."""
    return Candidate(pod=wanted, node=on if on is not None else node(), allocatable=room(**changed), others=others)
