"""A node under pressure refuses pods: all but critical ones; under memory pressure alone only those of class
BestEffort. Source: node-pressure eviction, "Node conditions"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from glasslet.admission.candidate import Candidate, Rule
from glasslet.admission.taints import tolerates
from glasslet.api.node import Taint
from glasslet.exchange.admission import Rejected
from glasslet.exchange.facts import EVICTED
from glasslet.podspec.qos import BEST_EFFORT, is_critical, qos_class

_MEMORY: Final = "MemoryPressure"
_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")


def pressure_rule(conditions: Callable[[], frozenset[str]]) -> Rule:
    """`conditions`: the pressures that the node is under now."""

    def rule(candidate: Candidate) -> Rejected | None:
        under = conditions()
        if not under or is_critical(candidate.pod):
            return None
        if under == {_MEMORY}:
            tolerated = any(tolerates(one, _TAINT) for one in candidate.pod.spec.tolerations)
            if tolerated or qos_class(candidate.pod) != BEST_EFFORT:
                return None
        return Rejected(reason=EVICTED, message=f"The node had condition: [{' '.join(sorted(under))}]. ")

    return rule
