"""Which CPUs are shared and which containers have CPUs of their own: one frozen value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from glasslet.managers.cpu_sets import NO_CPUS, CPUs
from glasslet.managers.needs import PodNeeds

Entries = Mapping[str, Mapping[str, CPUs]]
"""CPUs by pod UID and container name."""


class CPUState(Struct, frozen=True, kw_only=True):
    """`shared`: the CPUs of all containers without their own (the file's defaultCpuSet). An init container and a later
    one of its pod may have the same CPUs."""

    shared: CPUs = NO_CPUS
    entries: Entries = {}

    def of(self, uid: str, container: str) -> CPUs | None:
        """The container's own CPUs."""
        return self.entries.get(uid, {}).get(container)

    def each(self) -> Iterator[tuple[str, str, CPUs]]:
        """Pod UID, container name and CPUs of each entry, in order."""
        for uid, containers in sorted(self.entries.items()):
            for name, cpus in sorted(containers.items()):
                yield uid, name, cpus

    def exclusive(self) -> CPUs:
        """All CPUs that some container has for itself."""
        return NO_CPUS.union(*(cpus for _, _, cpus in self.each()))

    def reusable(self, needs: PodNeeds) -> CPUs:
        """CPUs of the pod's init containers that no longer-running container of it has."""
        own = self.entries.get(needs.uid, {})
        roles = {one.name: one.role for one in needs.containers}
        lent = NO_CPUS.union(*(cpus for name, cpus in own.items() if roles.get(name) == "init"))
        return lent.difference(*(cpus for name, cpus in own.items() if roles.get(name) != "init"))

    def put(self, uid: str, container: str, cpus: CPUs) -> CPUState:
        """The container gets these CPUs."""
        entries = {**self.entries, uid: {**self.entries.get(uid, {}), container: cpus}}
        return CPUState(shared=self.shared - cpus, entries=entries)

    def without(self, gone: Callable[[str], bool], lasting: CPUs) -> CPUState:
        """Frees the CPUs of all pods (by UID) for which `gone` is true. `lasting`: the CPUs that may be shared."""
        leaving = [cpus for uid, _, cpus in self.each() if gone(uid)]
        if not leaving:
            return self
        kept = {uid: containers for uid, containers in self.entries.items() if not gone(uid)}
        state = CPUState(entries=kept)
        freed = NO_CPUS.union(*leaving) - state.exclusive()
        return CPUState(shared=self.shared | (freed & lasting), entries=kept)
