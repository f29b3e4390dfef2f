"""What eviction would do now, without doing it: for `glasslet evict --dry-run` and `glasslet why node`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from glasslet.answers.eviction import EvictionAnswer, OverLimit
from glasslet.answers.words import duration
from glasslet.api.pod_ref import pod_ref
from glasslet.concurrency.clock import Clock
from glasslet.eviction.decision import Assessment, assess
from glasslet.eviction.explanation import Background, amount_words, explain_order, explain_signals, unit_of
from glasslet.eviction.local_limits import limit_exceeded
from glasslet.eviction.pressures import NodePressures
from glasslet.eviction.ranking import rank
from glasslet.eviction.reading import NodeReader, Reading
from glasslet.eviction.services import EvictionSettings
from glasslet.eviction.signals import ORDER, Signal, what_is_on_disk_of
from glasslet.eviction.thresholds import Threshold
from glasslet.podspec.qos import is_critical
from glasslet.stats.pages.summary import StatsUnavailable

KEPT = 2.0
"""Seconds for which an answer is given again: reading all pods costs, and anybody who may ask may ask often."""


class _Situation(Struct, frozen=True, kw_only=True):
    reading: Reading
    assessment: Assessment
    settings: EvictionSettings


class OutlookSources(Struct, frozen=True, kw_only=True):
    """`sources`: the files and calls that each signal comes from."""

    reader: NodeReader
    pressures: NodePressures
    settings: EvictionSettings
    clock: Clock
    sources: Mapping[Signal, str]


class EvictionOutlook:
    """Reads the node and its pods now, and decides as the eviction loop would."""

    def __init__(self, parts: OutlookSources) -> None:
        self._parts = parts
        self._turn = asyncio.Lock()
        self._last: tuple[float, Reading] | None = None

    async def __call__(self, signal: str = "") -> EvictionAnswer:
        """`signal`: the one whose order is asked for; "" for the most urgent. An unknown one is a problem."""
        if signal and signal not in ORDER:
            return EvictionAnswer(problem=f"signal {signal}: unknown; allowed: {', '.join(ORDER)}")
        try:
            reading = await self._read()
        except StatsUnavailable as error:
            return EvictionAnswer(problem=f"the node cannot be read, so no pod is evicted: {error}")
        parts = self._parts
        memory = parts.pressures.memory()
        seen = reading.observations
        background = Background(
            now=parts.clock.now(),
            memory=memory,
            per_minute={
                one: parts.pressures.trends.per_minute(one, now=reading.taken, available=seen[one].available)
                for one in seen
            },
            sources=parts.sources,
        )
        assessment = assess(memory, reading.thresholds, seen, now=reading.taken, transition=parts.settings.transition)
        situation = _Situation(reading=reading, assessment=assessment, settings=parts.settings)
        return outlook(situation, background, Signal(signal) if signal else None)

    async def _read(self) -> Reading:
        async with self._turn:
            now = self._parts.clock.monotonic()
            if self._last is None or now - self._last[0] >= KEPT:
                reader = self._parts.reader
                self._last = now, await reader.read_pods(await reader.read_node(now), now)
            return self._last[1]


def outlook(it: _Situation, background: Background, asked: Signal | None) -> EvictionAnswer:
    """The answer to one reading. Pure."""
    reading, due = it.reading, it.assessment.due
    signal = asked or (due[0].signal if due else _nearest(reading))
    answer = EvictionAnswer(
        signals=tuple(explain_signals(reading, background)),
        over_limits=tuple(_over_limits(it)) if it.settings.local_limits else (),
        conditions=tuple(sorted(it.assessment.conditions)),
        blind=tuple(reading.blind()),
    )
    if signal is None:
        return replace(answer, sentence="No pod would be evicted: there is no threshold with figures.")
    order = tuple(explain_order(rank(reading.candidates, signal, reading.layout), signal))
    first = next((one.pod for one in order if not one.stays), "")
    return replace(answer, signal=signal, unit=unit_of(signal), order=order, sentence=_sentence(it, signal, first))


def _sentence(it: _Situation, signal: Signal, first: str) -> str:
    reading = it.reading
    victim = first or "no pod, because none may be evicted,"
    if it.assessment.due:
        due = it.assessment.due[0]
        garbage = what_is_on_disk_of(due.signal, reading.layout).garbage
        before = f" once {' and '.join(garbage)} are gone, if that is not enough," if garbage else ""
        return f"{victim} would be evicted now{before} because {_crossed(due, reading)}."
    if it.assessment.crossed:
        soft = it.assessment.crossed[0]
        left = soft.grace - (reading.taken - it.assessment.memory.crossed_since[soft])
        return f"{victim} would be evicted in {duration(left)} unless the node recovers: {_crossed(soft, reading)}."
    text = "No pod would be evicted now: every signal is above its thresholds."
    return f"{text} If {signal} fell below its own, {victim} would be first."


def _crossed(one: Threshold, reading: Reading) -> str:
    seen = reading.observations[one.signal]
    kind = "hard" if one.hard else "soft"
    available = amount_words(one.signal, seen.available)
    wanted = amount_words(one.signal, one.line(seen.capacity).value())
    if seen.available >= one.line(seen.capacity).value():
        return f"{one.signal} is {available}, and its minimum reclaim is not there yet"
    return f"{one.signal} is {available}, below the {kind} threshold of {wanted}"


def _nearest(reading: Reading) -> Signal | None:
    """The signal with the smallest share of its capacity left above a threshold."""
    shares = {
        one.signal: (seen.available - one.line(seen.capacity).value()) / seen.capacity
        for one in reading.thresholds
        if (seen := reading.observations.get(one.signal)) is not None and seen.capacity
    }
    return min(shares, key=lambda signal: shares[signal], default=None)


def _over_limits(it: _Situation) -> list[OverLimit]:
    found = []
    for one in it.reading.candidates:
        if one.stats is None or is_critical(one.pod):
            continue
        exceeded = limit_exceeded(one.pod, one.stats, layers_apart=it.reading.layout.layers_apart)
        if exceeded is not None:
            found.append(OverLimit(pod=str(pod_ref(one.pod)), message=exceeded.message.strip()))
    return found
