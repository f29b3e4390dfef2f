"""The managers of CPUs and memory together, for those who make containers and those who show them."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.exchange.shares import ContainerShare
from glasslet.managers.cpu_manager import CPUManager
from glasslet.managers.cpu_sets import cpu_text
from glasslet.managers.memory_manager import MemoryManager


class NodeManagers:
    """`quota_off`: gate DisableCPUQuotaWithExclusiveCPUs."""

    def __init__(self, *, cpus: CPUManager, memory: MemoryManager, quota_off: bool) -> None:
        self.cpus = cpus
        self.memory = memory
        self._quota_off = quota_off

    async def share(self, pod: Pod, container: Container) -> ContainerShare:
        """What a container that is created now may use. What it has is on disk by then: an agent that dies after this
        gives it to no other."""
        uid, name = pod.metadata.uid, container.name
        self.memory.starting(pod, name)
        await self.cpus.save()
        await self.memory.save()
        return ContainerShare(
            cpus=cpu_text(self.cpus.usable(uid, name)),
            memory_nodes=self.memory.nodes(uid, name),
            exclusive=bool(self.cpus.own(uid, name)),
        )

    def without_quota(self, uid: str, container: str = "") -> bool:
        """Whether the pod's or container's time on its CPUs is not limited, because it has them for itself."""
        if not self._quota_off:
            return False
        return bool(self.cpus.own(uid, container)) if container else self.cpus.pod_has_own(uid)
