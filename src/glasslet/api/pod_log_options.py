"""core/v1 PodLogOptions: which part of a container's log a client requests."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class PodLogOptions(Struct, frozen=True):
    """The options as they arrive. `stream`: All, Stdout or Stderr; None means no limit."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_seconds: int | None = None
    since_time: datetime | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = "All"
