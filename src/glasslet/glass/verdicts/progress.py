"""Verdicts about progress: the pod runs, is starting, or hangs for a reason that no other rule knows."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.words import duration, times
from glasslet.glass.stuck import call_limit
from glasslet.glass.trace.timeline import moment
from glasslet.glass.verdicts.exits import exit_words
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.events import ChangeObserved
from glasslet.record.history import LiveWait
from glasslet.record.stations import WaitKind

_CALLS: Mapping[str, str] = {
    WaitKind.CRI_CALL: "the runtime's answer to {on}",
    WaitKind.API_CALL: "the API server's answer to {on}",
    WaitKind.QUEUE: "its turn: {on}",
    WaitKind.BACK_OFF: "the end of its back-off: {on}",
    WaitKind.VOLUME: "volume {on}",
    WaitKind.CSI_CALL: "{on}",
    WaitKind.DRA_CALL: "{on}",
    WaitKind.PROBE: "the next probe: {on}",
    WaitKind.ADMISSION: "{on} to be admitted",
    WaitKind.GRACE_PERIOD: "the end of the grace period: {on}",
    WaitKind.HOOK: "the {on}",
    WaitKind.EXIT: "{on} to end",
    WaitKind.CREDENTIALS: "{on}",
    WaitKind.PAUSE: "the operator to resume it: {on}",
}
_BLOCKED = "look at that process and what it waits for; the runtime goes on when it ends"
_RUNTIME = "wait some seconds; if it lasts, see the runtime's log (journalctl -u containerd)"
_LISTED = "wait; glasslet waits lists it with its time"
_PARTIES: Mapping[str, str] = {
    WaitKind.CRI_CALL: "runtime: ",
    WaitKind.API_CALL: "API: ",
    WaitKind.BACK_OFF: "back-off: ",
}


def fine(it: Situation) -> VerdictAnswer | None:
    """The pod is ready, and nothing is outstanding."""
    if it.condition("Ready") != "True":
        return None
    restarts = sum(status.restart_count for status, _ in it.statuses())
    since = next((c.last_transition_time for c in it.status.conditions if c.type == "Ready"), None)
    count = len(it.pod.spec.containers)
    return it.verdict(
        Rule.FINE,
        VerdictState.FINE,
        f"{it} is fine: restarted {times(restarts)}, {count} of {count} containers ready"
        f"{' for ' + it.ago(since) if since else ''}.",
        since=since,
        evidence=[("address", ", ".join(ip.ip for ip in it.status.pod_ips) or it.status.pod_ip), *_last_ends(it)],
    )


def _last_ends(it: Situation) -> list[tuple[str, str]]:
    """How the earlier instances of the running containers ended, and their last words."""
    found = []
    for status, _ in it.statuses():
        if (end := status.last_state.terminated) is not None:
            found.append(("last end", f"container {status.name} {exit_words(it, status.name, end)}"))
            found.append(("last words", it.last_words.get(status.name, "")))
    return found


def held(it: Situation) -> VerdictAnswer | None:
    """A person stopped the pod at a station."""
    hold = it.hold
    if hold is None:
        return None
    where = f"{'after ' if hold.after else ''}{hold.at}{' of ' + hold.container if hold.container else ''}"
    who = f"break {hold.by}" if hold.by else "a step"
    until = it.clock(hold.until).removesuffix(" UTC")
    return it.verdict(
        Rule.HELD,
        VerdictState.HELD,
        f"{it} is held at {where} by {who}, until {it.clock(hold.until)} at most.",
        brief=f"held at {where} by {who} for {it.ago(hold.since)}, until {until}; go on: glasslet continue {it}",
        since=hold.since,
        evidence=[("then", hold.next), ("only held", "its containers run on, with their probes and its status")],
        next_step=f"let it go on: glasslet continue {it}, or look at it first: glasslet inspect {it}",
    )


def stuck(it: Situation) -> VerdictAnswer | None:
    """A call or action takes longer than it may."""
    found = it.stuck
    if found is None:
        return None
    what = _CALLS.get(found.kind, "{on}").format(on=found.on)
    whose = f" (container {found.container})" if found.container else ""
    dump = [event for event in it.record.events if isinstance(event, ChangeObserved) and event.start >= found.since]
    return it.verdict(
        Rule.NO_PROGRESS,
        VerdictState.FAILING,
        f"{it} makes no progress: {what}{whose} takes {it.ago(found.since)}, and should take {duration(found.allowed)} "
        f"at most{beneath(it)}.",
        brief=f"no progress: {found.on}",
        since=moment(found.since),
        evidence=[
            *(("below it", words) for words in it.beneath),
            *[(event.subject, event.new) for event in dump if event.subject.startswith("task ")][:8],
        ],
        next_step=_BLOCKED
        if it.beneath
        else "look for a network plugin that hangs (processes of /opt/cni/bin), and check the runtime's log"
        if found.on == "RunPodSandbox"
        else "check the runtime's service and log; the pod continues once it answers"
        if found.kind == WaitKind.CRI_CALL
        else "list waits and tasks: glasslet waits, glasslet tasks",
    )


def under_way(it: Situation) -> VerdictAnswer:
    """The last rule: what the pod waits for, or its present station."""
    waits = sorted(it.record.waits, key=lambda wait: wait.since)
    if waits:
        return _waiting(it, waits)
    if it.record.stations:
        station = min(it.record.stations, key=lambda standing: standing.since)
        where = f"{station.station}{' of ' + station.container if station.container else ''}"
        return it.verdict(
            Rule.UNDER_WAY,
            VerdictState.STARTING,
            f"{it} is starting: at {where} for {it.ago(station.since)}.",
            brief=where,
            since=moment(station.since),
        )
    waiting = next(((s.name, s.state.waiting) for s, _ in it.statuses() if s.state.waiting is not None), None)
    if waiting is not None:
        name, state = waiting
        said = f": {state.message}" if state.message else ""
        return it.verdict(
            Rule.WAITING_REASON,
            VerdictState.WAITING,
            f"{it}: container {name} waits ({state.reason}{said}).",
            brief=f"{name}: {state.reason}",
            since=it.since,
        )
    said = it.status.message or it.status.reason
    return it.verdict(
        Rule.UNKNOWN,
        VerdictState.WAITING,
        f"{it} is {it.status.phase or 'not started'}; no wait is known{': ' + said if said else ''}.",
        brief=it.status.reason or "not ready",
        since=it.since,
        next_step=f"see its start: glasslet trace {it}",
    )


def _waiting(it: Situation, waits: list[LiveWait]) -> VerdictAnswer:
    wait = waits[0]
    limit = call_limit(wait, it.request_seconds) if it.request_seconds is not None else None
    at_most = f" of at most {duration(limit)}" if limit is not None else ""
    helps = _BLOCKED if it.beneath else _RUNTIME if wait.kind == WaitKind.CRI_CALL else _LISTED
    again = "" if limit is None else f"; the agent gives it up {it.due(wait.since + limit)} and tries again"
    return it.verdict(
        Rule.WAITING,
        VerdictState.STARTING,
        f"{it} waits for {in_words(wait)} ({it.ago(wait.since)}{at_most}){beneath(it)}.",
        brief=in_brief(wait),
        since=moment(wait.since),
        evidence=[*(("below it", words) for words in it.beneath), *(("also", in_words(o)) for o in waits[1:4])],
        next_step=f"{helps}{again}",
    )


def beneath(it: Situation) -> str:
    """The oldest process below the runtime call, as a clause."""
    return f"; below it {it.beneath[0]}" if it.beneath else ""


def in_words(wait: LiveWait) -> str:
    """A live wait as the object of "waits for"."""
    text = _CALLS.get(wait.kind, "{on}").format(on=wait.on)
    return f"{text} (container {wait.container})" if wait.container and wait.container not in text else text


def in_brief(wait: LiveWait) -> str:
    """A live wait for a table column: the party that is waited for, and the call."""
    party = _PARTIES.get(wait.kind, "")
    about = f" of {wait.container}" if wait.container and wait.container not in wait.on else ""
    return f"{party}{wait.on}{about}"
