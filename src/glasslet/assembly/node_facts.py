"""The node as pods see it, and what of it they may use."""

from __future__ import annotations

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.host.resolver import ResolverSource, resolver_limits
from glasslet.podspec.request import NodeFacts, ResolverFile
from glasslet.resources.node_share import machine_allocatable, machine_for_pods
from glasslet.runtime.model import RuntimeHandler


def tell_resolver_limits(foundation: Foundation) -> None:
    """An event of the node if pods cannot have what its resolver file says; once, at the start."""
    configuration = foundation.configuration
    file, path = ResolverSource(configuration.resolv_conf).look(), configuration.resolv_conf
    problem = file.problem or resolver_limits(file, path, cluster_domain=configuration.cluster_domain)
    if problem:
        foundation.events.node("Warning", "CheckLimitsForResolvConf", problem)


class PodNodeFacts:
    """The node as podspec sees it; while the agent runs only the resolver file and the runtime may change."""

    def __init__(self, foundation: Foundation, runtime: RuntimeSide, host_ips: tuple[str, ...]) -> None:
        self._runtime = runtime
        self._resolver = ResolverSource(foundation.configuration.resolv_conf)
        self._foundation = foundation
        self._host_ips = host_ips
        self._read_from: object = None
        self._handlers: tuple[RuntimeHandler, ...] = ()
        self._facts = NodeFacts(name=foundation.node_name)

    def __call__(self) -> NodeFacts:
        """The facts of now."""
        resolver = self._resolver.look()
        handlers = self._runtime.conditions.handlers
        if resolver is not self._read_from or handlers != self._handlers:
            self._handlers = handlers
            self._facts, self._read_from = self._read(resolver), resolver
        return self._facts

    def _read(self, resolver: ResolverFile) -> NodeFacts:
        configuration, machine = self._foundation.configuration, self._foundation.machine
        return NodeFacts(
            name=self._foundation.node_name,
            root_dir=self._foundation.root.root_dir,
            pod_logs_dir=configuration.pod_logs_dir,
            host_ips=self._host_ips,
            memory_capacity=machine.memory_capacity,
            allocatable=machine_allocatable(configuration, machine),
            cluster_dns=tuple(configuration.cluster_dns),
            cluster_domain=configuration.cluster_domain,
            resolver=resolver,
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
            memory_throttling_factor=self._foundation.memory_throttling_factor,
            memory_for_pods=machine_for_pods(configuration, machine)["memory"].value(),
            selinux=machine.selinux,
            recursive_read_only_handlers=frozenset(h.name for h in self._handlers if h.recursive_read_only_mounts),
        )
