"""What passes between sources, workers and statuses. They are made one after the other but tell each other of pods all
the time: this is where each of them is found once it is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.assembly.foundation import Foundation
from glasslet.mirror.manager import MirrorPods
from glasslet.pods.upkeep.housekeeping import Housekeeping
from glasslet.pods.workers import PodWorkers
from glasslet.podspec.gated_fields import effective_pod
from glasslet.record.milestones import CREATED
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station
from glasslet.sources.desired import DesiredPods
from glasslet.sources.last_known import LastKnownPods
from glasslet.sources.names import API
from glasslet.status.manager import StatusManager


class PodNews:
    """The attributes are set before anything runs; `mirrors` and `last_known` stay None without an API server."""

    desired: DesiredPods
    workers: PodWorkers
    statuses: StatusManager
    housekeeping: Housekeeping

    def __init__(self, foundation: Foundation) -> None:
        self._record = foundation.record
        self._gates = foundation.loaded.gates
        self.mirrors: MirrorPods | None = None
        self.last_known: LastKnownPods | None = None

    def sources_ready(self) -> bool:
        """Whether every source has told its pods."""
        return self.desired.ready()

    def listed(self, pods: Iterable[Pod]) -> None:
        """The API server's word on what is to run here."""
        self.desired.update_source(API, pods)

    def deliver(self, updates: Sequence[PodUpdate]) -> None:
        """From the sources, merged, to the workers."""
        # What an earlier agent left goes first: a new static pod waits for the end of the old one of its name.
        if not updates or any(update.kind is UpdateKind.ADD for update in updates):
            self.housekeeping.tidy()
        for update in updates:
            self._note(update)
            effective = effective_pod(update.pod, self._gates.enabled)
            self.workers.update(update if effective is update.pod else replace(update, pod=effective))
        if not updates or any(update.source != API for update in updates):
            self.wake_mirrors()
        self.worth_keeping()

    def changed(self, uid: PodUID) -> None:
        """An API object of this pod came, changed or went."""
        self.statuses.changed(uid)
        pod = self.desired.get(uid)
        if pod is None or is_static(pod):
            self.wake_mirrors()

    def finished(self, pod: Pod, status: PodStatus) -> None:
        """Nothing of the pod is in use any more."""
        self.statuses.finish(pod, status)
        if is_static(pod):
            self.wake_mirrors()

    def probed(self, ref: PodRef) -> None:
        """A probe of the pod says something new."""
        self.workers.probed(ref.uid)

    def wake_mirrors(self) -> None:
        """Something that mirrors depend on changed."""
        if self.mirrors is not None:
            self.mirrors.wake()

    def worth_keeping(self) -> None:
        """Something changed that an agent without its API server would want to know."""
        if self.last_known is not None:
            self.last_known.changed()

    def _note(self, update: PodUpdate) -> None:
        with working_for(pod_ref(update.pod)):
            if update.kind is UpdateKind.ADD:
                self._record.passed(Station.SEEN, detail=update.source)
            self._record.passed(Station.MERGED, detail=update.kind)
            made = update.pod.metadata.creation_timestamp
            if update.kind is UpdateKind.ADD and update.source == API and made is not None:
                self._record.observed(CREATED, "", made.isoformat())
