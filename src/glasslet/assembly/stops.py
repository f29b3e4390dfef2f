"""Builds stops: what holds pods, and what answers requests about that."""

from __future__ import annotations

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.platform import Platform
from glasslet.assembly.pods import PodSide
from glasslet.glass.inspection.tree import Inspector
from glasslet.glass.stops.handlers import StopHandlers
from glasslet.glass.stops.view import StopView
from glasslet.stops.evaluation import CELConditions
from glasslet.stops.stops import Stops


def build_stop_handlers(platform: Platform, pods: PodSide) -> StopHandlers:
    """The handlers. From now on pods can be held."""
    foundation: Foundation = platform.foundation
    holds, record = foundation.holds, foundation.record
    inspector = Inspector(
        node=foundation.node_name,
        census=pods.census,
        observed=platform.runtime.observed.get,
        last=pods.probes.manager.last,
        standing=record.standing_of,
        hold_of=holds.hold_of,
        clock=foundation.clock,
    )
    stops = Stops(
        holds=holds,
        view=StopView(census=pods.census, inspector=inspector),
        conditions=CELConditions(),
        clock=foundation.clock,
    )
    foundation.arrivals.subscribe(stops)
    return StopHandlers(stops=stops, holds=holds, pods=pods.census.snapshot, tree=inspector.tree, record=record)
