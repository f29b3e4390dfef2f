"""The CPU manager: holds which containers have CPUs of their own, by the policy.

With policy none nothing is given out and every container may use all CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from glasslet.api.pod import Pod
from glasslet.exchange.admission import Rejected
from glasslet.exchange.numa import NO_OPINION, Hints, NUMAHint, mask_text
from glasslet.managers.cpu_checkpoint import ContainerIds, decode
from glasslet.managers.cpu_policy import FULL_CORES, CPUsRefused, StaticCPUPolicy
from glasslet.managers.cpu_sets import NO_CPUS, CPUs, cpu_text
from glasslet.managers.cpu_state import CPUState
from glasslet.managers.misfit import MISFIT, cpu_misfit
from glasslet.managers.needs import PodNeeds
from glasslet.managers.state_keeper import StateKeeper
from glasslet.record.recorder import Recorder


class PinningMetrics(Protocol):
    """See `telemetry.metrics.managers.ManagerFamilies`."""

    def pinning(self, kind: str) -> None: ...
    def pinning_failed(self, kind: str) -> None: ...
    def cpus(self, *, shared: int, by_node: dict[int, int]) -> None: ...
    def known(self, scope: str, boundary: str) -> None: ...
    def aligned(self, scope: str, boundary: str) -> None: ...
    def unaligned(self, scope: str, boundary: str) -> None: ...


class CPUManager:
    """`policy` None is policy none."""

    def __init__(
        self,
        *,
        policy: StaticCPUPolicy | None,
        needs: Callable[[Pod], PodNeeds],
        keeper: StateKeeper[CPUState],
        metrics: PinningMetrics,
        recorder: Recorder,
    ) -> None:
        self.policy = policy
        self.state = CPUState() if policy is None else policy.first()
        self._needs = needs
        self._keeper = keeper
        self._metrics = metrics
        self._recorder = recorder
        self._subscribers: list[Callable[[], None]] = []

    @property
    def policy_name(self) -> str:
        """none or static."""
        return "none" if self.policy is None else "static"

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Calls `callback` after each change of who has which CPUs."""
        self._subscribers.append(callback)

    async def start(self, ids: ContainerIds) -> None:
        """Takes up the state of an earlier agent as far as it fits this machine, and writes it."""
        told = await self._keeper.read(lambda content: decode(content, policy=self.policy_name, ids=ids))
        policy = self.policy
        if told is not None and policy is not None:
            problem = policy.problem(told) if told != CPUState() else ""
            self.state = policy.mended(told) if problem else told if told != CPUState() else policy.first()
            if problem:
                lost = sum(1 for _ in told.each()) - sum(1 for _ in self.state.each())
                text = f"{self._keeper.path}: {problem}; what still fits was kept, {lost} containers lost their CPUs"
                self._recorder.finding(text)
        if policy is not None:
            for boundary in ("physical_cpu", "uncore_cache"):
                self._metrics.known("container", boundary)
            self._count()
        await self.save()

    async def save(self) -> None:
        """Writes the state if it changed."""
        await self._keeper.write(lambda: self.state)

    # -- what the topology manager asks --------------------------------------------------------------------------------

    def hints(self, pod: Pod, container: str) -> Hints:
        """The NUMA nodes that the container's CPUs could come from."""
        needs = self._needs(pod)
        one = needs.of(container)
        return NO_OPINION if self.policy is None or one is None else self.policy.hints(self.state, needs, one)

    def pod_hints(self, pod: Pod) -> Hints:
        """The same for the pod as a whole."""
        return NO_OPINION if self.policy is None else self.policy.pod_hints(self.state, self._needs(pod))

    def holds(self, pod: Pod) -> bool:
        """Whether the pod has all CPUs that it needs."""
        if self.policy is None:
            return True
        needs = self._needs(pod)
        return all(len(self.state.of(needs.uid, one.name) or ()) == one.cpus for one in needs.containers)

    def room(self) -> Mapping[str, Mapping[int, str]]:
        """The CPUs that each NUMA node has left to give out."""
        if (policy := self.policy) is None:
            return {}
        free = policy.free(self.state)
        return {"cpu": {node: str(len(cpus & free)) for node, cpus in policy.layout.by_node.items()}}

    def allocate(self, pod: Pod, container: str, chosen: NUMAHint) -> Rejected | None:
        """Gives the container its CPUs, or refuses."""
        needs = self._needs(pod)
        one = needs.of(container)
        if self.policy is None or one is None or not one.cpus:
            return None
        self._metrics.pinning("cpu")
        cores = FULL_CORES in self.policy.options
        try:
            grant = self.policy.allocate(self.state, needs, one, chosen.mask)
        except CPUsRefused as error:
            self._metrics.pinning_failed("cpu")
            if cores:
                self._metrics.unaligned("container", "physical_cpu")
            threads = self.policy.layout.threads if cores else 0
            why = cpu_misfit(container, one.cpus, self.room()["cpu"], threads=threads)
            self._recorder.decided(MISFIT, container=container, because=why)
            return error.rejected
        if cores:
            self._metrics.aligned("container", "physical_cpu")
        self._recorder.decided(
            "CPUs kept" if grant.kept else "CPUs allocated",
            container=container,
            cpus=cpu_text(grant.cpus),
            nodes=cpu_text(self.policy.layout.nodes_of(grant.cpus)),
            because=f"{one.cpus} whole CPUs in a Guaranteed pod; {mask_text(chosen.mask)} chosen",
        )
        if not grant.kept:
            if len({self.policy.layout.cpus[cpu].cache for cpu in grant.cpus}) == 1:
                self._metrics.aligned("container", "uncore_cache")
            self._become(grant.state)
        return None

    def release(self, gone: Callable[[str], bool]) -> None:
        """Frees the CPUs of all pods (by UID) for which `gone` is true."""
        if self.policy is not None:
            self._become(self.state.without(gone, self.policy.sharable))

    # -- what others ask -----------------------------------------------------------------------------------------------

    def own(self, uid: str, container: str) -> CPUs:
        """The CPUs that the container has for itself."""
        return self.state.of(uid, container) or NO_CPUS

    def usable(self, uid: str, container: str) -> CPUs:
        """The CPUs that the container may use: its own, or the shared ones; none for all of the machine."""
        return self.own(uid, container) or self.state.shared

    def pod_has_own(self, uid: str) -> bool:
        """Whether some container of the pod has CPUs for itself."""
        return bool(self.state.entries.get(uid))

    def allocatable(self) -> CPUs:
        """CPUs that containers can have for themselves."""
        return NO_CPUS if self.policy is None else self.policy.allocatable

    def _become(self, state: CPUState) -> None:
        if state == self.state:
            return
        self.state = state
        self._count()
        for callback in self._subscribers:
            callback()

    def _count(self) -> None:
        if (policy := self.policy) is None:
            return
        own = self.state.exclusive()
        by_node = {node: len(cpus & own) for node, cpus in policy.layout.by_node.items()}
        self._metrics.cpus(shared=len(policy.free(self.state)), by_node=by_node)
