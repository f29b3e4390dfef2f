"""What a container has of the node for itself, as the managers pass it to the container's making."""

from __future__ import annotations

from msgspec import Struct


class ContainerShare(Struct, frozen=True, kw_only=True):
    """`cpus` and `memory_nodes` as the runtime takes them, "" for all of the machine; `exclusive`: no other container
    has these CPUs."""

    cpus: str = ""
    memory_nodes: str = ""
    exclusive: bool = False
