"""The requests of `logs` and `exec`, and the answer to `exec`."""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.wire import WireMessage


class LogRequest(WireMessage, frozen=True, kw_only=True):
    """Which lines of a container's log. `tail`: the last N lines, None: all; `container` "": the default one."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


class ExecRequest(WireMessage, frozen=True, kw_only=True):
    """A command for a container; with `tty`, standard error is part of standard output."""

    command: tuple[str, ...]
    container: str = ""
    stdin: bool = False
    tty: bool = False


class ExecAnswer(WireMessage, frozen=True, kw_only=True):
    """The runtime's streaming URL, good for one connection."""

    url: str
    container: str
