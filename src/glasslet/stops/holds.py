"""Holds: pods that are held now, and for how long each was held lately."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from glasslet.answers.pods import Hold
from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.record.way import Facts
from glasslet.stops.places import first_work

_REMEMBERED = 64
"""Ended holds of one pod."""


class Arrival(Struct, frozen=True, kw_only=True):
    """A pod came to a place of its way, before its work or `after` it. `task`: the task that is there."""

    pod: PodRef
    place: str
    after: bool
    container: str
    facts: Facts
    task: asyncio.Task[object] | None = None


class StandingHold:
    """One hold. It ends when its pod is let go, at its time limit, or with its task."""

    def __init__(self, arrival: Arrival, *, by: int, since: datetime, until: datetime) -> None:
        self.arrival = arrival
        self.by = by
        self.since = since
        self.until = until
        self.ended = ""
        """Why the pod goes on, "" while it is held."""
        self._over = asyncio.Event()

    def end(self, why: str) -> None:
        """The pod goes on."""
        self.ended = self.ended or why
        self._over.set()

    async def over(self) -> None:
        """Returns when the pod goes on."""
        await self._over.wait()

    def shown(self) -> Hold:
        """The hold as answers have it."""
        at = self.arrival
        return Hold(
            at=at.place,
            after=at.after,
            by=self.by,
            since=self.since,
            until=self.until,
            container=at.container,
            next=first_work(at.place, after=at.after),
        )


class Holds:
    """All holds, oldest first, and how long each pod was held."""

    def __init__(self) -> None:
        self._held: list[StandingHold] = []
        self._lately: dict[PodUID, deque[tuple[float, float]]] = {}
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[StandingHold]:
        return iter(tuple(self._held))

    def of(self, uid: PodUID) -> list[StandingHold]:
        """The holds of one pod, the oldest first."""
        return [held for held in self._held if held.arrival.pod.uid == uid]

    def begin(self, held: StandingHold) -> None:
        """The pod is held from now on."""
        self._held.append(held)
        self._wake()

    def finish(self, held: StandingHold, *, now: datetime) -> None:
        """The hold is over."""
        self._held.remove(held)
        spans = self._lately.setdefault(held.arrival.pod.uid, deque(maxlen=_REMEMBERED))
        spans.append((held.since.timestamp(), now.timestamp()))
        self._wake()

    def forget(self, uid: PodUID) -> None:
        """The pod is gone."""
        self._lately.pop(uid, None)

    def pods(self) -> list[PodUID]:
        """Pods that were held lately."""
        return list(self._lately)

    def seconds(self, uid: PodUID, *, since: float, now: float) -> float:
        """For how long the pod was held from `since` to `now` (Unix seconds)."""
        spans = [*self._lately.get(uid, ()), *((held.since.timestamp(), now) for held in self.of(uid))]
        total, reached = 0.0, since
        for start, end in sorted(spans):
            total += max(0.0, min(end, now) - max(start, reached))
            reached = max(reached, end)
        return total

    async def change(self) -> None:
        """Returns when a hold began or ended."""
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
