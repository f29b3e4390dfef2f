"""Pods arrive at the places of their way. What holds them subscribes: it reads the pods, which stand on this."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from glasslet.api.pod_ref import PodRef
from glasslet.record.way import NO_STOPS, Facts, PodHolder, no_facts


class Arrival(Struct, frozen=True, kw_only=True):
    """A pod came to a place of its way, before its work or `after` it. `task`: the task that is there."""

    pod: PodRef
    place: str
    after: bool
    container: str
    facts: Facts
    task: asyncio.Task[object] | None = None


class Arrivals:
    """Implements `record.way.PodHolder` for everything that works on pods. Before `subscribe` no pod is held."""

    def __init__(self) -> None:
        self._holder: PodHolder = NO_STOPS

    def subscribe(self, holder: PodHolder) -> None:
        """Has it asked at each place from now on."""
        self._holder = holder

    @property
    def armed(self) -> bool:
        """See `record.way.PodHolder.armed`."""
        return self._holder.armed

    async def at(self, place: str, *, container: str = "", after: bool = False, facts: Facts = no_facts) -> bool:
        """See `record.way.PodHolder.at`."""
        return await self._holder.at(place, container=container, after=after, facts=facts)

    def let_go(self, pod: PodRef) -> None:
        """See `record.way.PodHolder.let_go`."""
        self._holder.let_go(pod)

    def let_all_go(self, why: str) -> None:
        """See `record.way.PodHolder.let_all_go`."""
        self._holder.let_all_go(why)
