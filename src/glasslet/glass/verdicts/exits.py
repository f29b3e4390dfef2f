"""How a container ended, in words: what ended it, its exit code, its memory limit. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from msgspec import Struct

from glasslet.api.lifecycle import Probe
from glasslet.api.pod_status import ContainerStateTerminated, ContainerStatus
from glasslet.glass.verdicts.causes import Cause
from glasslet.glass.verdicts.container_causes import container_cause
from glasslet.glass.verdicts.situation import Situation
from glasslet.record.events import ChangeObserved, StationSpan
from glasslet.record.stations import Station

_PROBES: Final = ("liveness", "startup")
_WHOLE_SECOND: Final = 1.0
"""The API's times are whole seconds."""
_CODES: Final = {
    0: "its command ended without an error",
    126: "its command cannot be executed",
    127: "its command was not found",
    137: "signal KILL",
    139: "signal SEGV, a segmentation fault",
    143: "signal TERM",
}
_SIGNALS: Final = (137, 143)

_EXEC: Final = re.compile(r"exec (?P<path>/\S+): (?P<why>exec format error|no such file or directory)")
_QUOTED: Final = 120
"""Characters of a container's last log line in a sentence; the evidence has more of it."""


class Killing(Struct, frozen=True, kw_only=True):
    """This agent killed a container at `at` (Unix seconds). `why`: a clause; `probe`: liveness, startup or ""."""

    at: float
    why: str
    probe: str = ""


def killing_of(it: Situation, name: str, ended: ContainerStateTerminated | None) -> Killing | None:
    """The kill that ended this instance, None if this agent did not kill it."""
    finished = ended.finished_at.timestamp() if ended is not None and ended.finished_at is not None else None
    for event in reversed(it.record.events):
        if not isinstance(event, StationSpan) or event.station != Station.STOPPING or event.container != name:
            continue
        if finished is None or event.start - _WHOLE_SECOND <= finished <= event.end + _WHOLE_SECOND:
            return killing(it, name, event.detail, event.start)
    return None


def killing(it: Situation, name: str, message: str, at: float) -> Killing:
    """The kill that began at `at` with this message."""
    for probe in _PROBES:
        if f"failed {probe} probe" in message:
            answer = last_failure(it, name, probe, before=at)
            return Killing(at=at, probe=probe, why=f"its {probe} probe failed{f' ({answer})' if answer else ''}")
    if "definition changed" in message:
        return Killing(at=at, why="its definition changed")
    if "resize requires restart" in message:
        return Killing(at=at, why="a resize requires a restart")
    if '"unknown" state' in message:
        return Killing(at=at, why="the runtime does not know its state")
    return Killing(at=at, why=pod_stopped_for(it) or "the pod was stopped, or its sandbox was created again")


def pod_stopped_for(it: Situation) -> str:
    """Why the whole pod is stopped, as a clause; "" if that is not known."""
    meta = it.pod.metadata
    if it.status.reason == "DeadlineExceeded":
        return f"the pod's deadline passed (activeDeadlineSeconds {it.pod.spec.active_deadline_seconds})"
    if it.status.reason == "Preempting":
        return "the pod was preempted for a critical pod"
    if it.status.reason and it.status.phase == "Failed":
        return f"the pod was stopped ({it.status.reason})"
    return "the pod was deleted" if meta.deletion_timestamp is not None else ""


def last_failure(it: Situation, name: str, probe: str, *, before: float) -> str:
    """The last failure of a probe, with its count: `status 503, 3 of 3 failures`."""
    for event in reversed(it.record.events):
        if not isinstance(event, ChangeObserved) or event.container != name or event.subject != f"{probe} probe":
            continue
        if event.start <= before + _WHOLE_SECOND and event.new.endswith("failures"):
            return event.new
    spec = it.container(name)
    found: Probe | None = None
    if spec is not None:
        found = spec.liveness_probe if probe == "liveness" else spec.startup_probe
    return f"failureThreshold {found.failure_threshold}" if found is not None and found.failure_threshold else ""


