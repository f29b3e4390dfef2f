"""The requested part of a log."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class LogStream(StrEnum):
    """Which of a container's streams."""

    ALL = "All"
    STDOUT = "Stdout"
    STDERR = "Stderr"


class LogOptions(Struct, frozen=True, kw_only=True):
    """Named after PodLogOptions. The defaults: all of the current log file.

    `tail`: lines of the file from its end; `since`: aware, older lines are left out (callers turn sinceSeconds into a
    time); `limit_bytes` counts what is given out, time stamps included."""

    follow: bool = False
    tail: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    limit_bytes: int | None = None
    stream: LogStream = LogStream.ALL
