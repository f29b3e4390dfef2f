"""Builds the node's graceful shutdown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.platform import Platform
from glasslet.assembly.pods import PodSide
from glasslet.shutdown.groups import Group, groups_of
from glasslet.shutdown.state import FILE, ShutdownFile

if TYPE_CHECKING:
    from glasslet.host.systemd.logind import Logind
    from glasslet.shutdown.manager import NodeShutdown


def shutdown_services(platform: Platform, pods: PodSide) -> Mapping[str, Callable[[], Awaitable[None]]]:
    """None where no shutdown period is set: nothing is loaded, built, dialled or shown then."""
    foundation = platform.foundation
    groups = groups_of(foundation.configuration, foundation.loaded.gates)
    return {"node shutdown": _build(platform, pods, groups).run} if groups else {}


def _build(platform: Platform, pods: PodSide, groups: tuple[Group, ...]) -> NodeShutdown:
    from glasslet.shutdown.manager import NodeShutdown, PodsToEnd
    from glasslet.telemetry.metrics.node_shutdown import NodeShutdownMetrics

    foundation, cluster = platform.foundation, platform.cluster

    def changed() -> None:
        if foundation.shutdown.raised:
            foundation.arrivals.let_all_go("the node shuts down")
        if cluster is not None:
            cluster.node.wake()

    by_priority = foundation.loaded.gates.enabled("GracefulNodeShutdownBasedOnPodPriority")
    metrics = NodeShutdownMetrics(foundation.metrics.registry) if by_priority else None
    return NodeShutdown(
        groups=groups,
        guard=lambda heard: _guard(foundation, heard),
        pods=PodsToEnd(
            active=pods.census.active,
            kill=pods.workers.kill,
            ended=pods.census.ended,
            reported=pods.statuses.accepted,
        ),
        flag=foundation.shutdown,
        flag_changed=changed,
        times=ShutdownFile(f"{foundation.root.root_dir}/{FILE}", now=foundation.clock.now, metrics=metrics),
        events=foundation.events.node,
        clock=foundation.clock,
        recorder=foundation.record,
    )


def _guard(foundation: Foundation, heard: Callable[[bool], None]) -> Logind:
    """A connection of its own: work on cgroups that hangs must not hold up a shutdown."""
    from glasslet.host.systemd.bus import SystemBus, system_bus_address
    from glasslet.host.systemd.logind import Logind
    from glasslet.host.systemd.units import SystemdUnits

    bus = SystemBus(address=system_bus_address(), recorder=foundation.record)
    return Logind(bus=bus, units=SystemdUnits(bus=bus, recorder=foundation.record), heard=heard)
