"""Builds stops: what holds pods, and what answers requests about that. The first such request loads and builds it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from glasslet.assembly.platform import Platform
from glasslet.assembly.pods import PodSide

if TYPE_CHECKING:
    from glasslet.glass.stops.handlers import StopHandlers


def stop_handlers(platform: Platform, pods: PodSide) -> Callable[[], StopHandlers]:
    """Gives the handlers. From the first call on pods can be held."""

    @cache
    def handlers() -> StopHandlers:
        return _build(platform, pods)

    return handlers


def _build(platform: Platform, pods: PodSide) -> StopHandlers:
    from glasslet.glass.inspection.tree import Inspector
    from glasslet.glass.stops.handlers import StopHandlers
    from glasslet.glass.stops.view import StopView
    from glasslet.stops.evaluation import CELConditions
    from glasslet.stops.stops import Stops

    foundation = platform.foundation
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
