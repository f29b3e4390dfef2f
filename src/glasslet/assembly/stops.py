"""Builds stops: what holds pods, and what answers requests about that."""

from __future__ import annotations

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.platform import Platform
from glasslet.assembly.pods import PodSide
from glasslet.glass.inspection.tree import Inspector
from glasslet.glass.stops.handlers import StopHandlers
from glasslet.glass.stops.view import StopView


def build_stop_handlers(platform: Platform, pods: PodSide) -> StopHandlers:
    """The handlers. From now on pods can be held."""
    foundation: Foundation = platform.foundation
    stops, record = foundation.stops, foundation.record
    inspector = Inspector(
        node=foundation.node_name,
        census=pods.census,
        observed=platform.runtime.observed.get,
        last=pods.probes.manager.last,
        standing=record.standing_of,
        hold_of=stops.hold_of,
        clock=foundation.clock,
    )
    stops.watch(StopView(census=pods.census, inspector=inspector))
    return StopHandlers(stops=stops, pods=pods.census.snapshot, tree=inspector.tree, record=record)
