"""Why the runtime or its network is not ready: the cause as a clause, and what helps. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from msgspec import Struct

from glasslet.answers.words import duration
from glasslet.glass.stuck import call_limit
from glasslet.glass.trace.timeline import moment
from glasslet.glass.verdicts.causes import Cause, last_part
from glasslet.record.history import LiveWait
from glasslet.runtime.observed.conditions import NETWORK_UNKNOWN
from glasslet.runtime.observed.runtime_process import ProcessView

_START: Final = (
    "start the runtime's service (systemctl start containerd), or correct containerRuntimeEndpoint; "
    "see its log (journalctl -u containerd)"
)
_RESTART: Final = "see the runtime's log (journalctl -u containerd), and restart its service if it hangs"
_INSTALL: Final = "install a network: most write the file from their DaemonSet; the agent notices within seconds"
_FILE: Final = "correct or replace that file; the agent notices within seconds"
_NO_ANSWER_SECONDS: Final = 5.0
_STOPPED: Final = ("T", "t")
_RUNS: Final = "runs"
_STATES: Final = {
    "T": "is stopped by a signal (SIGSTOP)",
    "t": "is stopped by a debugger",
    "D": "waits in the kernel, most often for a disk (state D)",
}
_CONDITION: Final = re.compile(r"\w+=false reason:(?P<reason>\S*) message:(?P<message>.*)", re.DOTALL)
_PLEG: Final = re.compile(r"PLEG is not healthy: (?P<why>.*)")
_NO_CONFIGURATION: Final = re.compile(r"no network config found in (?P<folder>[^\s:]+)")
_BAD_FILE: Final = re.compile(r"(?:failed to load CNI config(?: list)? file|file) (?P<file>/[^\s:]+): (?P<why>.*)")


class RuntimeState(Struct, frozen=True, kw_only=True):
    """The runtime as the agent sees it at time `now`. `endpoint`: as configured; `errors`, `network_error`: in the Go
    kubelet's words; `said`: the error of the last question; `network_load`: the runtime's words about its network
    configuration; `calls`: calls of no pod that are under way; `request_seconds`: runtimeRequestTimeout; `process`: its
    process, None if it is not known."""

    now: datetime
    endpoint: str = ""
    errors: tuple[str, ...] = ()
    said: str = ""
    since: datetime | None = None
    calls: tuple[LiveWait, ...] = ()
    request_seconds: float = 120.0
    process: ProcessView | None = None
    network_error: str = ""
    network_load: str = ""
    network_since: datetime | None = None


def runtime_cause(it: RuntimeState) -> Cause | None:
    """Why the runtime is not ready, or will not be soon; None while it answers."""
    if not it.errors and not it.said and not _is_silent(it):
        return None
    where = it.endpoint.removeprefix("unix://") or "its socket"
    process, restart = _process(it.process)
    if "No such file or directory" in it.said:
        return Cause(f"the container runtime does not run: there is no socket at {where}{process}", _START)
    if "onnection refused" in it.said:
        return Cause(f"the container runtime does not run: no process listens on {where}{process}", _START)
    for error in it.errors:
        if (found := _CONDITION.search(error)) is not None:
            why = found["message"].strip() or "it gives no reason"
            return Cause(
                f"the container runtime says that it is not ready: {why} ({found['reason'] or 'no reason'})",
                "correct what it names; see its log (journalctl -u containerd)",
            )
    if (late := _late_call(it)) is not None:
        lasts = duration(it.now.timestamp() - late.since)
        limit = call_limit(late, it.request_seconds)
        asked = f"asked {lasts} ago" + (f" (of at most {duration(limit)})" if limit is not None else "")
        return Cause(f"the container runtime does not answer {late.on}, {asked}{process}", restart)
    if "before receiving SETTINGS" in it.said:
        words = f"the container runtime does not answer: it takes connections at {where} and says nothing"
        return Cause(f"{words}{process}", restart)
    if it.said:
        return Cause(f"the container runtime does not answer: {_brief(it.said)}{process}", restart)
    if (stale := next(filter(None, map(_PLEG.search, it.errors)), None)) is not None:
        return Cause(f"the container runtime does not list its pods and containers: {stale['why']}{process}", restart)
    return Cause(f"the container runtime has not answered yet{process}", _START)


def runtime_since(it: RuntimeState) -> datetime | None:
    """Since when it is not ready: since its first failed answer, or since the question that it does not answer."""
    late = _late_call(it)
    return it.since or (moment(late.since) if late is not None else None)


def process_evidence(it: ProcessView | None) -> str:
    """What is known of the runtime's process, with the time at which it was gone; "" if nothing is."""
    if it is None:
        return ""
    if it.gone_since is not None:
        return f"{it} has ended; at {it.gone_since:%Y-%m-%d %H:%M:%S} UTC it was gone"
    return f"{it} {_STATES.get(it.state, _RUNS)}"


def _process(it: ProcessView | None) -> tuple[str, str]:
    """(clause about the runtime's process, what helps)."""
    if it is None:
        return "", _RESTART
    if it.gone_since is not None:
        return f"; its process {it} has ended", _START
    step = f"let it go on: kill -CONT {it.pid}" if it.state in _STOPPED else _RESTART
    return f"; its process {it} {_STATES.get(it.state, _RUNS)}", step


def network_cause(it: RuntimeState) -> Cause | None:
    """Why the runtime has no network for pods, None if it has one."""
    if not it.network_error:
        return None
    said = it.network_load
    if (empty := _NO_CONFIGURATION.search(said)) is not None:
        return Cause(f"there is no CNI configuration in {empty['folder']}", _INSTALL)
    if (bad := _BAD_FILE.search(said)) is not None:
        return Cause(f"CNI configuration {bad['file']} cannot be used: {_brief(bad['why'])}", _FILE)
    if said:
        return Cause(f"its CNI configuration cannot be loaded: {_brief(said)}", "check the files in /etc/cni/net.d")
    if it.network_error == NETWORK_UNKNOWN:
        return Cause("the runtime has not said whether it has a network", _RESTART)
    found = _CONDITION.search(it.network_error)
    why = found["message"].strip() if found is not None else it.network_error
    return Cause(why or it.network_error, _INSTALL)


def _late_call(it: RuntimeState) -> LiveWait | None:
    late = [one for one in it.calls if it.now.timestamp() - one.since >= _NO_ANSWER_SECONDS]
    return min(late, key=lambda one: one.since, default=None)


def _is_silent(it: RuntimeState) -> bool:
    """Whether the question that its readiness depends on has no answer for some time."""
    late = _late_call(it)
    return late is not None and late.on == "Status"


def _brief(said: str) -> str:
    text = " ".join(said.split())
    return text if len(text) <= 200 else last_part(text)
