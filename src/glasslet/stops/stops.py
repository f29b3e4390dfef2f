"""The owner of breaks, and of what is held because of them.

    at(place)                  called by a pod's work: holds the pod if a break or a step says so
    set, remove, breaks        what is to hold pods
    step, go_on, go_on_all     what lets them go

`Holds` keeps the pods that are held, for all to read. A held pod is only held: nothing of it is stopped, and what runs
beside its work (probes, statuses) goes on. Breaks live as long as the agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Protocol

from glasslet.answers.pods import Hold
from glasslet.answers.stops import BreakRequest, BreakRow, ReleasedAnswer
from glasslet.answers.wire import ErrorAnswer
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.concurrency.clock import Clock
from glasslet.record.recorder import current_scope
from glasslet.record.stations import Station
from glasslet.record.way import Facts, no_facts
from glasslet.stops.arrivals import Arrival
from glasslet.stops.breaks import BadBreak, Break, parse_break
from glasslet.stops.conditions import BadCondition, ConditionFailed, Conditions, ConditionTooSlow
from glasslet.stops.holds import Holds, StandingHold
from glasslet.stops.places import BESIDE, WAY_OUT

MOST_BREAKS = 64
STEP_SECONDS = 600.0
"""How long a pod that is stepped is held at each place, and steps on after the last step."""
_LOOK = 0.1
_AT_REST = 3
"""Looks in a row at which a stepped pod has to be at rest."""


class PodsInView(Protocol):
    """The pods of this node."""

    def pods(self) -> Iterable[Pod]:
        """All of them."""

    def pod(self, uid: PodUID) -> Pod | None:
        """One of them."""

    def leaves(self, uid: PodUID) -> bool:
        """Whether the pod has to stop, or is not here."""

    def rests(self, uid: PodUID) -> bool:
        """Whether nothing is being done for the pod."""

    def tree(self, arrival: Arrival) -> Mapping[str, object]:
        """All that is known of the pod at this place: the tree that conditions see and `inspect` shows."""


class _Set:
    """A break that is set."""

    __slots__ = ("by", "hits", "kind", "number", "off", "problem", "set_at")

    def __init__(self, number: int, kind: Break, by: str, set_at: datetime) -> None:
        self.number = number
        self.kind = kind
        self.by = by
        self.set_at = set_at
        self.hits = 0
        self.problem = ""
        self.off = False
        """Its condition took too long: it is not evaluated again."""

    @property
    def spent(self) -> bool:
        """Whether it held as many pods as it was to hold."""
        return self.hits >= self.kind.wanted.count > 0


class Stops:
    """Implements `record.way.PodHolder`. `armed`: a break is set, or a pod is stepped."""

    def __init__(self, *, holds: Holds, view: PodsInView, conditions: Conditions, clock: Clock) -> None:
        self.armed = False
        self._holds = holds
        self._view = view
        self._conditions = conditions
        self._clock = clock
        self._breaks: dict[int, _Set] = {}
        self._numbers = 0
        self._stepped: dict[PodUID, float] = {}
        """Pods that are held at each place of their way, and until when (monotonic)."""

    # -- the way of a pod ----------------------------------------------------------------------------------------------

    async def at(self, place: str, *, container: str = "", after: bool = False, facts: Facts = no_facts) -> bool:
        """See `record.way.PodHolder.at`."""
        scope, view = current_scope(), self._view
        if scope.pod is None:
            return False
        arrival = Arrival(
            pod=scope.pod,
            place=place,
            after=after,
            container=container or scope.container,
            facts=facts,
            task=asyncio.current_task(),
        )
        if place not in WAY_OUT and view.leaves(scope.pod.uid):
            return False
        if scope.station is Station.PROBES and place != Station.PROBES:
            # A probe that is held in its middle would fail.
            return False
        if self._steps(arrival):
            await self._hold(arrival, by=0, seconds=STEP_SECONDS)
            return True
        tree: Mapping[str, object] | None = None
        for one in self._candidates(arrival):
            if one.kind.wanted.when:
                tree = tree if tree is not None else view.tree(arrival)
                if not await self._agrees(one, arrival, tree):
                    continue
            if one.number in self._breaks and not one.spent:
                one.hits += 1
                await self._hold(arrival, by=one.number, seconds=one.kind.wanted.hold_seconds)
                return True
        return False

    def let_go(self, pod: PodRef) -> None:
        """See `record.way.PodHolder.let_go`."""
        self._stop_stepping(pod.uid)
        for held in self._holds.of(pod.uid):
            held.end("it has to stop")

    def let_all_go(self, why: str) -> None:
        """See `record.way.PodHolder.let_all_go`: those that are held while they stop go on as well."""
        self._breaks.clear()
        self._stepped.clear()
        self._release(why, lambda held: True)
        self._tidy()

    def _steps(self, arrival: Arrival) -> bool:
        until = self._stepped.get(arrival.pod.uid)
        if until is None or arrival.after or arrival.place in BESIDE or ":" in arrival.place:
            return False
        if until < self._clock.monotonic():
            self._stop_stepping(arrival.pod.uid)
            return False
        return True

    def _candidates(self, arrival: Arrival) -> list[_Set]:
        here = [
            one
            for one in self._breaks.values()
            if not one.spent
            and not one.off
            and one.kind.is_at(arrival.place, after=arrival.after, container=arrival.container)
        ]
        if not here:
            return here
        pod = self._view.pod(arrival.pod.uid)
        labels = pod.metadata.labels if pod is not None else None
        return [one for one in here if one.kind.fits(arrival.pod, labels)]

    async def _agrees(self, one: _Set, arrival: Arrival, tree: Mapping[str, object]) -> bool:
        """Whether its condition holds here."""
        try:
            fits = await self._conditions.holds(one.kind.wanted.when, tree)
        except ConditionTooSlow as error:
            one.off, one.problem = True, f"{error}; the break is off"
            return False
        except ConditionFailed as error:
            one.problem = f"{arrival.pod}: {error}"
            return False
        one.problem = ""
        return fits

    async def _hold(self, arrival: Arrival, *, by: int, seconds: float) -> None:
        try:
            await self._holds.hold(arrival, by=by, seconds=seconds, has_to_stop=self._view.leaves)
        finally:
            self._tidy()

    # -- breaks --------------------------------------------------------------------------------------------------------

    async def set(self, wanted: BreakRequest, *, by: str) -> BreakRow:
        """A new break. Raises BadBreak."""
        kind = parse_break(wanted)
        if wanted.when:
            try:
                await self._conditions.check(wanted.when)
            except BadCondition as error:
                raise BadBreak(_wrong_condition(wanted.when, error)) from error
            except ConditionFailed as error:
                raise BadBreak(ErrorAnswer(error=str(error), field="when", value=wanted.when)) from error
        if len(self._breaks) >= MOST_BREAKS:
            raise BadBreak(
                ErrorAnswer(error="too many breaks", field="breaks", allowed=f"{MOST_BREAKS}; remove one: unbreak")
            )
        self._numbers += 1
        one = self._breaks[self._numbers] = _Set(self._numbers, kind, by, self._clock.now())
        self.armed = True
        return self._row(one)

    def breaks(self) -> tuple[BreakRow, ...]:
        """All breaks, by number."""
        self._tidy()
        return tuple(self._row(one) for one in self._breaks.values())

    def remove(self, number: int | None = None) -> ReleasedAnswer | None:
        """Removes one break, or all; the pods that they hold go on. None: there is no break of that number."""
        numbers = list(self._breaks) if number is None else [number]
        if number is not None and number not in self._breaks:
            return None
        released = self._release("its break was removed", lambda held: held.by in numbers)
        for one in numbers:
            del self._breaks[one]
        self._tidy()
        return ReleasedAnswer(released=released, removed=tuple(numbers))

    def _row(self, one: _Set) -> BreakRow:
        wanted = one.kind.wanted
        return BreakRow(
            **{name: getattr(wanted, name) for name in BreakRequest.__struct_fields__},
            number=one.number,
            set_at=one.set_at,
            set_by=one.by,
            hits=one.hits,
            holding=tuple(dict.fromkeys(str(held.arrival.pod) for held in self._holds if held.by == one.number)),
            matching=sum(one.kind.fits(pod_ref(pod), pod.metadata.labels) for pod in self._view.pods()),
            problem=one.problem,
        )

    # -- going on ------------------------------------------------------------------------------------------------------

    async def step(self, pod: PodRef, *, patience: float) -> Hold | None:
        """Lets the pod's oldest hold go, up to the next place of its way. Returns when the pod is held again, when it
        is at rest, or after `patience` seconds: the hold of then."""
        before = self._holds.of(pod.uid)
        if not before:
            return None
        self._stepped[pod.uid] = self._clock.monotonic() + STEP_SECONDS
        self.armed = True
        released = before[0]
        released.end("a step")
        deadline, at_rest = self._clock.monotonic() + patience, 0
        while self._clock.monotonic() < deadline:
            now = [held for held in self._holds.of(pod.uid) if not held.ended]
            if new := [held for held in now if held not in before]:
                return new[-1].shown()
            task = released.arrival.task
            if now and task is not None and task.done():
                return now[0].shown()
            at_rest = at_rest + 1 if self._is_at_rest(pod.uid) else 0
            if at_rest > _AT_REST:
                break
            try:
                async with asyncio.timeout(_LOOK):
                    await self._holds.change()
            except TimeoutError:
                # No hold began or ended: perhaps the pod is at rest by now.
                continue
        return self._holds.hold_of(pod.uid)

    def go_on(self, pod: PodRef) -> ReleasedAnswer:
        """Lets a pod go, from all places where it is held."""
        self._stop_stepping(pod.uid)
        return ReleasedAnswer(released=self._release("continue", lambda held: held.arrival.pod.uid == pod.uid))

    def go_on_all(self) -> ReleasedAnswer:
        """Lets all pods go. Breaks stay."""
        for uid in tuple(self._stepped):
            self._stop_stepping(uid)
        return ReleasedAnswer(released=self._release("continue", lambda held: True))

    def _release(self, why: str, which: Callable[[StandingHold], bool]) -> tuple[str, ...]:
        found = [held for held in self._holds if not held.ended and which(held)]
        for held in found:
            held.end(why)
        return tuple(dict.fromkeys(str(held.arrival.pod) for held in found))

    def _is_at_rest(self, uid: PodUID) -> bool:
        return self._view.leaves(uid) or self._view.rests(uid)

    def _stop_stepping(self, uid: PodUID) -> None:
        if self._stepped.pop(uid, None) is not None:
            self._tidy()

    def _tidy(self) -> None:
        """Forgets breaks that are spent, steps that are over, and pods that are gone."""
        holding = {held.by for held in self._holds}
        for one in [one for one in self._breaks.values() if one.spent and one.number not in holding]:
            del self._breaks[one.number]
        now = self._clock.monotonic()
        self._stepped = {uid: until for uid, until in self._stepped.items() if until >= now}
        self.armed = bool(self._breaks or self._stepped)
        if not any(one.kind.wanted.when for one in self._breaks.values()):
            self._conditions.idle()
        for uid in self._holds.pods():
            if self._view.pod(uid) is None:
                self._holds.forget(uid)


def _wrong_condition(condition: str, error: BadCondition) -> ErrorAnswer:
    place = f" at line {error.line}, column {error.column}" if error.column else ""
    return ErrorAnswer(error=f"not a CEL expression{place}: {error}", field="when", value=condition)
