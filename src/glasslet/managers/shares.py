"""The managers of CPUs and memory together, for those who make containers and those who show them."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.exchange.shares import ContainerShare
from glasslet.managers.cpu_manager import CPUManager
from glasslet.managers.cpu_sets import CPUs, cpu_text
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
            no_quota=self.without_quota(uid, name),
        )

    def cpus_of(self, uid: str, container: str) -> CPUs:
        """The CPUs that the container has for itself."""
        return self.cpus.own(uid, container)

    def memory_of(self, uid: str, container: str) -> list[tuple[str, int, tuple[int, ...]]]:
        """The container's memory: resource, bytes, NUMA nodes."""
        return [(one.resource, one.size, one.nodes) for one in self.memory.blocks(uid, container)]

    def allocatable_cpus(self) -> CPUs:
        """The CPUs that containers can have for themselves, given out or not."""
        return self.cpus.allocatable()

    def allocatable_memory(self) -> list[tuple[str, int, tuple[int, ...]]]:
        """The memory that containers can have, by NUMA node and resource."""
        return [(one.resource, one.size, one.nodes) for one in self.memory.allocatable()]

    def without_quota(self, uid: str, container: str = "") -> bool:
        """Whether the pod's or container's time on its CPUs is not limited, because it has them for itself."""
        if not self._quota_off:
            return False
        return bool(self.cpus.own(uid, container)) if container else self.cpus.pod_has_own(uid)