def exit_words(it: Situation, name: str, ended: ContainerStateTerminated | None) -> str:
    """How a container ended, as a predicate: `exited with code 1`, `was killed because its liveness probe failed`."""
    if ended is None:
        return "ended"
    if ended.reason == "OOMKilled":
        return f"ran out of memory (OOMKilled; {_memory(it, name)})"
    if (killed := killing_of(it, name, ended)) is not None:
        return f"was killed because {killed.why}, exit code {ended.exit_code}"
    if (cause := start_error(it, name, ended)) is not None:
        return f"could not be started: {cause.words}"
    if (cause := _exec_error(it, name)) is not None:
        return f"exited with code {ended.exit_code}: {cause.words}"
    if ended.signal:
        return f"was killed by signal {ended.signal}"
    if not ended.exit_code and it.pod.spec.restart_policy not in ("", "Always"):
        return "exited with code 0"
    notes = [_code(it, ended.exit_code), "" if ended.reason in ("Error", "Completed") else ended.reason]
    said = ", ".join(note for note in notes if note)
    return f"exited with code {ended.exit_code}" + (f" ({said})" if said else "")


def start_error(it: Situation, name: str, ended: ContainerStateTerminated | None) -> Cause | None:
    """Why an instance never ran, None if it did."""
    if ended is None or ended.reason != "StartError" or not ended.message:
        return None
    return container_cause(ended.message, it.container(name))


def _exec_error(it: Situation, name: str) -> Cause | None:
    """Why the kernel could not run the command, which the runtime says as the container's last words."""
    found = _EXEC.fullmatch(it.last_words.get(name, "").strip())
    if found is None:
        return None
    path = found["path"]
    if found["why"] == "exec format error":
        return Cause(
            f"its command {path} is a program for another architecture, or a script without #! line",
            "use an image for the node's architecture, or add the #! line to the script",
        )
    return Cause(
        f"what its command {path} is run by does not exist: the interpreter of its #! line, or its loader",
        f"check the first line of {path} (a \\r of Windows at its end is part of the name), or the image's libraries",
    )


def saying(it: Situation, name: str) -> str:
    """The last log line of a container that ended by itself, as part of a sentence: most programs say there why."""
    words = " ".join(it.last_words.get(name, "").split())
    if not words or _EXEC.fullmatch(words):
        return ""
    return f', saying "{words}"' if len(words) <= _QUOTED else f', saying "… {words[-_QUOTED:]}"'


def exit_brief(it: Situation, name: str, ended: ContainerStateTerminated | None) -> str:
    """The same in a few words, as a noun."""
    if ended is None:
        return "its end"
    if ended.reason == "OOMKilled":
        return "out of memory"
    killed = killing_of(it, name, ended)
    return f"failed {killed.probe} probe" if killed is not None and killed.probe else f"exit {ended.exit_code}"


def _code(it: Situation, code: int) -> str:
    meaning = _CODES.get(code, "")
    # With a part of the record dropped, the kill may be in that part.
    return f"{meaning}, not sent by this agent" if code in _SIGNALS and not it.record.dropped else meaning


def _memory(it: Situation, name: str) -> str:
    spec = it.container(name)
    limit = spec.resources.limits.get("memory") if spec is not None else None
    if limit is not None:
        return f"its memory limit is {limit}"
    whole = it.pod.spec.resources
    limit = whole.limits.get("memory") if whole is not None else None
    if limit is not None:
        return f"the pod's memory limit is {limit}"
    return "it has no memory limit, so the node itself was short of memory"


def has_run(status: ContainerStatus) -> bool:
    """Whether any instance of the container ran, so that there can be a log."""
    if status.state.running is not None:
        return True
    return any(_began(one.terminated) is not None for one in (status.state, status.last_state))


def _began(ended: ContainerStateTerminated | None) -> datetime | None:
    """When an instance began. One that never started "began" in 1970."""
    began = ended.started_at if ended is not None else None
    return began if began is not None and began.timestamp() > 0 else None


def next_step(it: Situation, status: ContainerStatus, ended: ContainerStateTerminated | None) -> str:
    """What helps against this end of a container."""
    name = status.name
    killed = killing_of(it, name, ended)
    if ended is not None and ended.reason == "OOMKilled":
        return f"raise the memory limit of {name}, or lower what it uses; its log: glasslet logs {it} -c {name}"
    if killed is not None and killed.probe:
        return (
            f"check what the {killed.probe} probe of {name} checks, or give it more time (timeoutSeconds, "
            f"failureThreshold); its log: glasslet logs {it} -c {name}"
        )
    if ended is not None and ended.exit_code == 0:
        use = f"let the command of {name} run on, or use restartPolicy OnFailure (a Job)"
        return f"{use}; its log: glasslet logs {it} -c {name}"
    if (cause := start_error(it, name, ended) or _exec_error(it, name)) is not None and cause.next_step:
        return cause.next_step
    if not has_run(status):
        return f"correct the command, image or security context of {name}: it never ran, so there is no log"
    return f"read its log: glasslet logs {it} -c {name}"
