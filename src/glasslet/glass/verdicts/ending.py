"""Verdicts about the end of a pod: being stopped, over, removed."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from glasslet.answers.states import ContainerKind, Rule, VerdictState, WorkerState
from glasslet.answers.why import Evidence, VerdictAnswer
from glasslet.answers.words import duration
from glasslet.exchange.finality import has_ended
from glasslet.glass.trace.timeline import described, moment
from glasslet.glass.verdicts.claim_words import claims_not_given_back
from glasslet.glass.verdicts.exits import exit_words, has_run, killing, pod_stopped_for, saying
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.events import ChangeObserved, Decided, end_of
from glasslet.record.history import PodRecord
from glasslet.record.stations import Station, WaitKind

_STOPPING = (WorkerState.TERMINATING, WorkerState.TERMINATED)
_AT_WORK = (WorkerState.SYNCING, *_STOPPING)
_OVER_VOLUME = re.compile(r'Usage of EmptyDir volume "(?P<name>[^"]*)" exceeds the limit "(?P<limit>[^"]*)"')
_DEFAULT_GRACE = 30
"""Seconds; the API's default."""


def finalizer(it: Situation) -> VerdictAnswer | None:
    """The pod has stopped; finalizers keep its deleted object."""
    meta = it.pod.metadata
    if meta.deletion_timestamp is None or not meta.finalizers or it.lifecycle in _AT_WORK:
        return None
    if it.lifecycle is None and not has_ended(it.status):
        return None
    names = ", ".join(meta.finalizers)
    word = "finalizer" if len(meta.finalizers) == 1 else "finalizers"
    return it.verdict(
        Rule.FINALIZER,
        VerdictState.WAITING,
        f"{it} was deleted and has stopped; its object stays until {word} {names} {'is' if word[-1] == 'r' else 'are'} "
        "removed.",
        brief=f"stopped; {word} {names}",
        since=it.since or _deleted_at(it),
        evidence=[("finalizers", names), ("deleted", _deletion(it)), ("phase", it.status.phase)],
        next_step="check the controller that owns the finalizer: it removes it when its own work is done",
    )


def container_stopping(it: Situation) -> VerdictAnswer | None:
    """One container is being killed; the pod goes on."""
    if it.lifecycle != WorkerState.SYNCING:
        return None
    standing = next((one for one in it.record.stations if one.station == Station.STOPPING and one.container), None)
    if standing is None:
        return None
    name = standing.container
    doing, left = _ends(it, name)
    found = killing(it, name, standing.detail, standing.since)
    return it.verdict(
        Rule.CONTAINER_STOPPING,
        VerdictState.WAITING,
        f"{it}: container {name} is being killed because {found.why}: {doing}.",
        brief=f"{name}: being killed" + (f", failed {found.probe} probe" if found.probe else "") + left,
        since=moment(standing.since),
        evidence=[("message", standing.detail)],
    )


def terminating(it: Situation) -> VerdictAnswer | None:
    """The pod is being stopped."""
    if it.lifecycle not in _STOPPING and not it.at(Station.STOPPING):
        return None
    began = min((one.since for one in it.record.stations if one.station == Station.STOPPING), default=None)
    since = _deleted_at(it) or (moment(began) if began is not None else it.since)
    if it.lifecycle == WorkerState.TERMINATED:
        wait = it.wait(WaitKind.CSI_CALL, WaitKind.VOLUME, WaitKind.CRI_CALL, WaitKind.API_CALL)
        busy = f"; its volumes are busy: {', '.join(it.holders)} works in them" if it.holders else ""
        doing = f"its volumes and files are being removed{' (' + wait.on + ')' if wait is not None else ''}{busy}"
        brief = "stopped, being removed"
    elif claims := claims_not_given_back(it):
        doing, brief = f"its resource claims are being given back: {claims}", "stopped, gives back its claims"
    else:
        doing, left = _ends(it, None)
        brief = f"stopping{left}"
    running = [status.name for status, _ in it.statuses() if status.state.running is not None]
    why = pod_stopped_for(it)
    return it.verdict(
        Rule.TERMINATING,
        VerdictState.STOPPING,
        f"{it} is being stopped{' because ' + why if why else ''}: {doing}.",
        brief=brief,
        since=since,
        evidence=[
            ("still running", ", ".join(running)),
            ("works in its volumes", ", ".join(it.holders)),
            ("deleted", _deletion(it)),
            ("reason", it.status.reason),
            ("said", it.status.message),
            ("finalizers", ", ".join(it.pod.metadata.finalizers)),
        ],
        next_step="end the processes that work in its volumes; the agent tries again"
        if it.holders
        else "wait, or delete it with a shorter grace period (kubectl delete --grace-period)"
        if running
        else "",
    )


