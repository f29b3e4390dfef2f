"""Who has which CPUs and memory, for people. Reads the managers' states; nothing waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from glasslet.answers.resources import CPURow, MemoryRow, MemoryShare, ResourcesAnswer
from glasslet.api.pod import Pod
from glasslet.host.topology import LogicalCPU, Topology
from glasslet.managers.hint_merge import MergeRules
from glasslet.managers.shares import NodeManagers
from glasslet.managers.topology_manager import Scope


class ResourcesView(Struct, frozen=True, kw_only=True):
    """`pods`: all that have a worker; an owner that is none of them is told by its UID."""

    topology: Topology
    managers: NodeManagers
    rules: MergeRules
    scope: Scope
    pods: Callable[[], Iterable[Pod]]

    def __call__(self) -> ResourcesAnswer:
        """The node as it is now."""
        names = {pod.metadata.uid: f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in self.pods()}
        cpus, memory = self.managers.cpus, self.managers.memory
        owners: dict[int, list[str]] = {}
        for uid, container, own in cpus.state.each():
            for cpu in own:
                owners.setdefault(cpu, []).append(f"{names.get(uid, uid)}/{container}")
        return ResourcesAnswer(
            cpu_policy=cpus.policy_name,
            memory_policy=memory.policy_name,
            topology_policy=self.rules.policy,
            scope=self.scope,
            cpus=tuple(self._cpu(cpu, tuple(owners.get(cpu.id, ()))) for cpu in self.topology.cpus),
            memory=tuple(
                MemoryRow(
                    node=node,
                    resource=name,
                    total=table.total,
                    system=table.system,
                    given=table.reserved,
                    free=table.free,
                )
                for node, own in sorted(memory.state.machine.items())
                for name, table in sorted(own.tables.items())
                if table.total
            ),
            shares=tuple(
                MemoryShare(
                    owner=f"{names.get(uid, uid)}/{container}", resource=one.resource, size=one.size, nodes=one.nodes
                )
                for uid, container, blocks in memory.state.each()
                for one in blocks
                if one.size
            ),
        )

    def _cpu(self, cpu: LogicalCPU, owners: tuple[str, ...]) -> CPURow:
        policy, state = self.managers.cpus.policy, self.managers.cpus.state
        return CPURow(
            id=cpu.id,
            core=cpu.core,
            socket=cpu.socket,
            node=cpu.node,
            cache=cpu.cache,
            owners=owners,
            reserved=policy is not None and cpu.id in policy.reserved,
            shared=policy is None or cpu.id in state.shared,
        )
