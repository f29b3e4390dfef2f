"""Builds the eviction manager."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from functools import partial

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.platform import Platform
from glasslet.assembly.pods import PodSide
from glasslet.eviction.manager import EvictionManager
from glasslet.eviction.memory_notices import MemoryNotices
from glasslet.eviction.options import CACHE_IS_FREE, CacheFreeFigures, eviction_options
from glasslet.eviction.outlook import EvictionOutlook, OutlookSources
from glasslet.eviction.reading import NodeReader
from glasslet.eviction.services import (
    EvictionReport,
    EvictionSettings,
    NodeFigures,
    NoNotices,
    Notices,
    Reclaim,
    WatchedNode,
)
from glasslet.eviction.signals import Signal
from glasslet.eviction.thresholds import Threshold, configured_thresholds
from glasslet.host.cgroups.discovery import CgroupsNotUsable, find_tree, free_memory, memory_files
from glasslet.host.cgroups.memory_notices import KernelNotice, memory_notices
from glasslet.pods.upkeep.evictees import Evictees
from glasslet.stats.node_stats import NodeStatistics

logger = logging.getLogger(__name__)


def build_eviction(platform: Platform, pods: PodSide, stats: NodeStatistics) -> EvictionManager:
    """Its service runs once pods are managed."""
    foundation = platform.foundation
    return EvictionManager(
        node=WatchedNode(
            figures=eviction_figures(foundation, pods, stats),
            pressures=platform.pressures,
            notices=_notices(foundation, pods),
        ),
        pods=Evictees(census=pods.census, workers=pods.workers),
        reclaim=Reclaim(
            containers=partial(pods.upkeep.garbage.collect, evicting=True),
            images=pods.upkeep.image_garbage.delete_unused,
        ),
        settings=eviction_settings(foundation),
        report=EvictionReport(
            recorder=foundation.record,
            clock=foundation.clock,
            metrics=foundation.metrics.evictions,
            pod_event=foundation.events.pod,
            node_event=foundation.events.node,
        ),
    )


def build_outlook(platform: Platform, pods: PodSide, stats: NodeStatistics) -> EvictionOutlook:
    """What eviction would do; reads only when it is asked."""
    foundation, settings = platform.foundation, eviction_settings(platform.foundation)
    evictees = Evictees(census=pods.census, workers=pods.workers)
    return EvictionOutlook(
        OutlookSources(
            reader=NodeReader(
                figures=eviction_figures(foundation, pods, stats), pods=evictees, thresholds=settings.thresholds
            ),
            pressures=platform.pressures,
            settings=settings,
            clock=foundation.clock,
            sources=signal_sources(foundation, pods),
        )
    )


def eviction_figures(foundation: Foundation, pods: PodSide, stats: NodeStatistics) -> NodeFigures:
    """The figures that eviction decides by, and that the page and the commands show."""
    if not eviction_options(os.environ).cache_is_free:
        return stats
    owned = pods.cgroups.owned
    try:
        read = partial(free_memory, find_tree(), owned.top if owned is not None else "")
    except CgroupsNotUsable as error:
        logger.warning(f"{CACHE_IS_FREE} has no effect", extra={"error": str(error)})
        return stats
    return CacheFreeFigures(figures=stats, read=read, threads=foundation.threads)


def signal_sources(foundation: Foundation, pods: PodSide) -> Mapping[Signal, str]:
    """The files and calls that each signal comes from."""
    owned = pods.cgroups.owned
    cache = eviction_options(os.environ).cache_is_free
    node_disk, image_disk = f"statfs of {foundation.root.root_dir}", "statfs of the runtime's image file system"
    found = {
        Signal.NODEFS: node_disk,
        Signal.NODEFS_INODES: node_disk,
        Signal.IMAGEFS: image_disk,
        Signal.IMAGEFS_INODES: image_disk,
        Signal.PIDS: "/proc/sys/kernel/pid_max, /proc/sys/kernel/threads-max, /proc/loadavg",
    }
    try:
        tree = find_tree()
    except CgroupsNotUsable:
        return found
    of_node = "MemTotal and MemAvailable of /proc/meminfo" if cache else "MemTotal of /proc/meminfo"
    found[Signal.MEMORY] = f"{of_node}, {memory_files(tree, '')}"
    if owned is not None:
        found[Signal.ALLOCATABLE_MEMORY] = memory_files(tree, owned.top)
    return found


def _notices(foundation: Foundation, pods: PodSide) -> Notices:
    """Those of the kernel, where the configuration wants them and the machine has cgroups."""
    if not foundation.configuration.kernel_memcg_notification:
        return NoNotices()
    owned = pods.cgroups.owned
    try:
        subscribe = partial(memory_notices, find_tree(), pods=owned.top if owned is not None else "")
    except CgroupsNotUsable as error:
        logger.warning("kernelMemcgNotification has no effect", extra={"error": str(error)})
        return NoNotices()

    def of_signal(signal: Signal, amount: int) -> Iterable[KernelNotice]:
        return subscribe(amount=amount, of_pods=signal is Signal.ALLOCATABLE_MEMORY)

    return MemoryNotices(subscribe=of_signal, clock=foundation.clock, recorder=foundation.record)


def thresholds_of(foundation: Foundation) -> tuple[Threshold, ...]:
    """The thresholds of the configuration."""
    ignored = foundation.options.experimental_allocatable_ignore_eviction
    return configured_thresholds(foundation.configuration, ignore_allocatable=ignored)


def eviction_settings(foundation: Foundation) -> EvictionSettings:
    """Thresholds and graces of the configuration."""
    configuration, gates = foundation.configuration, foundation.loaded.gates
    return EvictionSettings(
        thresholds=thresholds_of(foundation),
        transition=configuration.eviction_pressure_transition_period,
        max_grace=configuration.eviction_max_pod_grace_period,
        own_grace=not gates.enabled("AllowOverwriteTerminationGracePeriodSeconds"),
        local_limits=configuration.local_storage_capacity_isolation,
        waits=eviction_options(os.environ).waits,
    )
