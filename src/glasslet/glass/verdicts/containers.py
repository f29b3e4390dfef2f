"""Verdicts about containers: crashed, still to finish, not ready."""

from __future__ import annotations

from glasslet.answers.states import ContainerKind, Rule, VerdictState
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.words import duration, times
from glasslet.api.container import Container
from glasslet.api.lifecycle import Probe
from glasslet.api.pod_status import ContainerStateTerminated
from glasslet.api.restarts import policy_of, restarts_after
from glasslet.glass.trace.timeline import moment
from glasslet.glass.trace.waterfall import latest_life
from glasslet.glass.verdicts.exits import exit_brief, exit_words, killing_of, next_step, saying
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.events import ChangeObserved
from glasslet.record.lasting import crashing_since
from glasslet.record.stations import Station, WaitKind


def crash_back_off(it: Situation) -> VerdictAnswer | None:
    """A container ended; its restart is delayed by back-off."""
    for status, kind in it.statuses():
        waiting = status.state.waiting
        if waiting is None or waiting.reason != "CrashLoopBackOff":
            continue
        last = status.last_state.terminated
        wait = it.wait(WaitKind.BACK_OFF, container=status.name)
        again = it.until(wait)
        ended = last.finished_at if last is not None else None
        held = duration(wait.until - ended.timestamp()) if wait and wait.until and ended else ""
        first = crashing_since(latest_life(it.record.events), status.name)
        since = moment(first) if first is not None and (ended is None or moment(first) < ended) else ended
        after = exit_words(it, status.name, last)
        return it.verdict(
            Rule.CRASH_BACK_OFF,
            VerdictState.FAILING,
            f"{it} keeps failing: {kind} container {status.name} {after}{saying(it, status.name)}, "
            f"restarted {times(status.restart_count)}" + (f" (next start in {again})." if again else "."),
            brief=f"back-off after {exit_brief(it, status.name, last)}"
            + (f" ({held})" if held else "")
            + (f", next start in {again}" if again else ""),
            since=since,
            evidence=[
                ("last run", _last_run(it, status.name, last)),
                ("last words", it.last_words.get(status.name, "")),
                ("message", last.message.strip() if last is not None else ""),
                ("killed", _killed(it, status.name, last)),
                ("back-off", waiting.message),
            ],
            next_step=next_step(it, status, last),
        )
    return None


def post_start_hook(it: Situation) -> VerdictAnswer | None:
    """A container was killed because its postStart hook failed; it is started again after a back-off."""
    for status, kind in it.statuses():
        waiting = status.state.waiting
        if waiting is None or waiting.reason != "PostStartHookError":
            continue
        again = it.until(it.wait(WaitKind.BACK_OFF, container=status.name))
        why = waiting.message.removesuffix(', message: ""').partition(" - error: ")[2] or waiting.message
        return it.verdict(
            Rule.POST_START_HOOK,
            VerdictState.FAILING,
            f"{it} cannot start its {kind} container {status.name}: it was killed because its postStart hook failed "
            f"({why})" + (f" (next start in {again})." if again else "."),
            brief=f"{status.name}: postStart hook failed" + (f", next start in {again}" if again else ""),
            since=it.failing_since(Station.STARTED, container=status.name) or it.since,
            evidence=[("message", waiting.message), ("last words", it.last_words.get(status.name, ""))],
            next_step=f"correct lifecycle.postStart of {status.name}; its log: glasslet logs {it} -c {status.name}",
        )
    return None


def init_not_finished(it: Situation) -> VerdictAnswer | None:
    """An init container runs, and the containers after it wait for its end."""
    kinds = list(it.statuses())
    total = sum(1 for _, kind in kinds if kind in (ContainerKind.INIT, ContainerKind.SIDECAR))
    for position, (status, kind) in enumerate(kinds, start=1):
        if kind == ContainerKind.INIT and status.state.running is not None:
            since = status.state.running.started_at
            return it.verdict(
                Rule.INIT_NOT_FINISHED,
                VerdictState.STARTING,
                f"{it} waits for init container {status.name} ({position} of {total}) to finish; "
                f"it has run for {it.ago(since)}.",
                brief=f"init container {status.name} runs ({position} of {total})",
                since=since,
                evidence=[("last words", it.last_words.get(status.name, ""))],
                next_step=f"read its log: glasslet logs {it} -c {status.name} -f",
            )
        if kind == ContainerKind.SIDECAR and status.state.running is not None and status.started is False:
            since = status.state.running.started_at
            return it.verdict(
                Rule.SIDECAR_NOT_STARTED,
                VerdictState.STARTING,
                f"{it} waits for the startup probe of sidecar {status.name} ({it.ago(since)}).",
                brief=f"sidecar {status.name}: startup probe",
                since=since,
                evidence=[("probe", _probe(it, status.name, "startup")), ("last result", _result(it, status.name))],
                next_step=f"check what its startup probe checks; its log: glasslet logs {it} -c {status.name}",
            )
        ended = status.state.terminated
        if kind == ContainerKind.INIT and ended is not None and ended.exit_code != 0:
            return it.verdict(
                Rule.INIT_FAILED,
                VerdictState.FAILING,
                f"{it} cannot go on: init container {status.name} {exit_words(it, status.name, ended)}"
                f"{saying(it, status.name)}.",
                brief=f"init container {status.name} failed",
                since=ended.finished_at,
                evidence=[
                    ("last words", it.last_words.get(status.name, "")),
                    ("message", ended.message.strip()),
                ],
                next_step=next_step(it, status, ended),
            )
    return None


