"""A situation as the rows of `ps` and `describe`. Pure."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from glasslet.answers.agent import WaitRow
from glasslet.answers.pods import ConditionRow, ContainerRow, PodDescription, PodRow, ProbeRow
from glasslet.answers.states import ContainerKind, Rule, VerdictState
from glasslet.answers.why import VerdictAnswer
from glasslet.api.pod_status import ContainerStatus
from glasslet.api.restarts import is_sidecar
from glasslet.glass.probe_words import probe_descriptions
from glasslet.glass.pulls import pull_row
from glasslet.glass.trace.timeline import moment, newest
from glasslet.glass.verdicts.pod_rules import is_settled
from glasslet.glass.verdicts.situation import Situation
from glasslet.probes.results import ProbeResult
from glasslet.record.events import StationSpan
from glasslet.record.history import LiveWait
from glasslet.record.stations import Station

_TIMELINE_ROWS = 40


def pod_row(it: Situation, verdict: VerdictAnswer) -> PodRow:
    """One line of `ps`. Ready counts regular containers and sidecars, as kubectl does."""
    meta = it.pod.metadata
    counted = [status for status, kind in it.statuses() if kind not in (ContainerKind.INIT, ContainerKind.EPHEMERAL)]
    sidecars = sum(1 for c in it.pod.spec.init_containers if is_sidecar(c))
    return PodRow(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        phase="Terminating" if verdict.rule == Rule.TERMINATING else it.status.phase or "Pending",
        ready=sum(1 for status in counted if status.ready),
        containers=len(it.pod.spec.containers) + sidecars,
        restarts=sum(status.restart_count for status, kind in it.statuses() if kind != ContainerKind.EPHEMERAL),
        now=verdict.brief,
        since=_since(it, verdict),
        lifecycle=it.lifecycle,
        is_ready=it.condition("Ready") == "True",
        settled=is_settled(verdict),
        ip=it.status.pod_ip,
        created=it.status.start_time or meta.creation_timestamp,
        reason=it.status.reason,
        state=verdict.state,
        station=_station(it, verdict),
        hold=it.hold,
        pull=next((pull_row(pull, it.now) for pull in it.pulls.values()), None),
    )


def _since(it: Situation, verdict: VerdictAnswer) -> datetime | None:
    """Since when the state holds, whichever agent saw it begin: a fine pod runs since its last container started."""
    if verdict.state == VerdictState.FINE:
        kinds = (ContainerKind.MAIN, ContainerKind.SIDECAR)
        running = [status.state.running for status, kind in it.statuses() if kind in kinds]
        starts = [one.started_at for one in running if one is not None and one.started_at is not None]
        return max(starts, default=verdict.since)
    return verdict.since or it.status.start_time or it.since


def _station(it: Situation, verdict: VerdictAnswer) -> str:
    """Where the pod stands: the station that it reached last of those that it is at. "" at rest; without an open
    station, the one that its last wait or its last step belongs to."""
    if it.hold is not None and it.hold.at in tuple(Station):
        return it.hold.at
    if verdict.state == VerdictState.FINE:
        return ""
    if verdict.state == VerdictState.ENDED:
        return Station.GONE
    if it.record.stations:
        return max(it.record.stations, key=lambda standing: standing.since).station
    waits = [wait for wait in it.record.waits if wait.station]
    if waits:
        return max(waits, key=lambda wait: wait.since).station
    spans = (event for event in reversed(it.record.events) if isinstance(event, StationSpan))
    return next((span.station for span in spans if span.station != Station.STATUS), "")


def pod_description(it: Situation, verdict: VerdictAnswer, *, source: str) -> PodDescription:
    """One pod in full."""
    spec = it.pod.spec
    return PodDescription(
        pod=pod_row(it, verdict),
        containers=tuple(_reported(status, kind) for status, kind in it.statuses()) or _planned(it),
        conditions=tuple(
            ConditionRow(type=c.type, status=c.status, since=c.last_transition_time, reason=c.reason, message=c.message)
            for c in it.status.conditions
        ),
        ips=tuple(ip.ip for ip in it.status.pod_ips),
        source=source,
        restart_policy=spec.restart_policy,
        qos_class=it.status.qos_class,
        grace_period=spec.termination_grace_period_seconds,
        volumes=tuple(volume.name for volume in spec.volumes),
        labels=it.pod.metadata.labels,
        waits=tuple(wait_row(wait) for wait in it.record.waits),
        findings=it.record.findings(),
        timeline=newest(it.record, _TIMELINE_ROWS),
        probe_descriptions=probe_descriptions(it.pod),
    )


def wait_row(wait: LiveWait) -> WaitRow:
    """One live wait."""
    return WaitRow(
        kind=wait.kind,
        on=wait.on,
        since=moment(wait.since),
        pod=str(wait.pod) if wait.pod is not None else "",
        container=wait.container,
        station=wait.station,
        until=moment(wait.until) if wait.until is not None else None,
        task=wait.task,
    )


def probe_row(result: ProbeResult) -> ProbeRow:
    """One result of a probe."""
    return ProbeRow(
        at=result.began,
        container=result.container,
        kind=result.kind.value.lower(),
        verdict=result.verdict.value,
        note=result.error or result.note,
        total_ms=_ms(result.total) or 0.0,
        dns_ms=_ms(result.parts.dns),
        connect_ms=_ms(result.parts.connect),
        tls_ms=_ms(result.parts.tls),
        first_byte_ms=_ms(result.parts.first_byte),
        late_ms=_ms(result.late) or 0.0,
        stalled_ms=_ms(result.stalled) or 0.0,
        tries=result.tries,
        id=result.instance,
    )


def _ms(seconds: float | None) -> float | None:
    return round(seconds * 1000, 3) if seconds is not None else None


def _reported(status: ContainerStatus, kind: ContainerKind) -> ContainerRow:
    last = status.last_state.terminated
    row = ContainerRow(
        name=status.name,
        kind=kind,
        image=status.image,
        state="unknown",
        ready=status.ready,
        restarts=status.restart_count,
        id=status.container_id,
        last_reason=last.reason if last is not None else "",
        last_exit_code=last.exit_code if last is not None else None,
        last_finished=last.finished_at if last is not None else None,
    )
    return _with_state(row, status)


def _with_state(row: ContainerRow, status: ContainerStatus) -> ContainerRow:
    state = status.state
    if state.running is not None:
        return replace(row, state="running", since=state.running.started_at)
    if state.terminated is not None:
        ended = state.terminated
        return replace(
            row,
            state="terminated",
            since=ended.finished_at,
            reason=ended.reason,
            message=ended.message,
            exit_code=ended.exit_code,
        )
    if state.waiting is not None:
        return replace(row, state="waiting", reason=state.waiting.reason, message=state.waiting.message)
    return row


def _planned(it: Situation) -> tuple[ContainerRow, ...]:
    """The containers of a specification that has no status yet."""
    rows = []
    for container in it.pod.spec.init_containers:
        kind = ContainerKind.SIDECAR if is_sidecar(container) else ContainerKind.INIT
        rows.append(ContainerRow(name=container.name, kind=kind, image=container.image, state="unknown"))
    rows += [
        ContainerRow(name=container.name, kind=ContainerKind.MAIN, image=container.image, state="unknown")
        for container in it.pod.spec.containers
    ]
    return tuple(rows)
