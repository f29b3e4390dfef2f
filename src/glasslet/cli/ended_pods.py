"""Answers about the node and pods that may have ended, from an agent that may be down: then from the record on disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TypeVar

import msgspec

from glasslet.answers.why import VerdictAnswer
from glasslet.answers.wire import ErrorAnswer, WireMessage, decode
from glasslet.cli.agent_client import AgentPlace, find_agent, pod_path
from glasslet.cli.failure import AgentNotRunning, NotInRecord
from glasslet.cli.target import recorded_pod

T = TypeVar("T", bound=WireMessage)


def answer_from_agent_or_disk(place: AgentPlace, question: str, pod: str, kind: type[T]) -> T:
    """The agent's answer (`pod` "": about itself); when it is down, from its record. `question`: trace or why."""
    client = find_agent(place)
    try:
        if not pod:
            return client.get(f"/agent/{question}", kind)
        target = recorded_pod(client, pod)
        return client.get(pod_path(target.namespace, target.name, f"/{question}"), kind)
    except AgentNotRunning as down:
        return _from_disk(client.root_dir, question, pod, kind, down)


def node_from_agent_or_disk(place: AgentPlace) -> VerdictAnswer:
    """The agent's answer about its node; when it is down, from what its last start left on disk."""
    client = find_agent(place)
    try:
        return client.get("/node/why", VerdictAnswer)
    except AgentNotRunning as down:
        return _from_disk(client.root_dir, "node", "", VerdictAnswer, down)


def _from_disk(root_dir: Path, question: str, pod: str, kind: type[T], down: AgentNotRunning) -> T:
    if not (root_dir / "glasslet").is_dir():
        raise down
    reader = subprocess.run(  # noqa: S603 - our own interpreter and module; the arguments are data
        [sys.executable, "-P", "-m", "glasslet.glass", str(root_dir), question, pod], capture_output=True, check=False
    )
    if reader.returncode != 0:
        try:
            refused = decode(reader.stdout, ErrorAnswer)
        except msgspec.MsgspecError:
            raise down from None
        near = f"; did you mean {' or '.join(refused.nearest)}?" if refused.nearest else ""
        raise NotInRecord(f"{refused.error}{near} (no agent runs; this is from the record on disk)")
    sys.stderr.write("no agent runs; this is from the record on disk\n")
    return decode(reader.stdout, kind)
