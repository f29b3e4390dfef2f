"""What is known of the node's shutdown: whether it runs, in memory, and its times, on disk."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from glasslet.api.times import parse_rfc3339, rfc3339_nano
from glasslet.host.files.small_files import read_regular, write_atomically

logger = logging.getLogger(__name__)

PROBLEM = "node is shutting down"
FILE = "graceful_node_shutdown_state"
"""In the root directory, in the Go kubelet's form."""
_LARGEST = 4096
_ZERO = "0001-01-01T00:00:00Z"


class ShutdownFlag:
    """Whether the node is shutting down. Only `NodeShutdown` sets it."""

    def __init__(self) -> None:
        self.raised = False

    def problem(self) -> str:
        """Why the node is not ready; "" while it stays up."""
        return PROBLEM if self.raised else ""


class ShutdownMetrics(Protocol):
    """`telemetry.metrics.node_shutdown`. Unix times."""

    def times(self, start: float, end: float) -> None: ...


class ShutdownTimes(Struct, frozen=True):
    """None: not yet."""

    start: datetime | None = None
    end: datetime | None = None


class ShutdownFile:
    """The times of the last shutdown. A file that cannot be read or written is logged."""

    def __init__(self, path: str, *, now: Callable[[], datetime], metrics: ShutdownMetrics | None) -> None:
        self._path = path
        self._now = now
        self._metrics = metrics
        self._start: datetime | None = None

    def read(self) -> None:
        """Shows the last shutdown in the metrics: one without an end was cut off."""
        try:
            times = decode(read_regular(self._path, most=_LARGEST))
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            logger.warning("times of the last shutdown unknown", extra={"path": self._path, "error": str(error)})
            return
        self._show(times)

    def begin(self) -> None:
        """The shutdown starts now."""
        self._start = self._now()
        self._write(ShutdownTimes(self._start))

    def end(self) -> None:
        """All pods have ended, or their time is over."""
        self._write(ShutdownTimes(self._start, self._now()))

    def _write(self, times: ShutdownTimes) -> None:
        self._show(times)
        try:
            write_atomically(self._path, encode(times), mode=0o644)
        except OSError as error:
            logger.warning("times of the shutdown not kept", extra={"path": self._path, "error": str(error)})

    def _show(self, times: ShutdownTimes) -> None:
        if self._metrics is not None:
            start, end = (0.0 if one is None else one.timestamp() for one in (times.start, times.end))
            self._metrics.times(start, end)


def encode(times: ShutdownTimes) -> bytes:
    """As the Go kubelet writes it."""
    start, end = (_ZERO if one is None else rfc3339_nano(one) for one in (times.start, times.end))
    return json.dumps({"startTime": start, "endTime": end}, separators=(",", ":")).encode()


def decode(data: bytes) -> ShutdownTimes:
    """Raises ValueError."""
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("want an object with startTime and endTime")
    return ShutdownTimes(*(_time(found.get(key)) for key in ("startTime", "endTime")))


def _time(text: object) -> datetime | None:
    if text is None or text == _ZERO:
        return None
    if not isinstance(text, str):
        raise ValueError(f"want a time, got {text!r}")
    return parse_rfc3339(text)
