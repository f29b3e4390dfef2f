"""The managers of a node's CPUs and memory on a recorded machine, with devices and a runtime of the test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from glasslet.api.container import Container, ResourceRequirements
from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.exchange.admission import Rejected
from glasslet.exchange.numa import NO_OPINION, Hints
from glasslet.host.threads import Threads
from glasslet.host.topology import read_topology
from glasslet.managers import cpu_checkpoint, memory_checkpoint
from glasslet.managers.cpu_layout import CPULayout
from glasslet.managers.cpu_manager import CPUManager
from glasslet.managers.cpu_policy import StaticCPUPolicy
from glasslet.managers.cpu_sets import cpu_text, read_cpu_text
from glasslet.managers.hint_merge import MergeRules, PolicyName
from glasslet.managers.memory_manager import MemoryManager
from glasslet.managers.memory_policy import StaticMemoryPolicy
from glasslet.managers.needs import PodNeeds, pod_needs
from glasslet.managers.reconcile import CPUReconciler
from glasslet.managers.shares import NodeManagers
from glasslet.managers.state_keeper import StateKeeper
from glasslet.managers.topology_manager import Scope, TopologyManager
from glasslet.podspec.qos import GUARANTEED, qos_class
from glasslet.record.store import Record
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod
from glasslet.runtime.spec import Resources
from glasslet.telemetry.metrics.catalog import Metrics
from tests.builders.machines import recorded_machine
from tests.builders.pod import container, pod
from tests.fakes.inline_threads import InlineThreads

MI = 1 << 20


def sized(name: str, cpu: str, memory: str = "64Mi", **fields: object) -> Container:
    """A container with equal requests and limits."""
    amounts = {"cpu": Quantity.parse(cpu), "memory": Quantity.parse(memory)}
    return container(name, resources=ResourceRequirements(requests=amounts, limits=amounts), **fields)


def guaranteed(uid: str, cpu: str, memory: str = "64Mi", init: tuple[Container, ...] = ()) -> Pod:
    """A pod of class Guaranteed with one main container."""
    return pod(sized("main", cpu, memory), init=init, uid=uid, name=uid)


def needs_of(it: Pod) -> PodNeeds:
    return pod_needs(it, guaranteed=qos_class(it) == GUARANTEED, pod_level=it.spec.resources is not None, in_place=True)


class ScriptedDevices:
    """Devices of no node, or with the hints of the test. `refusal`: what claims say."""

    def __init__(self) -> None:
        self.said: Hints = NO_OPINION
        self.refusal: Rejected | None = None
        self.masks: dict[str, int | None] = {}

    def hints(self, pod: Pod, container: str) -> Hints:
        return self.said

    def pod_hints(self, pod: Pod) -> Hints:
        return self.said

    def holds(self, pod: Pod) -> bool:
        return not self.said and self.refusal is None

    def room(self) -> Mapping[str, Mapping[int, str]]:
        return {}

    def begin(self, pod: Pod, others: Sequence[Pod]) -> None:
        self.masks.clear()

    def claim_for(self, pod: Pod, container: str, mask: int | None) -> Rejected | None:
        self.masks[container] = mask
        return self.refusal

    def unclaim(self, uid: str) -> None:
        self.masks.clear()

    def at_least(self, pod: Pod) -> Mapping[str, int]:
        return {}


class ManagerWorld:
    """One run of the managers. Another one on the same folder is the agent after a restart."""

    def __init__(
        self,
        folder: Path,
        *,
        machine: str = "two-sockets",
        cpu_options: Sequence[str] = (),
        reserved: str = "0,8",
        static: bool = True,
        policy: PolicyName = "best-effort",
        scope: Scope = "container",
        threads: Threads | None = None,
    ) -> None:
        tree = folder / machine
        topology = read_topology(str(tree) if tree.exists() else recorded_machine(machine, tree))
        self.record, self.metrics, self.devices = Record(), Metrics(), ScriptedDevices()
        self.living: dict[str, Pod] = {}
        self.pods_known = True
        self.running: dict[str, list[str]] = {}
        self.told: dict[str, str] = {}
        self.refuses: set[str] = set()
        threads = threads or InlineThreads()
        self.cpus = CPUManager(
            policy=StaticCPUPolicy(CPULayout(topology.cpus), options=cpu_options, reserved=read_cpu_text(reserved))
            if static
            else None,
            needs=needs_of,
            keeper=StateKeeper(
                path=str(folder / cpu_checkpoint.FILE),
                what="exclusive CPUs",
                encode=lambda state: cpu_checkpoint.encode("static" if static else "none", state),
                threads=threads,
                recorder=self.record,
            ),
            metrics=self.metrics.managers,
            recorder=self.record,
        )
        self.memory = MemoryManager(
            policy=StaticMemoryPolicy(topology.nodes, {0: {"memory": 128 * MI}}) if static else None,
            needs=needs_of,
            keeper=StateKeeper(
                path=str(folder / memory_checkpoint.FILE),
                what="memory of NUMA nodes",
                encode=lambda state: memory_checkpoint.encode("Static" if static else "None", state),
                threads=threads,
                recorder=self.record,
            ),
            metrics=self.metrics.managers,
            recorder=self.record,
        )
        self.topology = TopologyManager(
            rules=MergeRules(policy=policy, nodes=topology.nodes),
            scope=scope,
            devices=self.devices,
            providers=(self.cpus, self.memory),
            pods=self,
            metrics=self.metrics.managers,
            recorder=self.record,
        )
        self.managers = NodeManagers(cpus=self.cpus, memory=self.memory, quota_off=True)
        self.reconciler = CPUReconciler(
            cpus=self.cpus,
            period=10.0,
            pods=lambda: list(self.living.values()),
            observed=self.observed,
            update=self.update,
            tidy=lambda: self.topology.tidy(()),
        )

    async def start(self) -> ManagerWorld:
        await self.cpus.start({})
        await self.memory.start()
        return self

    def all_known(self) -> bool:
        return self.pods_known

    def lives(self, uid: PodUID) -> bool:
        return uid in self.living or bool(self.running.get(uid))

    def admit(self, it: Pod) -> Rejected | None:
        """Admission beside all that live; an admitted pod lives, its main container runs."""
        refused = self.topology.claim(it, list(self.living.values()))
        if refused is None:
            self.living[it.metadata.uid] = it
            self.running[it.metadata.uid] = [one.name for one in it.spec.containers]
        return refused

    def end(self, uid: str) -> None:
        del self.living[uid]
        self.running.pop(uid, None)

    def own(self, uid: str, name: str = "main") -> str:
        return cpu_text(self.cpus.own(uid, name))

    def sample(self, name: str) -> str:
        """The value of a metric, as exposed."""
        lines = self.metrics.registry.expose().decode().splitlines()
        return next(line.rpartition(" ")[2] for line in lines if line.startswith(f"{name} "))

    def observed(self, uid: PodUID) -> ObservedPod | None:
        names = self.running.get(uid)
        if names is None:
            return None
        now = datetime(2026, 1, 1, tzinfo=UTC)
        containers = tuple(
            ObservedContainer(
                id=ContainerID(f"{uid}/{name}"),
                name=name,
                attempt=0,
                phase=ContainerPhase.RUNNING,
                sandbox_id=SandboxID("s"),
                created_at=now,
            )
            for name in names
        )
        return ObservedPod(uid=uid, name=str(uid), namespace="default", containers=containers)

    async def update(self, container_id: ContainerID, resources: Resources) -> None:
        if container_id in self.refuses:
            raise RuntimeCallError("UpdateContainerResources", "no")
        assert resources == Resources(cpuset_cpus=resources.cpuset_cpus)
        self.told[str(container_id)] = resources.cpuset_cpus
