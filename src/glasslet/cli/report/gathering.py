"""Asks all questions about one pod, and notes those that had no answer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from glasslet.answers.agent import AgentAnswer, WaitRow, WaitsAnswer
from glasslet.answers.pods import PodDescription
from glasslet.answers.trace import TraceAnswer
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.wire import WireMessage
from glasslet.cli.agent_client import AgentClient, AgentPlace, PodName, find_agent, pod_path
from glasslet.cli.cluster.clients import ClusterClient
from glasslet.cli.ended_pods import answer_from_agent_or_disk
from glasslet.cli.failure import AgentNotRunning, Failure
from glasslet.cli.target import recorded_pod
from glasslet.version import VERSION

T = TypeVar("T")

SCHEMA = "glasslet.report/v1"
_CHECK_SECONDS = 30


class EventLine(WireMessage, frozen=True, kw_only=True):
    """An Event of the API server."""

    at: str
    type: str
    reason: str
    message: str
    count: int = 1


class Report(WireMessage, frozen=True, kw_only=True):
    """One pod: every answer about it. `missing`: the questions that had no answer, and why. `configuration`: of the
    agent, by field; `events`: those of the API server, oldest first."""

    schema: str = SCHEMA
    made_at: datetime
    tool: str = VERSION
    pod: str
    why: VerdictAnswer | None = None
    node_why: VerdictAnswer | None = None
    description: PodDescription | None = None
    trace: TraceAnswer | None = None
    waits: tuple[WaitRow, ...] = ()
    agent: AgentAnswer | None = None
    events: tuple[EventLine, ...] = ()
    configuration: dict[str, object] = {}
    missing: dict[str, str] = {}


def gathered(place: AgentPlace, typed: str) -> Report:
    """The answers about the pod that `typed` means. Raises Failure if the pod is unknown."""
    client = find_agent(place)
    missing: dict[str, str] = {}

    def asked(name: str, question: Callable[[], T]) -> T | None:
        try:
            return question()
        except Failure as failure:
            missing[name] = failure.message
            return None

    try:
        pod = recorded_pod(client, typed)
    except AgentNotRunning as down:
        trace = answer_from_agent_or_disk(place, "trace", typed, TraceAnswer)
        why = asked("why", lambda: answer_from_agent_or_disk(place, "why", typed, VerdictAnswer))
        missing["everything else"] = down.message
        name = f"{trace.namespace}/{trace.name}"
        return Report(made_at=datetime.now(UTC), pod=name, why=why, trace=trace, missing=missing)
    node, path = _node_of(client, pod), pod_path(pod.namespace, pod.name)
    description = asked("description", lambda: node.get(path, PodDescription))
    agent = asked("agent", lambda: node.get("/agent", AgentAnswer))
    waits = asked("waits", lambda: node.get("/waits", WaitsAnswer))
    return Report(
        made_at=datetime.now(UTC),
        pod=str(pod),
        why=asked("why", lambda: node.get(f"{path}/why", VerdictAnswer)),
        node_why=asked("node", lambda: node.get("/node/why", VerdictAnswer)),
        description=description,
        trace=asked("trace", lambda: node.get(f"{path}/trace", TraceAnswer)),
        waits=tuple(wait for wait in (waits or WaitsAnswer()).waits if wait.pod in ("", str(pod))),
        agent=agent,
        events=asked("events", lambda: _events(client, pod, description)) or (),
        configuration=asked("configuration", lambda: _configuration(client, pod, agent)) or {},
        missing=missing,
    )


def _node_of(client: AgentClient, pod: PodName) -> AgentClient:
    return client.node(client.node_of(pod)) if isinstance(client, ClusterClient) else client


def _events(client: AgentClient, pod: PodName, description: PodDescription | None) -> tuple[EventLine, ...]:
    if not isinstance(client, ClusterClient):
        raise Failure("Events are on the API server: kubectl glass report has them")
    if description is None:
        raise Failure("the pod is not on its node any more")
    found = client.objects.events(pod, description.pod.uid)
    return tuple(
        EventLine(at=event.at, type=event.type, reason=event.reason, message=event.message, count=event.count or 1)
        for event in found
    )


def _configuration(client: AgentClient, pod: PodName, agent: AgentAnswer | None) -> dict[str, object]:
    if isinstance(client, ClusterClient):
        return client.objects.configuration(client.node_of(pod))
    if agent is None:
        raise Failure("the agent does not answer")
    return _configuration_of_process(agent.pid)


def _configuration_of_process(pid: int) -> dict[str, object]:
    """What the running agent's command line and files say now, by the agent's own check. Raises Failure."""
    try:
        # One text: the agent shows its flags as its title.
        _, *flags = re.split(r"[\0 ]+", Path(f"/proc/{pid}/cmdline").read_text(errors="replace").strip("\0 "))
        checked = subprocess.run(  # noqa: S603 - our own interpreter and module; the flags are data
            [sys.executable, "-P", "-m", "glasslet.kubelet", "check", "--effective", "-o", "json", "--", *flags],
            capture_output=True,
            check=False,
            timeout=_CHECK_SECONDS,
            cwd=f"/proc/{pid}/cwd",
        )
        rows = json.loads(checked.stdout)["effective"]
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        raise Failure(f"the agent's command line cannot be read again: {type(error).__name__}") from error
    return {row["path"]: row["value"] for row in rows if row["origin"] != "default"}
