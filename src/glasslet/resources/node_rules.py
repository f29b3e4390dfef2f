"""Limits of kubepods and of the cgroups that the administrator reserves for other daemons. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.host.cgroups.kernel_amounts import cpu_shares, page_size
from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.resources.layout import CgroupLayout, CgroupName, cgroupfs_path, parse_name, parse_slice
from glasslet.resources.node_share import NodeShare, ResourceAmounts, for_pods


class Reservation(Struct, frozen=True, kw_only=True):
    """A cgroup of other daemons and its reservation. `side`: System or Kube. `limits` None: enforcement is on, but
    nothing is reserved."""

    side: str
    path: str
    limits: CgroupLimits | None
    compressible_only: bool = False


class NodeRules(Struct, frozen=True, kw_only=True):
    """`layout` None: without a tree of pod cgroups (cgroupsPerQOS false); then `root` alone is limited, if there is
    one. `limits`: those of all pods together."""

    layout: CgroupLayout | None
    root: CgroupName = ()
    limits: CgroupLimits
    reservations: tuple[Reservation, ...] = ()

    def parse(self, path: str) -> CgroupName:
        """The parts of a cgroup that the administrator names."""
        return parse_slice(path) if self.layout is not None and self.layout.systemd else parse_name(path)

    def path(self, name: CgroupName) -> str:
        """The path of a cgroup in the driver's form."""
        return self.layout.path(name) if self.layout is not None else cgroupfs_path(name)


def node_rules(
    configuration: KubeletConfiguration, layout: CgroupLayout | None, share: NodeShare, *, cpus: str, memory_qos: bool
) -> NodeRules:
    """The rules of enforceNodeAllocatable, cgroupRoot and the reserved cgroups. `cpus`: those that pods may use, "" to
    leave them; `memory_qos`: gate MemoryQoS on cgroup v2."""
    kept = (share.system, share.kube) if layout is not None and "pods" in configuration.enforce_node_allocatable else ()
    return NodeRules(
        layout=layout,
        root=parse_name(configuration.cgroup_root),
        limits=limits_of_node(for_pods(share.capacity, kept), cpus=cpus),
        reservations=tuple(_reservations(configuration, share, cpus=cpus, memory_qos=memory_qos)),
    )


def _reservations(
    configuration: KubeletConfiguration, share: NodeShare, *, cpus: str, memory_qos: bool
) -> Iterable[Reservation]:
    reserved = (
        ("System", "system-reserved", configuration.system_reserved_cgroup, share.system),
        ("Kube", "kube-reserved", configuration.kube_reserved_cgroup, share.kube),
    )
    for suffix in ("", "-compressible"):
        for side, entry, path, amounts in reserved:
            if entry + suffix not in configuration.enforce_node_allocatable:
                continue
            limits = limits_of_reservation(amounts, compressible_only=bool(suffix), cpus=cpus, memory_qos=memory_qos)
            yield Reservation(side=side, path=path, limits=limits if amounts else None, compressible_only=bool(suffix))


def limits_of_node(amounts: ResourceAmounts, *, cpus: str = "") -> CgroupLimits:
    """The cgroup of all pods."""
    cpu, memory, pids = amounts.get("cpu"), amounts.get("memory"), amounts.get("pid")
    return CgroupLimits(
        cpu_shares=cpu_shares(cpu.milli_value()) if cpu is not None else None,
        memory=memory.value() if memory is not None else None,
        pids=pids.value() if pids is not None else None,
        cpus=cpus,
        huge_pages={size: amount.value() for name, amount in amounts.items() if (size := page_size(name))},
    )


def limits_of_reservation(
    amounts: ResourceAmounts, *, compressible_only: bool, cpus: str = "", memory_qos: bool = False
) -> CgroupLimits:
    """Limits of a cgroup of system or Kubernetes daemons: memory, processes and CPU, or CPU alone."""
    found = limits_of_node(amounts, cpus=cpus)
    if compressible_only:
        return CgroupLimits(cpu_shares=found.cpu_shares, cpus=cpus)
    return CgroupLimits(
        cpu_shares=found.cpu_shares,
        memory=found.memory,
        pids=found.pids,
        cpus=cpus,
        memory_min=found.memory if memory_qos else None,
    )
