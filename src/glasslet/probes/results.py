"""The outcome of each instance, and the last single results with their parts. Written by probes only.

outcomes(ref)   for the planner and the status, by container instance
last(ref)       for `describe` and `why`
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.exchange.facts import ProbeOutcome
from glasslet.probes.kinds import ProbeKind

SHOWN = 256
"""Characters of a note or an error that are kept."""


class ProbeVerdict(StrEnum):
    """One result. A warning counts as a success; unknown does not count at all."""

    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"


class Parts(Struct, frozen=True, kw_only=True):
    """Seconds that the parts of a network probe took; None for parts that there were not."""

    dns: float | None = None
    connect: float | None = None
    tls: float | None = None
    first_byte: float | None = None


class ProbeResult(Struct, frozen=True, kw_only=True):
    """One probe. `began`: wall time. `total`: seconds, tries included. `late`: seconds by which it began too late;
    `stalled`: seconds for which the agent itself stood still while it ran. `note`: the outcome in short (`status 503`);
    `error`: why it could not be run, then it does not count."""

    kind: ProbeKind
    container: str
    instance: ContainerID
    began: datetime
    verdict: ProbeVerdict
    note: str = ""
    error: str = ""
    parts: Parts = Parts()
    total: float = 0.0
    late: float = 0.0
    stalled: float = 0.0
    tries: int = 1


_FIRST = {
    ProbeKind.STARTUP: ProbeOutcome(),
    ProbeKind.READINESS: ProbeOutcome(ready=False),
    ProbeKind.LIVENESS: ProbeOutcome(alive=True),
}
_NOTHING: Mapping[ContainerID, ProbeOutcome] = {}


class ProbeResults:
    """`kept`: how many single results are remembered of each probe."""

    def __init__(self, *, kept: int = 10) -> None:
        self._kept = kept
        self._outcomes: dict[PodUID, dict[ContainerID, ProbeOutcome]] = {}
        self._last: dict[PodUID, dict[tuple[str, ProbeKind], deque[ProbeResult]]] = {}

    def outcomes(self, ref: PodRef) -> Mapping[ContainerID, ProbeOutcome]:
        """The outcomes of a pod's probes now."""
        return self._outcomes.get(ref.uid, _NOTHING)

    def outcome(self, ref: PodRef, instance: ContainerID) -> ProbeOutcome | None:
        """The outcome of one instance, None if it is unknown."""
        return self._outcomes.get(ref.uid, _NOTHING).get(instance)

    def begin(self, ref: PodRef, instance: ContainerID, kinds: Collection[ProbeKind], known: ProbeOutcome) -> None:
        """Adds an instance: start values for its kinds of probes, replaced where `known` has a value."""
        first = ProbeOutcome()
        for kind in kinds:
            first = _merged(first, _FIRST[kind])
        self._outcomes.setdefault(ref.uid, {})[instance] = _merged(first, known)

    def set(self, ref: PodRef, instance: ContainerID, kind: ProbeKind, passes: bool) -> bool:
        """The state of one probe of a known instance. True if that is a change."""
        of_pod = self._outcomes.get(ref.uid, {})
        old = of_pod.get(instance)
        if old is None:
            return False
        new = replace(old, **{_FIELD[kind]: passes})
        of_pod[instance] = new
        return new != old

    def add(self, ref: PodRef, result: ProbeResult) -> None:
        """Remembers a single result."""
        of_pod = self._last.setdefault(ref.uid, {})
        key = (result.container, result.kind)
        if key not in of_pod:
            of_pod[key] = deque(maxlen=self._kept)
        of_pod[key].append(result)

    def last(self, ref: PodRef) -> tuple[ProbeResult, ...]:
        """The last results of a pod, each probe's oldest first."""
        return tuple(result for results in self._last.get(ref.uid, {}).values() for result in results)

    def keep_only(self, ref: PodRef, instances: Collection[ContainerID]) -> None:
        """Forgets all other instances of the pod."""
        of_pod = self._outcomes.get(ref.uid)
        if of_pod is not None and len(of_pod) > sum(instance in of_pod for instance in instances):
            self._outcomes[ref.uid] = {one: of_pod[one] for one in of_pod if one in instances}

    def forget(self, uid: PodUID) -> None:
        """Forgets the pod."""
        self._outcomes.pop(uid, None)
        self._last.pop(uid, None)

    def passing(self) -> Mapping[ContainerID, ProbeOutcome]:
        """Instances of which startup or readiness passes, of all pods."""
        return {
            instance: outcome
            for of_pod in self._outcomes.values()
            for instance, outcome in of_pod.items()
            if outcome.ready or outcome.started
        }


_FIELD = {ProbeKind.STARTUP: "started", ProbeKind.READINESS: "ready", ProbeKind.LIVENESS: "alive"}


def _merged(old: ProbeOutcome, new: ProbeOutcome) -> ProbeOutcome:
    return ProbeOutcome(
        started=old.started if new.started is None else new.started,
        ready=old.ready if new.ready is None else new.ready,
        alive=old.alive if new.alive is None else new.alive,
    )
