"""The desired pods of this node."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.concurrency.clock import Clock
from glasslet.record.milestones import CREATED
from glasslet.record.recorder import Recorder, working_for
from glasslet.record.stations import Station
from glasslet.sources.merge import Known, Moment, merge
from glasslet.sources.names import API

_log = logging.getLogger(__name__)

PodEvents = Callable[[PodRef, str, str, str], None]
"""Takes an event about a pod: type, reason, message. Never blocks."""
Deliver = Callable[[Sequence[PodUpdate]], None]
"""Takes updates in the order in which to act on them. An empty sequence says that one more source has reported."""


class DesiredPods:
    """The desired pods of all sources. Only `update_source` changes them; readers get frozen values.

    Nothing that is unknown may be cleaned up before `ready()`: a source that has not reported yet may want it.
    """

    def __init__(
        self, *, sources: Collection[str], clock: Clock, recorder: Recorder, events: PodEvents = lambda *_: None
    ) -> None:
        self._known: dict[str, dict[PodUID, Known]] = {source: {} for source in sources}
        self._waiting_for = set(sources)
        self._duplicates: dict[str, set[PodRef]] = {source: set() for source in sources}
        self._deliver: list[Deliver] = []
        self._clock = clock
        self._recorder = recorder
        self._events = events

    def subscribe(self, deliver: Deliver) -> None:
        """Calls `deliver` with each change from now on."""
        self._deliver.append(deliver)

    def update_source(self, source: str, pods: Iterable[Pod]) -> None:
        """Takes all pods that a source has now, and delivers what changed. `source` is one of the constructor's."""
        first = source in self._waiting_for
        self._waiting_for.discard(source)
        self._take(source, pods, deliver_anyway=first)

    def recall(self, source: str, pods: Iterable[Pod]) -> None:
        """Takes pods that a source had in an earlier run. That is no report, and after
        the source's first report nothing is taken."""
        if source in self._waiting_for:
            self._take(source, pods, deliver_anyway=False)

    def get(self, uid: PodUID) -> Pod | None:
        """The desired pod with this UID."""
        for known in self._known.values():
            if uid in known:
                return known[uid].pod
        return None

    def all(self) -> list[Pod]:
        """All desired pods, source by source."""
        return [entry.pod for known in self._known.values() for entry in known.values()]

    def given_by(self, source: str) -> list[Pod]:
        """The desired pods of one source as it gave them, without the annotations of this agent."""
        return [entry.given for entry in self._known[source].values()]

    def ready(self) -> bool:
        """Whether every source has reported at least once."""
        return not self._waiting_for

    def waiting_for(self) -> frozenset[str]:
        """Sources that have not reported yet."""
        return frozenset(self._waiting_for)

    def _take(self, source: str, pods: Iterable[Pod], *, deliver_anyway: bool) -> None:
        merged = merge(self._known[source], pods, source, Moment(self._clock.now(), self._clock.monotonic()))
        self._known[source] = merged.known
        self._report_duplicates(source, {pod_ref(pod) for pod in merged.duplicates})
        for update in merged.updates:
            self._note(update)
        if merged.updates or deliver_anyway:
            for deliver in self._deliver:
                deliver(merged.updates)

    def _note(self, update: PodUpdate) -> None:
        with working_for(pod_ref(update.pod)):
            if update.kind is UpdateKind.ADD:
                self._recorder.passed(Station.SEEN, detail=update.source)
            self._recorder.passed(Station.MERGED, detail=update.kind)
            made = update.pod.metadata.creation_timestamp
            if update.kind is UpdateKind.ADD and update.source == API and made is not None:
                self._recorder.observed(CREATED, "", made.isoformat())

    def _report_duplicates(self, source: str, duplicates: set[PodRef]) -> None:
        for pod in self._duplicates[source] - duplicates:
            self._recorder.withdrawn(_left_out(pod, source), pod=pod)
        for pod in sorted(duplicates - self._duplicates[source]):
            self._recorder.finding(_left_out(pod, source), pod=pod)
            self._events(pod, "Warning", "FailedValidation", _duplicate(pod, source))
            _log.warning("duplicate pod ignored", extra={"pod": str(pod), "source": source})
        self._duplicates[source] = duplicates


def _left_out(pod: PodRef, source: str) -> str:
    return f"two manifests ({source}) have pods of this name and namespace: the one with uid {pod.uid} is left out"


def _duplicate(pod: PodRef, source: str) -> str:
    return (
        f"Error validating pod {pod.name}_{pod.namespace}({pod.uid}) from {source}"
        f' due to duplicate pod name "{pod.name}", ignoring'
    )
