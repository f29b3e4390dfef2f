"""Connects the page to the parts of the agent that only it reads: times of calls, and the pressure on the node."""

from __future__ import annotations

from functools import partial

from glasslet.assembly.eviction import eviction_figures, signal_sources, thresholds_of
from glasslet.assembly.platform import Platform
from glasslet.assembly.pods import PodSide
from glasslet.glass.page.call_times import times_of_calls
from glasslet.glass.page.pressure import PressureReader
from glasslet.glass.page.source import PageSource
from glasslet.stats.node_stats import NodeStatistics


def build_page(platform: Platform, pods: PodSide, stats: NodeStatistics) -> PageSource:
    """The page's own source. Reads nothing until a page asks."""
    foundation, metrics = platform.foundation, platform.foundation.metrics
    return PageSource(
        calls=partial(times_of_calls, runtime=metrics.runtime.buckets, api=metrics.api_client.buckets),
        pressure=PressureReader(
            figures=eviction_figures(foundation, pods, stats),
            thresholds=thresholds_of(foundation),
            trends=platform.pressures.trends,
            sources=signal_sources(foundation, pods),
            now=foundation.clock.monotonic,
        ),
    )
