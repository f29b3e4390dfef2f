"""Verdicts about the end of a pod: being stopped, over, removed."""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.states import Rule, VerdictState, WorkerState
from glasslet.answers.why import Evidence, VerdictAnswer
from glasslet.answers.words import duration
from glasslet.exchange.finality import has_ended
from glasslet.glass.timeline import described, moment
from glasslet.glass.verdicts.exits import exit_words, has_run
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.events import ChangeObserved, Decided, end_of
from glasslet.record.history import PodRecord
from glasslet.record.stations import Station, WaitKind

_STOPPING = (WorkerState.TERMINATING, WorkerState.TERMINATED)


def terminating(it: Situation) -> VerdictAnswer | None:
    """The pod is being stopped."""
    if it.lifecycle not in _STOPPING and not it.at(Station.STOPPING):
        return None
    if it.lifecycle == WorkerState.TERMINATED:
        wait = it.wait(WaitKind.VOLUME, WaitKind.CRI_CALL, WaitKind.API_CALL)
        doing = f"its volumes and files are being removed{' (' + wait.on + ')' if wait is not None else ''}"
        brief = "stopped, being removed"
    else:
        wait = it.wait(WaitKind.HOOK) or it.wait(WaitKind.GRACE_PERIOD) or it.wait(WaitKind.CRI_CALL)
        left = it.until(wait)
        doing = (
            f"{wait.container or 'it'} has time to end ({wait.on}{', ' + left + ' left' if left else ''})"
            if wait is not None
            else "its containers are being stopped"
        )
        brief = "stopping" + (f", {left} of grace left" if left else "")
    running = [status.name for status, _ in it.statuses() if status.state.running is not None]
    return it.verdict(
        Rule.TERMINATING,
        VerdictState.STOPPING,
        f"{it} is being stopped: {doing}.",
        brief=brief,
        since=moment(wait.since) if wait is not None else it.since,
        evidence=[("still running", ", ".join(running)), ("reason", it.status.reason), ("said", it.status.message)],
    )


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
    why = it.status.message or it.status.reason or codes
    words = [f"{name}: {text}" for name, text in it.last_words.items() if text]
    return it.verdict(
        Rule.FAILED,
        VerdictState.ENDED,
        f"{it} failed and stays down (restart policy {it.pod.spec.restart_policy or 'Always'}): {why or 'unknown'}.",
        brief=it.status.reason or "failed",
        since=finished,
        evidence=[("containers", codes), ("reason", it.status.reason), ("last words", "; ".join(words))],
        next_step=f"read its log: glasslet logs {it}" if any(has_run(s) for s, _ in it.statuses()) else "",
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
