"""The situation of one pod: the input of every rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
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
from glasslet.record.events import OK, ChangeObserved, StationSpan
from glasslet.record.history import LiveWait, PodRecord
from glasslet.record.stations import Station, WaitKind
from glasslet.runtime.images.progress_watch import PullView


def condition_since(agent: PodRecord | None, subject: str) -> datetime | None:
    """When the agent's record saw a condition of the runtime change last (`runtime`, `runtime network`) to a problem;
    a change from one problem to another does not count."""
    since: float | None = None
    for event in agent.events if agent is not None else ():
        if isinstance(event, ChangeObserved) and event.subject == subject:
            since = None if event.new == "ready" else event.start if since is None else since
    return moment(since) if since is not None else None


class Situation(Struct, frozen=True, kw_only=True, dict=True):
    """A pod at time `now`. `last_words`: the last log line by container name, where it could be read; `stuck`: the call
    or action that takes too long; `hold`: the stop at which the pod is held; `runtime_since`, `network_since`: when the
    runtime or its network failed; `pulls`: what containers wait for, by name; `beneath`: processes below a runtime call
    that lasts; `holders`: processes that work in the pod's volumes. The last two only if the machine was looked at."""

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
    runtime_since: datetime | None = None
    network_since: datetime | None = None
    pulls: Mapping[str, PullView] = {}
    beneath: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()

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
        at = moment(when) if isinstance(when, float) else when.astimezone(UTC)
        today = at.date() == self.now.astimezone(UTC).date()
        return f"{at:%H:%M:%S} UTC" if today else f"{at:%Y-%m-%d %H:%M:%S} UTC"

    def due(self, when: datetime | float) -> str:
        """A coming time with how long that is: `at 10:02:05 UTC (in 25 s)`; `at any moment` once it has passed."""
        seconds = (when if isinstance(when, float) else when.timestamp()) - self.now.timestamp()
        return f"at {self.clock(when)} (in {duration(seconds)})" if seconds > 0 else "at any moment"

    def until(self, wait: LiveWait | None) -> str:
        """How long until a wait ends (`31 s`), "" if unknown."""
        if wait is None or wait.until is None:
            return ""
        return duration(max(0.0, wait.until - self.now.timestamp()))

    def _since(self, sentence: str, since: datetime | None) -> str:
        """The sentence with the time since when it holds; the duration only if the sentence does not have it."""
        if since is None:
            return sentence
        ago = self.ago(since)
        return f"{sentence.removesuffix('.')}, since {self.clock(since)}{'' if ago in sentence else f' ({ago})'}."

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
            sentence=self._since(sentence, since),
            brief=brief,
            evidence=tuple(Evidence(label=label, text=text) for label, text in evidence if text),
            next_step=next_step,
            since=since,
        )
