"""Preemption: which pods end to make room for a critical one. As few as possible, the least guaranteed first.

Pure. The choice is upstream's (behaviours.md §14): Guaranteed pods end only for what all others would not free,
Burstable ones for what the chosen Guaranteed and all BestEffort ones would not, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from glasslet.admission.resources import PODS, requested
from glasslet.api.pod import Pod
from glasslet.podspec.qos import BEST_EFFORT, BURSTABLE, GUARANTEED, is_critical, qos_class

Needs = Mapping[str, int]
"""How much of each short resource must become free."""


class NoVictims(Struct, frozen=True, kw_only=True):
    """All pods that may be preempted do not free enough: `missing` is the remaining need."""

    missing: Mapping[str, int]

    def __str__(self) -> str:
        left = "".join(f"(res: {name}, q: {amount}), " for name, amount in self.missing.items())
        return f"no set of running pods found to reclaim resources: [{left}]"


class _Victim:
    """A pod that may be preempted, with the amounts that it would free."""

    __slots__ = ("gives", "pod")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.gives = {PODS: 1, **{name: amount for name, amount in requested(pod).items() if name != PODS}}

    def order(self) -> tuple[int, int]:
        """Of two that help equally, the smaller one ends."""
        return self.gives.get("memory", 0), self.gives.get("cpu", 0)


def choose_victims(pod: Pod, others: Iterable[Pod], needs: Needs) -> tuple[Pod, ...] | NoVictims:
    """The pods to end so that `needs` become free for `pod`."""
    by_class: dict[str, list[_Victim]] = {BEST_EFFORT: [], BURSTABLE: [], GUARANTEED: []}
    for other in others:
        if may_preempt(pod, other):
            by_class[qos_class(other)].append(_Victim(other))
    best_effort, burstable, guaranteed = by_class[BEST_EFFORT], by_class[BURSTABLE], by_class[GUARANTEED]
    if missing := _after(needs, [*best_effort, *burstable, *guaranteed]):
        return NoVictims(missing=missing)
    first = _closest(guaranteed, _after(needs, [*best_effort, *burstable]))
    second = _closest(burstable, _after(needs, [*best_effort, *first]))
    third = _closest(best_effort, _after(needs, [*second, *first]))
    return tuple(victim.pod for victim in (*third, *second, *first))


def may_preempt(pod: Pod, other: Pod) -> bool:
    """Whether a critical pod may preempt the other: one that is not critical, or of lower priority."""
    if is_critical(pod) and not is_critical(other):
        return True
    own, rival = pod.spec.priority, other.spec.priority
    return own is not None and rival is not None and own > rival


def _after(needs: Needs, ended: Sequence[_Victim]) -> dict[str, int]:
    """The needs that remain once these pods ended."""
    left = {name: amount - sum(one.gives.get(name, 0) for one in ended) for name, amount in needs.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _closest(pods: Sequence[_Victim], needs: Needs) -> list[_Victim]:
    """Pods chosen greedily: each time the one that brings the needs nearest to zero."""
    left, candidates, chosen = dict(needs), list(pods), list[_Victim]()
    while left:
        best = min(candidates, key=lambda one: (_distance(left, one), one.order()))
        candidates.remove(best)
        chosen.append(best)
        left = _after(left, [best])
    return chosen


def _distance(needs: Needs, victim: _Victim) -> float:
    """The distance of the needs from zero without this pod; every resource has equal weight."""
    shares = ((amount - victim.gives.get(name, 0)) / amount for name, amount in needs.items())
    return sum(share**2 for share in shares if share > 0)
