"""All rules in upstream's order; the first refusal counts.

    PodAdmission(node=..., allocatable=..., before=(eviction, sysctls), after=(app_armor, pod_features, shutdown))

Answers at once and decides only: who rejects, kills victims and waits for their end is the pod workers' matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from glasslet.admission.candidate import Candidate, Rule
from glasslet.admission.predicates import predicates
from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.runtime.admission import Admitted, Rejected


class PodAdmission:
    """`node`: the node object as last known, None while there is none; `allocatable`: what pods may have of the node;
    `before` and `after`: rules on either side of the predicates, in this order."""

    def __init__(
        self,
        *,
        node: Callable[[], Node | None],
        allocatable: Callable[[], Mapping[str, Quantity]],
        before: Sequence[Rule] = (),
        after: Sequence[Rule] = (),
    ) -> None:
        self._node = node
        self._allocatable = allocatable
        self._before = tuple(before)
        self._after = tuple(after)

    def __call__(self, pod: Pod, others: Sequence[Pod]) -> Admitted | Rejected:
        """`others`: the pods that occupy the node now."""
        candidate = Candidate(pod=pod, node=self._node(), allocatable=self._allocatable(), others=tuple(others))
        for rule in self._before:
            if (refusal := rule(candidate)) is not None:
                return refusal
        verdict = predicates(candidate)
        if isinstance(verdict, Rejected):
            return verdict
        for rule in self._after:
            if (refusal := rule(candidate)) is not None:
                return refusal
        return verdict
