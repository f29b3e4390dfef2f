"""Builds the eviction manager."""

from __future__ import annotations

from functools import partial

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.platform import Platform
from glasslet.assembly.pods import PodSide
from glasslet.eviction.manager import EvictionManager
from glasslet.eviction.services import EvictionReport, EvictionSettings, Reclaim
from glasslet.eviction.thresholds import Threshold, configured_thresholds
from glasslet.pods.upkeep.evictees import Evictees
from glasslet.stats.node_stats import NodeStatistics


def build_eviction(platform: Platform, pods: PodSide, stats: NodeStatistics) -> EvictionManager:
    """Its service runs once pods are managed."""
    foundation = platform.foundation
    return EvictionManager(
        figures=stats,
        pods=Evictees(census=pods.census, workers=pods.workers),
        reclaim=Reclaim(
            containers=partial(pods.upkeep.garbage.collect, evicting=True),
            images=pods.upkeep.image_garbage.delete_unused,
        ),
        pressures=platform.pressures,
        settings=_settings(foundation),
        report=EvictionReport(
            recorder=foundation.record,
            clock=foundation.clock,
            metrics=foundation.metrics.evictions,
            pod_event=foundation.events.pod,
            node_event=foundation.events.node,
        ),
    )


def thresholds_of(foundation: Foundation) -> tuple[Threshold, ...]:
    """The thresholds of the configuration."""
    ignored = foundation.options.experimental_allocatable_ignore_eviction
    return configured_thresholds(foundation.configuration, ignore_allocatable=ignored)


def _settings(foundation: Foundation) -> EvictionSettings:
    configuration, gates = foundation.configuration, foundation.loaded.gates
    return EvictionSettings(
        thresholds=thresholds_of(foundation),
        transition=configuration.eviction_pressure_transition_period,
        max_grace=configuration.eviction_max_pod_grace_period,
        own_grace=not gates.enabled("AllowOverwriteTerminationGracePeriodSeconds"),
        local_limits=configuration.local_storage_capacity_isolation,
    )