def readiness_gate(it: Situation) -> VerdictAnswer | None:
    """Every container is ready; a readiness gate, which another component sets, is not True."""
    if it.condition("ContainersReady") != "True" or it.condition("Ready") == "True":
        return None
    by_type = {condition.type: condition for condition in it.status.conditions}
    for gate in it.pod.spec.readiness_gates:
        kind, found = gate.condition_type, by_type.get(gate.condition_type)
        if found is not None and found.status == "True":
            continue
        stands = f"is {found.status}" if found is not None else "is not set yet"
        said = ": ".join(part for part in (found.reason, found.message) if part) if found is not None else ""
        changes = (c.last_transition_time for c in (found, by_type["ContainersReady"]) if c is not None)
        return it.verdict(
            Rule.READINESS_GATE,
            VerdictState.WAITING,
            f"{it} is not ready: its containers are, but readiness gate {kind} {stands}{f' ({said})' if said else ''}.",
            brief=f"readiness gate {kind} {stands}",
            since=max((time for time in changes if time is not None), default=None),
            evidence=[("gates", ", ".join(one.condition_type for one in it.pod.spec.readiness_gates)), ("said", said)],
            next_step=f"check the component that sets condition {kind} in the pod's status",
        )
    return None


def not_ready(it: Situation) -> VerdictAnswer | None:
    """A container runs; its startup or readiness probe does not pass."""
    for status, kind in it.statuses():
        running = status.state.running
        if running is None or status.ready or kind not in (ContainerKind.MAIN, ContainerKind.SIDECAR):
            continue
        container = it.container(status.name)
        if container is None or (container.readiness_probe is None and container.startup_probe is None):
            continue
        which = "startup" if container.startup_probe is not None and not status.started else "readiness"
        probe, result = _probe(it, status.name, which), _result(it, status.name)
        return it.verdict(
            Rule.NOT_READY,
            VerdictState.WAITING,
            f"{it} is not ready: the {which} probe of {status.name} does not pass"
            + (f" ({result})." if result else " yet."),
            brief=f"{which} probe {probe}" + (f": {result}" if result else ""),
            since=running.started_at,
            evidence=[
                ("probe", probe),
                ("last result", result),
                ("last words", it.last_words.get(status.name, "")),
                ("running", f"for {it.ago(running.started_at)}, restarted {times(status.restart_count)}"),
            ],
            next_step=f"run the probe's check by hand (glasslet exec {it} -c {status.name} -- ...), or read the log",
        )
    return None


def ended_container(it: Situation) -> VerdictAnswer | None:
    """A container ended and stays down (restart policy) while others run."""
    for status, kind in it.statuses():
        ended = status.state.terminated
        if ended is None or kind != ContainerKind.MAIN or it.condition("Ready") == "True":
            continue
        container = next((c for c in it.pod.spec.containers if c.name == status.name), Container())
        policy = policy_of(container, it.pod.spec)
        stays = not restarts_after(container, it.pod.spec, ended.exit_code)
        return it.verdict(
            Rule.ENDED_CONTAINER,
            VerdictState.FAILING if ended.exit_code else VerdictState.WAITING,
            f"{it} is not ready: container {status.name} {exit_words(it, status.name, ended)}{saying(it, status.name)}"
            f" {it.ago(ended.finished_at)} ago"
            + (f" and stays down (restart policy {policy})." if stays else " and will be started again."),
            brief=f"{status.name}: {exit_brief(it, status.name, ended)}",
            since=ended.finished_at,
            evidence=[
                ("last words", it.last_words.get(status.name, "")),
                ("message", ended.message.strip()),
                ("killed", _killed(it, status.name, ended)),
            ],
            next_step=next_step(it, status, ended),
        )
    return None


def _last_run(it: Situation, name: str, ended: ContainerStateTerminated | None) -> str:
    if ended is None or ended.finished_at is None:
        return ""
    # The API's times are whole seconds.
    began = ended.started_at
    # A container that never started "began" in 1970.
    seconds = (ended.finished_at - began).total_seconds() if began is not None and began.timestamp() > 0 else None
    took = "" if seconds is None else f", ran {duration(seconds)}" if seconds >= 1 else ", ran less than a second"
    return f"{exit_words(it, name, ended)} {it.ago(ended.finished_at)} ago{took}"


def _killed(it: Situation, name: str, ended: ContainerStateTerminated | None) -> str:
    """When and why this agent killed the container, "" if it did not."""
    found = killing_of(it, name, ended)
    return f"{it.ago(found.at)} ago, because {found.why}" if found is not None else ""


def _result(it: Situation, container: str) -> str:
    """The newest observation of a probe of this container."""
    for event in reversed(it.record.events):
        if isinstance(event, ChangeObserved) and event.container == container and "probe" in event.subject:
            return event.new
    wait = it.wait(WaitKind.PROBE, container=container)
    return wait.on if wait is not None else ""


def _probe(it: Situation, container: str, which: str) -> str:
    spec = it.container(container)
    if spec is None:
        return ""
    probe: Probe | None = spec.startup_probe if which == "startup" else spec.readiness_probe
    if probe is None:
        return ""
    if probe.http_get is not None:
        # Without the query: there may be a token in it.
        path = probe.http_get.path.partition("?")[0]
        return f"http :{probe.http_get.port}{path or '/'}"
    if probe.tcp_socket is not None:
        return f"tcp :{probe.tcp_socket.port}"
    if probe.grpc is not None:
        return f"grpc :{probe.grpc.port}"
    return "exec " + " ".join(probe.exec.command) if probe.exec is not None else ""
