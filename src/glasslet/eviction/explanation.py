"""Eviction in words: arithmetic, thresholds, trend, and the order of the pods with what put each there. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from glasslet.answers.eviction import CandidateAnswer, SignalAnswer, ThresholdAnswer
from glasslet.answers.words import duration, size_words
from glasslet.api.pod_ref import pod_ref
from glasslet.eviction.decision import PressureMemory, is_crossed
from glasslet.eviction.ranking import Ranked, why_behind
from glasslet.eviction.reading import Reading
from glasslet.eviction.signals import MEMORY_SIGNALS, Observation, Signal
from glasslet.eviction.thresholds import Threshold

_STEADY = 0.001
"""Share of the capacity a minute below which a signal counts as steady."""
TREND_UNKNOWN = "not known yet"
_NEVER = "static, mirror and critical pods are never evicted"


class Background(Struct, frozen=True, kw_only=True):
    """What explains a reading beyond its figures. `per_minute`: changes by signal; `sources`: files and calls that a
    signal comes from."""

    now: datetime
    memory: PressureMemory = PressureMemory()
    per_minute: Mapping[Signal, float | None] = {}
    sources: Mapping[Signal, str] = {}


def unit_of(signal: Signal) -> str:
    """Unit of the signal's amounts: bytes, inodes, pids."""
    resource = signal.resource
    return resource if resource in ("inodes", "pids") else "bytes"


def amount_words(signal: Signal, amount: float) -> str:
    """`1.2 GiB`, `-3 MiB`, `1234 inodes`."""
    unit = unit_of(signal)
    if unit != "bytes":
        return f"{amount:.0f} {unit}"
    return f"-{size_words(-amount)}" if amount < 0 else size_words(amount)


def explain_signals(reading: Reading, background: Background) -> Iterator[SignalAnswer]:
    """The signals that have figures and a threshold, and memory and process ids always."""
    for signal in Signal:
        seen = reading.observations.get(signal)
        thresholds = [one for one in reading.thresholds if one.signal is signal]
        if seen is None or not (thresholds or signal in (Signal.MEMORY, Signal.PIDS)):
            continue
        age = (background.now - seen.at).total_seconds() if seen.at is not None else 0.0
        per_minute = background.per_minute.get(signal)
        yield SignalAnswer(
            signal=signal,
            unit=unit_of(signal),
            available=seen.available,
            capacity=seen.capacity,
            how=arithmetic(seen),
            source=background.sources.get(signal, ""),
            age_seconds=max(0.0, age),
            per_minute=per_minute,
            trend=trend_words(seen, thresholds, per_minute),
            thresholds=tuple(_threshold(one, seen, reading, background.memory) for one in thresholds),
        )


def arithmetic(seen: Observation) -> str:
    """How the available amount comes out of the capacity."""

    def words(amount: int) -> str:
        return amount_words(seen.signal, amount)

    used = seen.capacity - seen.available
    if seen.signal not in MEMORY_SIGNALS:
        return f"{words(seen.available)} = capacity {words(seen.capacity)} - used {words(used)}"
    text = f"{words(seen.available)} = capacity {words(seen.capacity)} - working set {words(used)}"
    if seen.usage is None:
        return text
    return f"{text}; working set = use {words(seen.usage)} - page cache that counts as free {words(seen.usage - used)}"


def trend_words(seen: Observation, thresholds: Sequence[Threshold], per_minute: float | None) -> str:
    """Where it goes, and when the next threshold would be crossed if that went on."""
    if per_minute is None:
        return TREND_UNKNOWN
    if abs(per_minute) < seen.capacity * _STEADY:
        return "steady"
    amount = amount_words(seen.signal, abs(per_minute))
    if per_minute > 0:
        return f"{amount} more a minute"
    lines = [one.line(seen.capacity).value() for one in thresholds]
    next_line = max((line for line in lines if line < seen.available), default=None)
    text = f"{amount} less a minute"
    if next_line is None:
        return text
    seconds = (seen.available - next_line) / -per_minute * 60
    return f"{text}, at the threshold in {duration(seconds)} if that goes on"


def threshold_words(signal: Signal, one: ThresholdAnswer) -> str:
    """`hard, below 100Mi`, `soft, below 10% (1.2 GiB) for 1 min 30 s, until 2 GiB are there again`."""
    percent = f" ({amount_words(signal, one.line)})" if one.amount.endswith("%") else ""
    text = f"{one.kind}, below {one.amount}{percent}"
    if one.grace_seconds:
        text += f" for {duration(one.grace_seconds)}"
    if one.wanted > one.line:
        text += f", then until {amount_words(signal, one.wanted)} are there"
    if one.crossed_seconds is not None:
        text += f"; crossed for {duration(one.crossed_seconds)}"
    return text


def explain_order(
    ranked: Sequence[Ranked], signal: Signal, *, resisting: frozenset[str] = frozenset()
) -> Iterator[CandidateAnswer]:
    """The pods of a ranking. `resisting`: UIDs of those that were evicted and have not stopped."""
    before: Ranked | None = None
    for one in ranked:
        stays = _NEVER if one.critical else ""
        if one.pod.metadata.uid in resisting:
            stays = "evicted already, and has not stopped"
        behind = why_behind(before, one, signal) if before is not None and not stays else ""
        yield CandidateAnswer(
            pod=str(pod_ref(one.pod)),
            usage=one.usage,
            request=one.request,
            priority=one.priority,
            stays=stays,
            behind=behind,
            words=_candidate_words(one, signal, stays or behind),
        )
        if not stays:
            before = one


def _candidate_words(one: Ranked, signal: Signal, why: str) -> str:
    uses = "unknown" if one.usage is None else amount_words(signal, one.usage)
    text = f"uses {uses}, requests {amount_words(signal, one.request)}, priority {one.priority}"
    return f"{text}; {why}" if why else text


def _threshold(one: Threshold, seen: Observation, reading: Reading, memory: PressureMemory) -> ThresholdAnswer:
    since = memory.crossed_since.get(one)
    crossed = is_crossed(one, reading.observations, with_reclaim=one in memory.unresolved)
    seconds = reading.taken - since if since is not None else 0.0
    answer = ThresholdAnswer(
        kind="hard" if one.hard else "soft",
        amount=one.amount,
        line=one.line(seen.capacity).value(),
        wanted=one.wanted(seen.capacity).value(),
        grace_seconds=one.grace,
        crossed_seconds=max(0.0, seconds) if crossed else None,
    )
    return replace(answer, text=threshold_words(one.signal, answer))
