"""The static CPU policy: which containers get whole CPUs, and which ones. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from msgspec import Struct

from glasslet.exchange.admission import Rejected, unexpected
from glasslet.exchange.numa import NUMAHint, all_masks, nodes_of
from glasslet.managers.cpu_choice import NotEnoughCPUs, Packing, choose_packed
from glasslet.managers.cpu_distribution import choose_distributed
from glasslet.managers.cpu_layout import CPULayout
from glasslet.managers.cpu_sets import NO_CPUS, CPUs, cpu_text
from glasslet.managers.cpu_state import CPUState
from glasslet.managers.needs import ContainerNeeds, PodNeeds

FULL_CORES = "full-pcpus-only"
STRICT = "strict-cpu-reservation"
ACROSS_NODES = "distribute-cpus-across-numa"
ACROSS_CORES = "distribute-cpus-across-cores"
ONE_CACHE = "prefer-align-cpus-by-uncorecache"
BY_SOCKET = "align-by-socket"


class CPUsRefused(Exception):
    """A container cannot get its CPUs; `rejected` is what admission says."""

    def __init__(self, rejected: Rejected) -> None:
        super().__init__(rejected.message)
        self.rejected = rejected


class CPUPolicyRefused(ValueError):
    """The policy cannot be had on this machine; the text says why."""


class CPUGrant(Struct, frozen=True, kw_only=True):
    """A container's CPUs, and the state with them. `kept`: it had them before."""

    state: CPUState
    cpus: CPUs = NO_CPUS
    kept: bool = False


