"""Which thresholds are crossed, which pressures the node reports, and which threshold is acted on. Pure.

A hard threshold is acted on at once, a soft one when its signal was below it for the whole grace period. One that was
acted on stays until its minimum reclaim is available as well. A pressure is reported for a while after it was last
observed, so that the scheduler does not send pods back too early.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from glasslet.eviction.signals import ORDER, Observation, Signal
from glasslet.eviction.thresholds import Threshold

Observations = Mapping[Signal, Observation]

LEAST_PAUSE = 1.0
MOST_PAUSE = 10.0
"""Seconds between two looks at the node. Upstream always lets 10 pass."""
_FASTEST = {"memory": 2**30, "ephemeral-storage": 2**30, "inodes": 50_000, "pids": 2_000}
"""How much of a resource may go in a second: bytes, inodes, process ids."""


class PressureMemory(Struct, frozen=True, kw_only=True):
    """What a round leaves to the next one. Times in monotonic seconds. `unresolved`: thresholds that were acted on;
    `crossed_since`: of crossed thresholds; `last_seen`: by node condition."""

    unresolved: tuple[Threshold, ...] = ()
    crossed_since: Mapping[Threshold, float] = {}
    last_seen: Mapping[str, float] = {}


class Assessment(Struct, frozen=True, kw_only=True):
    """`crossed`: thresholds that count now; `due`: those past their grace, the one to act on first; `conditions`: the
    node conditions to report."""

    memory: PressureMemory
    crossed: tuple[Threshold, ...] = ()
    due: tuple[Threshold, ...] = ()
    conditions: frozenset[str] = frozenset()


def assess(
    memory: PressureMemory,
    thresholds: Iterable[Threshold],
    observations: Observations,
    *,
    now: float,
    transition: float,
) -> Assessment:
    """One round. `transition`: seconds for which a condition stays after it was last observed."""
    unresolved = [one for one in memory.unresolved if is_crossed(one, observations, with_reclaim=True)]
    crossed = tuple(dict.fromkeys([*(one for one in thresholds if is_crossed(one, observations)), *unresolved]))
    since = {one: memory.crossed_since.get(one, now) for one in crossed}
    last_seen = {**memory.last_seen, **{one.signal.condition: now for one in crossed}}
    due = tuple(sorted((one for one in crossed if now - since[one] >= one.grace), key=_urgency))
    return Assessment(
        memory=PressureMemory(unresolved=due, crossed_since=since, last_seen=last_seen),
        crossed=crossed,
        due=due,
        conditions=frozenset(name for name, at in last_seen.items() if now - at < transition),
    )


def next_look(thresholds: Iterable[Threshold], observations: Observations) -> float:
    """Seconds until a threshold could be crossed, if the node were used up as fast as a few processes can: at least
    LEAST_PAUSE, at most MOST_PAUSE."""
    pause = MOST_PAUSE
    for one in thresholds:
        if (seen := observations.get(one.signal)) is not None:
            left = seen.available - one.line(seen.capacity).value()
            pause = min(pause, left / _FASTEST[one.signal.resource])
    return max(LEAST_PAUSE, pause)


def is_crossed(one: Threshold, observations: Observations, *, with_reclaim: bool = False) -> bool:
    """Whether less is available than the threshold wants. An unknown signal crosses nothing."""
    seen = observations.get(one.signal)
    if seen is None:
        return False
    wanted = one.wanted(seen.capacity) if with_reclaim else one.line(seen.capacity)
    return wanted.nano_value() > seen.available * 10**9


def relieved(thresholds: Iterable[Threshold], observations: Observations) -> bool:
    """Whether reclaiming was enough: nothing is crossed any more, minimum reclaim included."""
    return not any(is_crossed(one, observations, with_reclaim=True) for one in thresholds)


def _urgency(one: Threshold) -> tuple[int, float]:
    """Memory first, and hard before soft: upstream leaves the rest to chance."""
    return ORDER.index(one.signal), one.grace
