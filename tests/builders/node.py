"""A node's settings, inputs and object, with quiet defaults: a ready machine with 4 CPUs and 8 GiB."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from glasslet.api.node import Node
from glasslet.host.machine import Machine
from glasslet.node.initial import initial_node
from glasslet.node.inputs import HostFacts, NodeInputs
from glasslet.node.settings import NodeSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GIB = 1024**3
MACHINE = Machine(
    memory_capacity=8 * GIB,
    cpu_count=4,
    boot_id="boot-1",
    machine_id="0123",
    system_uuid="uuid-1",
    kernel_version="6.1.0",
    os_image="Debian GNU/Linux 12",
    cgroup_v2=True,
)
FACTS = HostFacts(
    machine=MACHINE,
    addresses=("10.1.2.3",),
    storage=100 * GIB,
    runtime_name="containerd",
    runtime_version="2.1.0",
)


def settings(**changes: Any) -> NodeSettings:
    """Settings of node `n1`."""
    return NodeSettings(**{"name": "n1", **changes})


def facts(**changes: Any) -> HostFacts:
    """Facts; those of the machine go by their own names (`cpu_count=2`)."""
    machine = {name: changes.pop(name) for name in list(changes) if name in Machine.__struct_fields__}
    return replace(FACTS, machine=replace(MACHINE, **machine), **changes)


def inputs(**changes: Any) -> NodeInputs:
    """Inputs of a ready node at NOW; those of facts go by their own names."""
    own = {name: changes.pop(name) for name in list(changes) if name in NodeInputs.__struct_fields__}
    return NodeInputs(**{"now": NOW, "facts": facts(**changes), **own})


def node(**changes: Any) -> Node:
    """The node as it registers with these inputs."""
    return initial_node(settings(), inputs(**changes)).node
