"""All rules in upstream's order; the first refusal counts.

    PodAdmission(node=..., allocatable=..., before=(eviction, sysctls), after=(app_armor, pod_features, shutdown))

Decides only, without waiting: the pod workers reject the pod, kill the victims and wait for their end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from glasslet.admission.candidate import Candidate, Rule
from glasslet.admission.misfit import misfit
from glasslet.admission.predicates import predicates
from glasslet.admission.resources import not_offered
from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.exchange.admission import Admitted, Rejected


class DeviceClaims(Protocol):
    """Devices of device plugins (`devices`)."""

    def claim(self, pod: Pod, others: Sequence[Pod]) -> Rejected | None:
        """Reserves the devices that the pod requests, or refuses the pod."""

    def unclaim(self, uid: str) -> None:
        """Another rule refused the pod: its devices are free again."""

    def at_least(self, pod: Pod) -> Mapping[str, int]:
        """Amounts that the node has for this pod, whatever the node object says, by resource."""


class PodAdmission:
    """`node`: the node object as last known, None while there is none; `allocatable`: the share of all pods;
    `before` and `after`: rules on either side of devices and predicates, in this order."""

    def __init__(
        self,
        *,
        node: Callable[[], Node | None],
        allocatable: Callable[[], Mapping[str, Quantity]],
        before: Sequence[Rule] = (),
        after: Sequence[Rule] = (),
        devices: DeviceClaims | None = None,
        note: Callable[[str], None] | None = None,
        find: Callable[[Pod, str], None] | None = None,
    ) -> None:
        """`note` gets what did not fit a pod that the predicates refuse, for the record; `find` what a pod that is
        admitted does not get."""
        self._note = note
        self._find = find
        self._node = node
        self._allocatable = allocatable
        self._before = tuple(before)
        self._after = tuple(after)
        self._devices = devices

    def __call__(self, pod: Pod, others: Sequence[Pod]) -> Admitted | Rejected:
        """Decides about a new pod. `others`: the pods that occupy the node now."""
        candidate = self._candidate(pod, others)
        for rule in self._before:
            if (refusal := rule(candidate)) is not None:
                return refusal
        if self._devices is not None:
            if (refusal := self._devices.claim(pod, others)) is not None:
                return refusal
            # The node has the devices that were claimed.
            candidate = self._candidate(pod, others)
        verdict = self._rest(candidate)
        if isinstance(verdict, Rejected):
            if self._devices is not None:
                self._devices.unclaim(pod.metadata.uid)
            if self._note is not None and (text := misfit(candidate, verdict)):
                self._note(text)
        elif self._find is not None and (missing := not_offered(pod, candidate.allocatable)):
            self._find(pod, f"it asks for {', '.join(missing)}, which this node does not offer, and runs without")
        return verdict

    def fits(self, pod: Pod, others: Sequence[Pod]) -> Admitted | Rejected:
        """Decides about a changed version of a running pod; no devices are claimed."""
        candidate = self._candidate(pod, others)
        for rule in self._before:
            if (refusal := rule(candidate)) is not None:
                return refusal
        return self._rest(candidate)

    def _candidate(self, pod: Pod, others: Sequence[Pod]) -> Candidate:
        allocatable = self._allocatable()
        if self._devices is not None:
            allocatable = _with(allocatable, self._devices.at_least(pod))
        return Candidate(pod=pod, node=self._node(), allocatable=allocatable, others=tuple(others))

    def _rest(self, candidate: Candidate) -> Admitted | Rejected:
        verdict = predicates(candidate)
        if isinstance(verdict, Rejected):
            return verdict
        for rule in self._after:
            if (refusal := rule(candidate)) is not None:
                return refusal
        return verdict


class AdmissionMetrics(Protocol):
    """Counts pods that were refused, and those that made room."""

    def rejected(self, reason: str) -> None: ...
    def preempted(self, shortage: str) -> None: ...


def counted(
    admission: Callable[[Pod, Sequence[Pod]], Admitted | Rejected], metrics: AdmissionMetrics
) -> Callable[[Pod, Sequence[Pod]], Admitted | Rejected]:
    """Admission of pods that come: its refusals and victims are counted."""

    def admit(pod: Pod, others: Sequence[Pod]) -> Admitted | Rejected:
        verdict = admission(pod, others)
        if isinstance(verdict, Rejected):
            metrics.rejected(verdict.reason)
        else:
            for _ in verdict.victims:
                metrics.preempted(verdict.shortage)
        return verdict

    return admit


def _with(allocatable: Mapping[str, Quantity], amounts: Mapping[str, int]) -> Mapping[str, Quantity]:
    """The amounts, raised to at least these."""
    short = {
        name: Quantity(amount)
        for name, amount in amounts.items()
        if name not in allocatable or allocatable[name].value() < amount
    }
    return {**allocatable, **short} if short else allocatable
