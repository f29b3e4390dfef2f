"""Why no agent answers: rules over the note that its last start left on disk. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.why import Evidence, VerdictAnswer
from glasslet.answers.words import duration
from glasslet.glass.trace.timeline import moment
from glasslet.host.files.start_note import ENDED, REFUSED, STARTING, StartNote

_HELP: Final[tuple[tuple[str, str], ...]] = (
    (r"port \d+.* in use|address already in use", "end the process that holds the port, or choose another port"),
    (
        r"certificate|x509|PEM|private key|clientCAFile",
        "renew or correct the file that the problem names, then start again",
    ),
    (r"cgroup ?driver|systemd cgroup", "give the agent and the runtime the same cgroup driver, then start again"),
    (r"no inode is left", "remove files that are not needed on that disk (df -i), then start again"),
    (r"No space left|disk quota", "free space on that disk, then start again"),
    (
        r"Read-only file system|Permission denied",
        "make that folder writable for root, or name another, then start again",
    ),
    (r"swap", "turn swap off (swapoff -a), or set failSwapOn: false, then start again"),
)
_OTHER: Final = "correct it; `glasslet check -- FLAGS` lists every problem at once without a start"


def start_verdict(
    note: StartNote | None, *, name: str, alive: bool, last_sign: float | None, now: datetime
) -> VerdictAnswer:
    """The verdict on a node whose agent does not answer. `alive`: the process of the note runs; `last_sign`: when an
    agent last marked its record (Unix seconds)."""
    if note is None:
        return _stopped(name, "no agent runs", last_sign, now, ())
    name = note.node or name
    process = ("process", f"{note.pid}, started {_clock(note.started, now)}")
    if note.state == REFUSED:
        return _refused(note, name, now)
    if alive and note.state == STARTING:
        return VerdictAnswer(
            namespace="",
            name=name,
            rule=Rule.AGENT_STARTING,
            state=VerdictState.STARTING,
            sentence=f"{name}: the agent is starting: {note.reason or 'it does not wait for anything'}, "
            f"since {_clock(note.since, now)}.",
            brief=note.reason or "starting",
            evidence=(Evidence(label=process[0], text=process[1]),),
            next_step="help the party that it waits for; the start goes on by itself",
            since=moment(note.since),
        )
    if alive:
        return _stopped(name, f"the agent's process {note.pid} runs and does not answer", None, now, (process,))
    if note.state == ENDED:
        return _stopped(name, "no agent runs: it was ended by a signal (TERM or INT)", note.since, now, (process,))
    during = " during its start" if note.state == STARTING else ""
    return _stopped(
        name, f"no agent runs: its process {note.pid} died{during} without a word", last_sign, now, (process,)
    )


def _refused(note: StartNote, name: str, now: datetime) -> VerdictAnswer:
    first = note.problems[0] if note.problems else None
    text = " ".join(first.text.split()) if first is not None else "unknown"
    more = f" (and {len(note.problems) - 1} more)" if len(note.problems) > 1 else ""
    every = " ".join(problem.text for problem in note.problems)
    step = next((words for pattern, words in _HELP if re.search(pattern, every)), _OTHER)
    when = _clock(note.since, now)
    return VerdictAnswer(
        namespace="",
        name=name,
        rule=Rule.START_REFUSED,
        state=VerdictState.FAILING,
        sentence=f"{name}: no agent runs: its start was refused at {when}: {text.rstrip('.')}{more}.",
        brief=text,
        evidence=tuple(
            Evidence(label="problem", text=f"{one.text} [{one.origin}]" if one.origin else one.text)
            for one in note.problems
            if len(note.problems) > 1 or one.origin
        ),
        next_step=step,
        since=moment(note.since),
    )


def _stopped(
    name: str, what: str, since: float | None, now: datetime, evidence: tuple[tuple[str, str], ...]
) -> VerdictAnswer:
    when = f", since {_clock(since, now)}" if since is not None else ""
    return VerdictAnswer(
        namespace="",
        name=name,
        rule=Rule.AGENT_STOPPED,
        state=VerdictState.FAILING,
        sentence=f"{name}: {what}{when}.",
        brief=what,
        evidence=tuple(Evidence(label=label, text=text) for label, text in evidence),
        next_step="start it (systemctl start kubelet, or glasslet up): running containers are adopted; "
        "if it died, see the log of its service",
        since=moment(since) if since is not None else None,
    )


def _clock(when: float, now: datetime) -> str:
    ago = duration(now.timestamp() - when)
    return f"{moment(when):%Y-%m-%d %H:%M:%S} UTC ({ago} ago)"
