"""What a container has of the node for itself, as the managers pass it to the container's making."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.pod import Pod


class ContainerShare(Struct, frozen=True, kw_only=True):
    """`cpus` and `memory_nodes` as the runtime takes them, "" for all of the machine; `no_quota`: its time on the CPUs
    is not limited, because no other container has them."""

    cpus: str = ""
    memory_nodes: str = ""
    no_quota: bool = False


class WholeMachine:
    """Implements `pods.collaborators.Shares` where nothing is given out: every container may use all of the machine."""

    async def share(self, pod: Pod, container: Container) -> ContainerShare:
        """All of the machine."""
        return ContainerShare()

    def without_quota(self, uid: str, container: str = "") -> bool:
        """Limits count."""
        return False
