"""The node as the specifications of pods see it; read again when the resolver file or the runtime's handlers change."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.host.machine import Machine
from glasslet.host.resolver import ResolverSource
from glasslet.podspec.request import NodeFacts, ResolverFile
from glasslet.resources.node_share import machine_allocatable, machine_for_pods
from glasslet.runtime.model import RuntimeHandler


def facts_for_pods(
    name: str, root_dir: str, host_ips: tuple[str, ...], configuration: KubeletConfiguration, machine: Machine
) -> NodeFacts:
    """The facts that do not change while the agent runs."""
    return NodeFacts(
        name=name,
        root_dir=root_dir,
        pod_logs_dir=configuration.pod_logs_dir,
        host_ips=host_ips,
        memory_capacity=machine.memory_capacity,
        allocatable=machine_allocatable(configuration, machine),
        cluster_dns=tuple(configuration.cluster_dns),
        cluster_domain=configuration.cluster_domain,
        cpu_cfs_quota=configuration.cpu_cfs_quota,
        cpu_cfs_quota_period=round(configuration.cpu_cfs_quota_period * 1_000_000),
        seccomp_default=configuration.seccomp_default,
        cgroup_v2=machine.cgroup_v2,
        single_process_oom_kill=bool(configuration.single_process_oom_kill),
        hugepage_sizes=machine.hugepage_sizes,
        masked_paths=machine.masked_paths,
        swap_capacity=machine.swap_capacity,
        swap_controller=machine.swap_controller,
        limited_swap=configuration.memory_swap.swap_behavior == "LimitedSwap",
        memory_for_pods=machine_for_pods(configuration, machine)["memory"].value(),
        selinux=machine.selinux,
    )


class NodeForPods:
    """Calls give the facts of now: `fixed` with the resolver file and the features of runtime handlers."""

    def __init__(
        self, *, fixed: NodeFacts, resolver: ResolverSource, handlers: Callable[[], tuple[RuntimeHandler, ...]]
    ) -> None:
        self._resolver = resolver
        self._handlers = handlers
        self._read_from: tuple[ResolverFile, tuple[RuntimeHandler, ...]] | None = None
        self._facts = fixed

    def __call__(self) -> NodeFacts:
        """The same value as last time if nothing changed."""
        resolver, handlers = self._resolver.look(), self._handlers()
        # The resolver file is compared by identity: it is parsed once per change.
        if self._read_from is None or resolver is not self._read_from[0] or handlers != self._read_from[1]:
            self._read_from = resolver, handlers
            read_only = frozenset(handler.name for handler in handlers if handler.recursive_read_only_mounts)
            self._facts = replace(self._facts, resolver=resolver, recursive_read_only_handlers=read_only)
        return self._facts
