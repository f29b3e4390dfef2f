"""Holds: pods that are held now, and for how long each was held lately."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Protocol

from glasslet.answers.pods import Hold
from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import Clock
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.stops.arrivals import Arrival
from glasslet.stops.places import first_work, in_words

_REMEMBERED = 64
"""Ended holds of one pod."""


class Events(Protocol):
    """Takes events of pods."""

    def __call__(self, pod: PodRef, type_: str, reason: str, message: str, field_path: str = "", /) -> None: ...


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

    def __init__(self, *, recorder: Recorder, events: Events, clock: Clock) -> None:
        self._recorder = recorder
        self._events = events
        self._clock = clock
        self._held: list[StandingHold] = []
        self._lately: dict[PodUID, deque[tuple[float, float]]] = {}
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[StandingHold]:
        return iter(tuple(self._held))

    def of(self, uid: PodUID) -> list[StandingHold]:
        """The holds of one pod, the oldest first."""
        return [held for held in self._held if held.arrival.pod.uid == uid]

    async def hold(self, arrival: Arrival, *, by: int, seconds: float, has_to_stop: Callable[[PodUID], bool]) -> None:
        """Holds the pod until it is let go, at most so many seconds. `by`: number of the break, 0 for a step."""
        since = self._clock.now()
        until = since + timedelta(seconds=seconds)
        held = StandingHold(arrival, by=by, since=since, until=until)
        who = f"break {by}" if by else "a step"
        where = in_words(arrival.place, after=arrival.after)
        of = f" of container {arrival.container}" if arrival.container else ""
        go_on = f"glasslet continue {arrival.pod}"
        self._held.append(held)
        self._wake()
        held_at = f"Held at {where}{of} by {who}, until {until:%H:%M:%S} UTC; go on: {go_on}"
        self._events(arrival.pod, "Normal", "PodHeld", held_at)
        try:
            on = f"{who} at {where}, {go_on}"
            with self._recorder.wait(WaitKind.PAUSE, on=on, until=until, container=arrival.container):
                try:
                    async with asyncio.timeout(seconds):
                        await held.over()
                except TimeoutError:
                    held.end("its time is over")
        finally:
            held.end("it has to stop" if has_to_stop(arrival.pod.uid) else "the agent ends")
            passed = self._finish(held)
            gone_on = f"Goes on from {where}{of} after {passed:.0f} s: {held.ended}"
            self._events(arrival.pod, "Normal", "PodReleased", gone_on)

    def _finish(self, held: StandingHold) -> float:
        """The hold is over. The seconds that it lasted."""
        now = self._clock.now()
        self._held.remove(held)
        spans = self._lately.setdefault(held.arrival.pod.uid, deque(maxlen=_REMEMBERED))
        spans.append((held.since.timestamp(), now.timestamp()))
        self._wake()
        return (now - held.since).total_seconds()

    def forget(self, uid: PodUID) -> None:
        """The pod is gone."""
        self._lately.pop(uid, None)

    def pods(self) -> list[PodUID]:
        """Pods that were held lately."""
        return list(self._lately)

    def arrival_of(self, uid: PodUID) -> Arrival | None:
        """The place where the pod is held, the oldest of several."""
        return next((held.arrival for held in self.of(uid) if not held.ended), None)

    def hold_of(self, uid: PodUID) -> Hold | None:
        """The pod's hold, the oldest of several."""
        return next((held.shown() for held in self.of(uid) if not held.ended), None)

    def held_seconds(self, uid: PodUID, since: float) -> float:
        """For how long the pod was held since then (Unix seconds)."""
        now = self._clock.now().timestamp()
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