def _ends(it: Situation, name: str | None) -> tuple[str, str]:
    """What the stop of a container (None: of the pod) waits for, as a clause; and in a few words."""
    if (wait := it.wait(WaitKind.HOOK, container=name)) is not None:
        kill = _kill_at(it, wait.container)
        latest = f"; KILL comes {it.due(kill)} at the latest" if kill is not None else ""
        return f"the {wait.on} runs (for {it.ago(wait.since)}){latest}", f", {wait.on}"
    if (wait := it.wait(WaitKind.GRACE_PERIOD, container=name)) is not None:
        who = wait.container or "it"
        if wait.until is None:
            return f"{who} has time to end ({wait.on})", ""
        return (
            f"{who} got its stop signal {it.ago(wait.since)} ago; KILL comes {it.due(wait.until)}",
            f", {it.until(wait)} of grace left",
        )
    wait = it.wait(WaitKind.CRI_CALL, container=name) or it.wait(WaitKind.QUEUE, container=name)
    if wait is not None:
        return f"it waits for {wait.on} ({it.ago(wait.since)})", ""
    return "its containers are being stopped" if name is None else "it is about to get its stop signal", ""


def _kill_at(it: Situation, name: str) -> float | None:
    """When KILL comes for a container whose preStop hook runs: hook and stop share the grace period."""
    for one in it.record.stations:
        if one.station == Station.STOPPING and one.container == name:
            return one.since + max(_grace(it, name, one.detail), 1)
    return None


def _grace(it: Situation, name: str, message: str) -> int:
    """Seconds that the container gets: of the deletion, of the probe that failed, of the pod."""
    meta, spec = it.pod.metadata, it.pod.spec
    given = [meta.deletion_grace_period_seconds]
    container, found = it.container(name), killing(it, name, message, 0.0)
    if container is not None and found.probe:
        probe = container.liveness_probe if found.probe == "liveness" else container.startup_probe
        given.append(probe.termination_grace_period_seconds if probe is not None else None)
    given.append(spec.termination_grace_period_seconds)
    return next((seconds for seconds in given if seconds is not None), _DEFAULT_GRACE)


def _deleted_at(it: Situation) -> datetime | None:
    """When the deletion was requested: the object's timestamp is the end of its grace period."""
    meta = it.pod.metadata
    if meta.deletion_timestamp is None:
        return None
    try:
        return meta.deletion_timestamp - timedelta(seconds=meta.deletion_grace_period_seconds or 0)
    except OverflowError:
        return meta.deletion_timestamp


def _deletion(it: Situation) -> str:
    when = _deleted_at(it)
    if when is None:
        return ""
    return f"at {it.clock(when)}, grace period {duration(it.pod.metadata.deletion_grace_period_seconds or 0)}"


def deadline(it: Situation) -> str:
    """When the pod's activeDeadlineSeconds ends it, "" if it has none."""
    seconds, began = it.pod.spec.active_deadline_seconds, it.status.start_time
    if seconds is None or began is None or has_ended(it.status):
        return ""
    return it.due(began.timestamp() + seconds)