class StaticCPUPolicy:
    """`options`: names of those switched on."""

    def __init__(
        self, layout: CPULayout, *, options: Collection[str] = (), reserved: CPUs = NO_CPUS, reserve: int = 0
    ) -> None:
        """`reserved`: CPUs kept for the system, `reserve`: or how many the policy chooses. Raises CPUPolicyRefused."""
        self.layout = layout
        self.options = frozenset(options)
        if BY_SOCKET in self.options and len(layout.by_socket) > len(layout.by_node):
            text = (
                "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA"
            )
            raise CPUPolicyRefused(text)
        self.reserved = reserved or self._first(reserve)
        if len(self.reserved) != (len(reserved) or reserve):
            text = f"size of {cpu_text(self.reserved)} did not equal {reserve}"
            raise CPUPolicyRefused(f"unable to reserve the required amount of CPUs ({text})")

    def _first(self, count: int) -> CPUs:
        try:
            return self._choose(self.layout.all, count)
        except NotEnoughCPUs:
            return NO_CPUS

    @cached_property
    def allocatable(self) -> CPUs:
        """CPUs that containers can have for themselves."""
        return self.layout.all - self.reserved

    @cached_property
    def sharable(self) -> CPUs:
        """CPUs that containers can share when none is given out."""
        return self.allocatable if STRICT in self.options else self.layout.all

    def free(self, state: CPUState) -> CPUs:
        """CPUs that can be given out."""
        return state.shared - self.reserved

    # -- hints ---------------------------------------------------------------------------------------------------------

    def hints(self, state: CPUState, needs: PodNeeds, container: ContainerNeeds) -> Mapping[str, list[NUMAHint]]:
        """For one container; nothing for one that shares."""
        if not container.cpus:
            return {}
        had = state.of(needs.uid, container.name)
        if had is None:
            return {"cpu": self._hints(self.free(state), state.reusable(needs), container.cpus)}
        if len(had) != container.cpus:
            return {"cpu": []}
        return {"cpu": self._hints(had, NO_CPUS, container.cpus)}

    def pod_hints(self, state: CPUState, needs: PodNeeds) -> Mapping[str, list[NUMAHint]]:
        """For the pod as a whole."""
        count = needs.cpus()
        if not count:
            return {}
        held = {one.name: had for one in needs.containers if (had := state.of(needs.uid, one.name)) is not None}
        if any(len(held[one.name]) != one.cpus for one in needs.containers if one.name in held):
            return {"cpu": []}
        assigned = NO_CPUS.union(*held.values())
        if len(assigned) == count:
            return {"cpu": self._hints(assigned, NO_CPUS, count)}
        return {"cpu": self._hints(self.free(state), state.reusable(needs) | assigned, count)}

    def _hints(self, free: CPUs, reusable: CPUs, count: int) -> list[NUMAHint]:
        layout = self.layout
        masks = list(all_masks(layout.by_node))
        least = min(
            (mask.bit_count() for mask in masks if len(layout.in_nodes(nodes_of(mask))) >= count),
            default=len(layout.by_node),
        )
        hints = []
        for mask in masks:
            inside = layout.in_nodes(nodes_of(mask))
            # CPUs that are free and reusable count twice, as upstream; there are none.
            if reusable <= inside and len(reusable) + len(free & inside) >= count:
                hints.append(NUMAHint(mask, self._preferred(mask, least)))
        return hints

    def _preferred(self, mask: int, least: int) -> bool:
        if mask.bit_count() == least:
            return True
        if BY_SOCKET not in self.options:
            return False
        per_socket = len(self.layout.by_node) // max(1, len(self.layout.by_socket))
        return per_socket > 0 and len(self.layout.sockets_of(nodes_of(mask))) == -(-least // per_socket)

    # -- allocation ----------------------------------------------------------------------------------------------------

    def allocate(self, state: CPUState, needs: PodNeeds, container: ContainerNeeds, mask: int | None) -> CPUGrant:
        """Gives the container its CPUs, those of the mask's nodes first. A container that has some keeps them, whatever
        else: it may be running. Raises CPUsRefused."""
        if not container.cpus:
            return CPUGrant(state=state)
        if (had := state.of(needs.uid, container.name)) is not None:
            return CPUGrant(state=state, cpus=had, kept=True)
        self._check_cores(state, container.cpus)
        free = self.free(state) | state.reusable(needs)
        try:
            near = self._near(free, mask) if mask is not None else NO_CPUS
            chosen = self._choose(near, min(container.cpus, len(near)))
            chosen |= self._choose(free - chosen, container.cpus - len(chosen))
        except NotEnoughCPUs as error:
            raise CPUsRefused(unexpected(str(error))) from error
        return CPUGrant(state=state.put(needs.uid, container.name, chosen), cpus=chosen)

    def _check_cores(self, state: CPUState, count: int) -> None:
        """full-pcpus-only: whole cores, and none that the system has a thread of."""
        if FULL_CORES not in self.options:
            return
        threads = self.layout.threads
        if count % threads:
            raise CPUsRefused(_smt(f"requested {count} cpus not multiple cpus per core = {threads}"))
        available = len(state.shared - self.layout.whole_cores(self.reserved))
        if count > available:
            text = (
                f"not enough free physical CPUs: available physical CPUs = {available}, requested CPUs = {count}, "
                f"CPUs per core = {threads}"
            )
            raise CPUsRefused(_smt(text))

    def _near(self, free: CPUs, mask: int) -> CPUs:
        nodes = nodes_of(mask)
        if BY_SOCKET not in self.options:
            return free & self.layout.in_nodes(nodes)
        sockets = self.layout.sockets_of(nodes)
        return free & NO_CPUS.union(*(self.layout.by_socket[socket] for socket in sockets))

    def _choose(self, free: CPUs, count: int) -> CPUs:
        packing = Packing(caches=ONE_CACHE in self.options, spread=ACROSS_CORES in self.options)
        if ACROSS_NODES not in self.options:
            return choose_packed(self.layout, free, count, packing)
        group = self.layout.threads if FULL_CORES in self.options else 1
        return choose_distributed(self.layout, free, count, group, packing)

    # -- the state of an earlier agent ---------------------------------------------------------------------------------

    def problem(self, state: CPUState) -> str:
        """Why a state of an earlier agent does not fit this machine and its reservation, "" if it does."""
        shared, known = cpu_text(state.shared), self.sharable
        if not state.shared and STRICT not in self.options:
            return "default cpuset cannot be empty"
        if STRICT in self.options and self.reserved & state.shared:
            strictly = cpu_text(self.reserved & state.shared)
            return f'some of strictly reserved cpus: "{strictly}" are present in defaultCpuSet: "{shared}"'
        if STRICT not in self.options and not self.reserved <= state.shared:
            return f'not all reserved cpus: "{cpu_text(self.reserved)}" are present in defaultCpuSet: "{shared}"'
        for uid, name, cpus in state.each():
            if cpus & state.shared:
                where = f"pod: {uid}, container: {name}"
                return f'{where} cpuset: "{cpu_text(cpus)}" overlaps with default cpuset "{shared}"'
        if state.shared | state.exclusive() != known:
            told = cpu_text(state.shared | state.exclusive())
            return f'current set of available CPUs "{cpu_text(known)}" doesn\'t match with CPUs in state "{told}"'
        return ""

    def mended(self, state: CPUState) -> CPUState:
        """The entries that still fit, each CPU with one pod; all other CPUs are shared."""
        kept = CPUState(shared=self.sharable)
        owner: dict[int, str] = {}
        for uid, name, cpus in state.each():
            if cpus and cpus <= self.allocatable and all(owner.get(cpu, uid) == uid for cpu in cpus):
                owner |= dict.fromkeys(cpus, uid)
                kept = kept.put(uid, name, cpus)
        return kept

    def first(self) -> CPUState:
        """The state of a node without pods."""
        return CPUState(shared=self.sharable)


def _smt(why: str) -> Rejected:
    return Rejected(reason="SMTAlignmentError", message=f"SMT Alignment Error: {why}")
