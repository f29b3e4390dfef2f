"""The part of `why node` about what the node has left. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.answers.eviction import EvictionAnswer, SignalAnswer
from glasslet.answers.why import Evidence
from glasslet.answers.words import duration

_SHOWN = 3
"""Pods of the order; `glasslet evict --dry-run` shows all."""
_HIDDEN = "containerfs"
"""Follows the disk of images or the node's: the same figures again."""


def pressure_evidence(answer: EvictionAnswer) -> Iterator[Evidence]:
    """Each signal, then what eviction would do and which pods come first."""
    if answer.problem:
        yield Evidence(label="pressure", text=answer.problem)
        return
    for one in answer.signals:
        if not one.signal.startswith(_HIDDEN):
            yield Evidence(label=one.signal, text="\n".join(_signal(one)))
    for signal in answer.blind:
        yield Evidence(label=signal, text="no figures, so its threshold is not checked")
    order = [one for one in answer.order if not one.stays][:_SHOWN]
    for number, pod in enumerate(order, start=1):
        yield Evidence(label=f"{_nth(number)} for {answer.signal}", text=f"{pod.pod}: {pod.words}")
    if answer.sentence:
        yield Evidence(label="eviction", text=answer.sentence)


def _signal(one: SignalAnswer) -> Iterator[str]:
    yield f"{one.how}"
    for threshold in one.thresholds:
        yield threshold.text
    age = f", {duration(one.age_seconds)} old" if one.age_seconds >= 1 else ""
    yield f"{one.trend}; from {one.source}{age}" if one.source else one.trend


def _nth(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}[number]