def over(it: Situation) -> VerdictAnswer | None:
    """Every container ended, and none is started again."""
    if not has_ended(it.status):
        return None
    last = [(s.name, s.state.terminated) for s, _ in it.statuses() if s.state.terminated is not None]
    codes = ", ".join(f"{name} {exit_words(it, name, ended)}" for name, ended in last)
    finished = max((ended.finished_at for _, ended in last if ended.finished_at is not None), default=None)
    if it.status.phase == "Succeeded":
        return it.verdict(
            Rule.SUCCEEDED,
            VerdictState.ENDED,
            f"{it} is done: every container succeeded{' ' + it.ago(finished) + ' ago' if finished else ''}.",
            since=finished,
            evidence=[("containers", codes)],
        )
    late = it.status.reason == "DeadlineExceeded"
    deadline_ = f"its deadline passed (activeDeadlineSeconds {it.pod.spec.active_deadline_seconds})" if late else ""
    evicted, evicted_step = _eviction(it)
    why = deadline_ or evicted or it.status.message or it.status.reason or _failures(it) or codes
    logs = f"read its log: glasslet logs {it}" if any(has_run(s) for s, _ in it.statuses()) else ""
    words = [f"{name}: {text}" for name, text in it.last_words.items() if text]
    return it.verdict(
        Rule.FAILED,
        VerdictState.ENDED,
        f"{it} failed and stays down (restart policy {it.pod.spec.restart_policy or 'Always'}): {why or 'unknown'}.",
        brief=it.status.reason or why,
        since=finished or it.since,
        evidence=[("containers", codes), ("reason", it.status.reason), ("last words", "; ".join(words))],
        next_step="raise activeDeadlineSeconds, or find what took so long (glasslet trace)"
        if late
        else evicted_step or logs,
    )


def _eviction(it: Situation) -> tuple[str, str]:
    """Why this node evicted the pod, and what helps; empty if it did not."""
    if it.status.reason != "Evicted":
        return "", ""
    said = it.status.message.strip().rstrip(".")
    if (volume := _OVER_VOLUME.search(said)) is not None:
        words = f"it wrote more to its emptyDir volume {volume['name']} than sizeLimit {volume['limit']} allows"
        return f"the node evicted it: {words}", f"raise sizeLimit of {volume['name']}, or write less to it"
    if "ephemeral local storage usage exceeds" in said:
        return f"the node evicted it: {said}", "raise limits.ephemeral-storage, or write less to logs and layers"
    step = "see what the node has left (glasslet why node), and give the pod requests that fit what it uses"
    return f"the node evicted it: {said}", step


def _failures(it: Situation) -> str:
    """The containers that failed, each with how it ended."""
    kinds = {ContainerKind.INIT: "init container", ContainerKind.SIDECAR: "sidecar"}
    ends = [(status, kind, status.state.terminated) for status, kind in it.statuses()]
    return ", ".join(
        f"{kinds.get(kind, 'container')} {status.name} {exit_words(it, status.name, ended)}{saying(it, status.name)}"
        for status, kind, ended in ends
        if ended is not None and (ended.exit_code or ended.signal)
    )


def removed(record: PodRecord, now: datetime) -> VerdictAnswer:
    """The verdict on a pod of which only the record is left."""
    pod = record.pod
    last = max((end_of(event) for event in record.events), default=now.timestamp())
    decision = next((event for event in reversed(record.events) if isinstance(event, Decided | ChangeObserved)), None)
    what = "was removed" if record.ended else "was last seen by an agent that no longer runs"
    return VerdictAnswer(
        namespace=pod.namespace if pod else "",
        name=pod.name if pod else "agent",
        rule=Rule.GONE,
        state=VerdictState.ENDED,
        sentence=f"{pod or 'the agent'} {what}, {duration(now.timestamp() - last)} ago.",
        evidence=tuple(
            Evidence(label=label, text=text)
            for label, text in [
                ("last decided", described(decision).text if decision is not None else ""),
                ("findings", "; ".join(record.findings())),
            ]
            if text
        ),
        since=moment(last),
        next_step=f"see its start: glasslet trace {pod}" if pod else "",
    )
