"""The memory manager: holds from which NUMA nodes the memory of Guaranteed pods comes, by the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from glasslet.api.pod import Pod
from glasslet.exchange.admission import Rejected, unexpected
from glasslet.exchange.numa import NO_OPINION, Hints, NUMAHint, mask_text
from glasslet.managers.memory_checkpoint import decode
from glasslet.managers.memory_policy import MemoryRefused, StaticMemoryPolicy, allocatable_blocks
from glasslet.managers.memory_state import Block, MemoryState
from glasslet.managers.misfit import MISFIT, mebibytes, memory_misfit
from glasslet.managers.needs import PodNeeds
from glasslet.managers.state_keeper import StateKeeper
from glasslet.record.recorder import Recorder


class MemoryMetrics(Protocol):
    """See `telemetry.metrics.managers.ManagerFamilies`."""

    def pinning(self, kind: str) -> None: ...
    def pinning_failed(self, kind: str) -> None: ...


class MemoryManager:
    """`policy` None is policy None."""

    def __init__(
        self,
        *,
        policy: StaticMemoryPolicy | None,
        needs: Callable[[Pod], PodNeeds],
        keeper: StateKeeper[MemoryState],
        metrics: MemoryMetrics,
        recorder: Recorder,
    ) -> None:
        self.policy = policy
        self.state = MemoryState() if policy is None else policy.first()
        self._needs = needs
        self._keeper = keeper
        self._metrics = metrics
        self._recorder = recorder

    @property
    def policy_name(self) -> str:
        """None or Static."""
        return "None" if self.policy is None else "Static"

    async def start(self) -> None:
        """Takes up the state of an earlier agent as far as it fits this machine, and writes it."""
        told = await self._keeper.read(lambda content: decode(content, policy=self.policy_name))
        if told is not None and self.policy is not None and (told.machine or told.entries):
            mended = self.policy.mended(told)
            if self.policy.same(mended, told):
                self.state = told
            else:
                self.state = mended
                lost = sum(1 for _ in told.each()) - sum(1 for _ in mended.each())
                text = "[memorymanager] the expected machine state is different from the real one"
                kept = f"what still fits was kept, {lost} containers lost their memory"
                self._recorder.finding(f"{self._keeper.path}: {text}; {kept}")
        await self.save()

    async def save(self) -> None:
        """Writes the state if it changed."""
        await self._keeper.write(lambda: self.state)

    # -- what the topology manager asks --------------------------------------------------------------------------------

    def hints(self, pod: Pod, container: str) -> Hints:
        """The NUMA nodes that the container's memory could come from."""
        needs = self._needs(pod)
        one = needs.of(container)
        return NO_OPINION if self.policy is None or one is None else self.policy.hints(self.state, needs, one)

    def pod_hints(self, pod: Pod) -> Hints:
        """The same for the pod as a whole."""
        needs = self._needs(pod)
        return NO_OPINION if self.policy is None or not needs.containers else self.policy.pod_hints(self.state, needs)

    def holds(self, pod: Pod) -> bool:
        """Whether all containers that keep running have their memory."""
        if self.policy is None:
            return True
        needs = self._needs(pod)
        lasting = (one for one in needs.containers if one.role != "init")
        return all(self.state.of(needs.uid, one.name) is not None for one in lasting)

    def room(self) -> Mapping[str, Mapping[int, str]]:
        """The memory and huge pages that each NUMA node has left to give out."""
        found: dict[str, dict[int, str]] = {}
        for node, own in sorted(self.state.machine.items()):
            for name, table in own.tables.items():
                found.setdefault(name, {})[node] = mebibytes(table.free)
        return found

    def _groups(self) -> list[str]:
        """The nodes that serve allocations only together."""
        groups = {tuple(sorted(own.group)) for own in self.state.machine.values() if len(own.group) > 1}
        return [", ".join(map(str, group)) for group in sorted(groups)]

    def allocate(self, pod: Pod, container: str, chosen: NUMAHint) -> Rejected | None:
        """Gives the container its memory, or refuses."""
        needs = self._needs(pod)
        one = needs.of(container)
        if self.policy is None or one is None or not one.memory:
            return None
        self._metrics.pinning("memory")
        try:
            grant = self.policy.allocate(self.state, needs, one, chosen)
        except MemoryRefused as error:
            self._metrics.pinning_failed("memory")
            why = memory_misfit(container, one.memory, self.room(), self._groups())
            self._recorder.decided(MISFIT, container=container, because=why)
            return unexpected(str(error))
        self.state = grant.state
        self._recorder.decided(
            "memory kept" if grant.kept else "memory allocated",
            container=container,
            nodes=self.nodes(needs.uid, container),
            amounts=", ".join(f"{block.resource} {block.size}" for block in grant.blocks),
            because=f"memory of a Guaranteed pod; {mask_text(chosen.mask)} chosen",
        )
        return None

    def release(self, gone: Callable[[str], bool]) -> None:
        """Frees the memory of all pods (by UID) for which `gone` is true."""
        self.state = self.state.without(lambda uid, _: gone(uid))

    def starting(self, pod: Pod, container: str) -> None:
        """A container that keeps running starts: the init containers before it have ended, and have no memory more."""
        needs = self._needs(pod)
        one = needs.of(container)
        if self.policy is None or one is None or one.role == "init":
            return
        before = needs.containers[: needs.containers.index(one)]
        ended = {other.name for other in before if other.role == "init"}
        if ended & self.state.entries.get(needs.uid, {}).keys():
            self.state = self.state.without(lambda uid, name: uid == needs.uid and name in ended)

    # -- what others ask -----------------------------------------------------------------------------------------------

    def blocks(self, uid: str, container: str) -> Sequence[Block]:
        """The container's blocks."""
        return self.state.of(uid, container) or ()

    def nodes(self, uid: str, container: str) -> str:
        """The NUMA nodes of the container's memory as the runtime takes them: `0,1`, "" for any."""
        found = {node for block in self.blocks(uid, container) for node in block.nodes}
        return ",".join(map(str, sorted(found)))

    def allocatable(self) -> Sequence[Block]:
        """What containers may have, by node and resource."""
        return allocatable_blocks(self.state)
