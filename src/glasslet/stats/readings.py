"""One pass over control groups and networks: what was read, and the reading itself, which belongs into a thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from glasslet.host.cgroups.figures import CgroupFigures, Part
from glasslet.host.cgroups.kept_figures import KeptFigures
from glasslet.runtime.model import ObservedContainer
from glasslet.stats.cgroups.container_cgroups import ContainerCgroups
from glasslet.stats.cgroups.handles import Handles, count_handles
from glasslet.stats.network import Interface, read_interfaces
from glasslet.stats.targets import PodTarget, SystemGroups, groups_above

ROOT = "/"


class FigureSource(Protocol):
    """The control groups of this machine, of either version."""

    def exists(self, group: str) -> bool: ...
    def read(self, group: str, parts: Part) -> CgroupFigures | None: ...
    def look_at_cpu(self, group: str) -> tuple[int, int] | None:
        """Unix time in nanoseconds, and nanoseconds of CPU used until then."""

    def processes(self, group: str) -> list[bytes]: ...
    def made_at(self, group: str) -> float | None: ...


class ContainerReading(Struct, frozen=True):
    """A running container; without figures if it has just ended or its group has no known name."""

    container: ObservedContainer
    group: str
    figures: CgroupFigures | None
    handles: Handles | None = None
    """Only read for details."""


class PodReading(Struct, frozen=True, kw_only=True):
    """A pod. `figures` are of its own group; `sandbox` is only read for details."""

    target: PodTarget
    figures: CgroupFigures | None
    containers: tuple[ContainerReading, ...]
    sandbox_group: str = ""
    sandbox: CgroupFigures | None = None
    interfaces: tuple[Interface, ...] | None = None


class NodeReading(Struct, frozen=True, kw_only=True):
    """The node at one moment. `groups` has the root, the system's groups and those above pods, as far as they are
    there."""

    parts: Part
    groups: dict[str, CgroupFigures]
    made_at: dict[str, float]
    """Unix time at which each of `groups` was made, as far as it is known."""
    pods: tuple[PodReading, ...]
    interfaces: tuple[Interface, ...] = ()

    def cpu_totals(self) -> Iterable[tuple[str, int, int]]:
        """Group, time and CPU used, of all that was read."""
        for group, figures in self.groups.items():
            if figures.cpu is not None:
                yield group, figures.taken_at, figures.cpu
        for pod in self.pods:
            own = [(pod.target.cgroup, pod.figures), (pod.sandbox_group, pod.sandbox)]
            own.extend((one.group, one.figures) for one in pod.containers)
            for group, one in own:
                if group and one is not None and one.cpu is not None:
                    yield group, one.taken_at, one.cpu


class _Wanted(Struct, frozen=True, kw_only=True):
    """Parts by what they are read of: worked out once, as sets of flags are slow to handle."""

    of_container: Part
    of_pod: Part
    """Processes are in the groups below a pod's."""
    of_sandbox: Part
    """All that a sandbox does is to hold a network: its details say nothing."""
    details: bool
    network: bool

    @classmethod
    def of(cls, parts: Part) -> _Wanted:
        return cls(
            of_container=parts,
            of_pod=parts & ~Part.PROCESSES,
            of_sandbox=parts & ~Part.DETAILS | Part.OLD_LIMITS,
            details=Part.DETAILS in parts,
            network=Part.NETWORK in parts,
        )


class GroupReader:
    """Reads a whole node. Not for two threads at once."""

    def __init__(self, *, tree: FigureSource, system: SystemGroups, proc: str = "/proc") -> None:
        self._tree = tree
        self._system = system
        self._proc = proc
        self._places = ContainerCgroups(exists=tree.exists)
        self._handles = KeptFigures[Handles]()

    def read_node(self) -> NodeReading:
        """The root group and the one above all pods, without their details."""
        names = dict.fromkeys(name for name in (ROOT, self._system.pods) if name)
        found = ((name, self._tree.read(name, Part.NOTHING_MORE)) for name in names)
        groups = {name: figures for name, figures in found if figures is not None}
        return NodeReading(parts=Part.NOTHING_MORE, groups=groups, made_at={}, pods=())

    def read(self, targets: Sequence[PodTarget], parts: Part) -> NodeReading:
        """All groups of the node and of these pods."""
        names = [ROOT, *self._system.known().values(), *groups_above(targets, self._system.pods)]
        groups = {name: figures for name in dict.fromkeys(names) if (figures := self._tree.read(name, parts))}
        wanted = _Wanted.of(parts)
        pods = tuple(self._read_pod(target, wanted) for target in targets)
        self._places.keep_only(str(own) for t in targets for own in (t.sandbox.id, *(c.id for c in t.containers)))
        interfaces = read_interfaces("1", proc=self._proc) if wanted.network else ()
        made_at = {name: moment for name in groups if (moment := self._tree.made_at(name)) is not None}
        return NodeReading(parts=parts, groups=groups, made_at=made_at, pods=pods, interfaces=interfaces)

    def _read_pod(self, target: PodTarget, wanted: _Wanted) -> PodReading:
        containers = []
        for container in target.containers:
            group = self._places.find(container.id, target.cgroup)
            figures = self._tree.read(group, wanted.of_container) if group else None
            handles = self._read_handles(group, figures) if figures is not None and wanted.details else None
            containers.append(ContainerReading(container, group, figures, handles))
        sandbox_group = ""
        sandbox = None
        if wanted.network or wanted.details:
            sandbox_group = self._places.find(target.sandbox.id, target.cgroup)
        if sandbox_group and wanted.details:
            sandbox = self._tree.read(sandbox_group, wanted.of_sandbox)
        return PodReading(
            target=target,
            figures=self._tree.read(target.cgroup, wanted.of_pod) if target.cgroup else None,
            containers=tuple(containers),
            sandbox_group=sandbox_group,
            sandbox=sandbox,
            interfaces=self._interfaces(sandbox_group, sandbox) if sandbox_group and wanted.network else None,
        )

    def _read_handles(self, group: str, figures: CgroupFigures) -> Handles:
        """Only processes of the group open its files."""
        pids = self._pids(group, figures)

        def read() -> Handles:
            return count_handles(pids, proc=self._proc)

        return read() if figures.cpu is None else self._handles.get(group, read, as_of=(figures.cpu, pids))

    def _interfaces(self, group: str, sandbox: CgroupFigures | None) -> tuple[Interface, ...] | None:
        pids = self._pids(group, sandbox)
        return read_interfaces(pids[0].decode(), proc=self._proc) if pids else None

    def _pids(self, group: str, figures: CgroupFigures | None) -> Sequence[bytes]:
        return figures.pids if figures is not None and figures.pids is not None else self._tree.processes(group)
