"""The situation of one pod: the input of every rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from msgspec import Struct

from glasslet.answers.pods import Hold
from glasslet.answers.states import ContainerKind, Rule, VerdictState, WorkerState
from glasslet.answers.why import Evidence, VerdictAnswer
from glasslet.answers.words import duration
from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.pod_status import ContainerStatus, PodStatus
from glasslet.api.restarts import is_sidecar
from glasslet.glass.stuck import Stuck
from glasslet.glass.trace.timeline import moment
from glasslet.glass.trace.waterfall import latest_life
from glasslet.glass.verdicts.causes import Cause
from glasslet.glass.verdicts.dating import clock_words, dated
from glasslet.record.events import OK, StationSpan
from glasslet.record.history import LiveWait, PodRecord
from glasslet.record.stations import Station, WaitKind
from glasslet.runtime.images.progress_watch import PullView


class Situation(Struct, frozen=True, kw_only=True, dict=True):
    """A pod at time `now`. `last_words`: the last log line by container name, where it could be read; `stuck`: the call
    or action that takes too long; `hold`: the stop at which the pod is held; `runtime_cause`, `network_cause`: why they
    are not ready, where it was looked up; `runtime_since`, `network_since`: since when; `pulls`: what containers wait
    for, by name; `beneath`: processes below a runtime call that lasts; `holders`: processes that work in the pod's
    volumes. `without_inodes`: a folder whose file system has no inode left, though a failure speaks of space. The last
    three only if the machine was looked at. `request_seconds`: runtimeRequestTimeout, where it is needed for words;
    `rival_since`: since when another pod of its name and namespace is to run."""

    pod: Pod
    status: PodStatus
    now: datetime
    record: PodRecord
    lifecycle: WorkerState | None = None
    since: datetime | None = None
    runtime_error: str = ""
    network_error: str = ""
    last_words: Mapping[str, str] = {}
    stuck: Stuck | None = None
    hold: Hold | None = None
    runtime_cause: Cause | None = None
    network_cause: Cause | None = None
    runtime_since: datetime | None = None
    network_since: datetime | None = None
    pulls: Mapping[str, PullView] = {}
    beneath: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    request_seconds: float | None = None
    without_inodes: str = ""
    rival_since: datetime | None = None

    def __str__(self) -> str:
        return f"{self.pod.metadata.namespace}/{self.pod.metadata.name}"

    def statuses(self) -> Iterator[tuple[ContainerStatus, ContainerKind]]:
        """Every reported container with its kind: init containers and sidecars first."""
        sidecars = {c.name for c in self.pod.spec.init_containers if is_sidecar(c)}
        for status in self.status.init_container_statuses:
            yield status, ContainerKind.SIDECAR if status.name in sidecars else ContainerKind.INIT
        for status in self.status.container_statuses:
            yield status, ContainerKind.MAIN
        for status in self.status.ephemeral_container_statuses:
            yield status, ContainerKind.EPHEMERAL

    def container(self, name: str) -> Container | None:
        """The specification of a container or init container."""
        every = (*self.pod.spec.init_containers, *self.pod.spec.containers)
        return next((container for container in every if container.name == name), None)

    def condition(self, kind: str) -> str:
        """`True`, `False`, `Unknown`, "" if the status does not have that condition."""
        return next((c.status for c in self.status.conditions if c.type == kind), "")

    def wait(self, *kinds: WaitKind, container: str | None = None) -> LiveWait | None:
        """The oldest live wait of one of these kinds."""
        fitting = [wait for wait in self.record.waits if wait.kind in kinds and container in (None, wait.container)]
        return min(fitting, key=lambda wait: wait.since, default=None)

    def at(self, *stations: Station) -> bool:
        """Whether the pod is at one of these stations now."""
        return any(standing.station in stations for standing in self.record.stations)

    @cached_property
    def _spans(self) -> list[StationSpan]:
        """Stations of the pod's present life. Several rules read them."""
        return [event for event in latest_life(self.record.events) if isinstance(event, StationSpan)]

    def passed(self, station: Station) -> StationSpan | None:
        """The last successful pass of this station in the pod's present life."""
        return next((s for s in reversed(self._spans) if s.station == station and s.outcome == OK), None)

    def failures(self, station: Station) -> list[StationSpan]:
        """The failed passes of this station in the pod's present life, oldest first."""
        return [span for span in self._spans if span.station == station and span.outcome != OK]

    def failing_since(self, *stations: Station, container: str | None = None) -> datetime | None:
        """When these stations began to fail: the first failure after the last success, None without a failure."""
        began: float | None = None
        for span in self._spans:
            if span.station in stations and container in (None, span.container):
                began = None if span.outcome == OK else span.start if began is None else began
        return moment(began) if began is not None else None

    def ago(self, when: datetime | float | None) -> str:
        """How long ago, in words; "" if unknown."""
        if when is None:
            return ""
        moment_ = moment(when) if isinstance(when, float) else when
        return duration((self.now - moment_).total_seconds())

    def clock(self, when: datetime | float) -> str:
        """A time of day in UTC, with the date unless it is today: `10:02:05 UTC`."""
        return clock_words(when, self.now)

    def due(self, when: datetime | float) -> str:
        """A coming time with how long that is: `at 10:02:05 UTC (in 25 s)`; `at any moment` once it has passed."""
        seconds = (when if isinstance(when, float) else when.timestamp()) - self.now.timestamp()
        return f"at {self.clock(when)} (in {duration(seconds)})" if seconds > 0 else "at any moment"

    def until(self, wait: LiveWait | None) -> str:
        """How long until a wait ends (`31 s`), "" if unknown."""
        if wait is None or wait.until is None:
            return ""
        return duration(max(0.0, wait.until - self.now.timestamp()))

    def verdict(
        self,
        rule: Rule,
        state: VerdictState,
        sentence: str,
        *,
        brief: str = "",
        evidence: Sequence[tuple[str, str]] = (),
        next_step: str = "",
        since: datetime | None = None,
    ) -> VerdictAnswer:
        """A verdict on this pod; `evidence`: (label, text); empty texts are left out."""
        meta = self.pod.metadata
        return VerdictAnswer(
            namespace=meta.namespace,
            name=meta.name,
            rule=rule,
            state=state,
            sentence=dated(sentence, since, self.now),
            brief=brief,
            evidence=tuple(Evidence(label=label, text=text) for label, text in evidence if text),
            next_step=next_step,
            since=since,
        )
