"""What the tool asks for beyond a name: log options and commands to run."""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.wire import WireMessage


class LogRequest(WireMessage, frozen=True, kw_only=True):
    """Which lines of a container's log. `tail`: the last N lines, None for all; `container` "" means the only one."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


class ExecRequest(WireMessage, frozen=True, kw_only=True):
    """A command to run in a container; with `tty` standard error is part of standard output."""

    command: tuple[str, ...]
    container: str = ""
    stdin: bool = False
    tty: bool = False


class ExecAnswer(WireMessage, frozen=True, kw_only=True):
    """Where the session's streams are: the runtime's streaming URL, good for one connection."""

    url: str
    container: str
