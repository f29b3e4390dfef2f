"""The termination message of a container: its termination log, or the end of its output."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Protocol

from glasslet.host.files.small_files import read_end

MAX_FILE_BYTES = 4096
MAX_LOG_LINES = 80
KEPT_LOGS = 8
"""Termination logs of one container: the API shows those of two instances. One is made for each start."""
MAX_LOG_BYTES = 2048

_FALLBACK = "FallbackToLogsOnError"
_NEVER_RAN = "ContainerCannotRun"
# Of a log only so much is read that MAX_LOG_LINES empty lines with their times fit beside MAX_LOG_BYTES of text.
_LOG_WINDOW = MAX_LOG_BYTES + MAX_LOG_LINES * 96
_TICKS = 2**32
# From the making of a termination log to the making of its container: much less than this.
_SAME_START_MS = 600_000


class EndedInstance(Protocol):
    """A container instance that ended (`runtime.model.ObservedContainer`)."""

    @property
    def attempt(self) -> int: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def exit_code(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def log_path(self) -> str: ...


def log_name(made_at: datetime) -> str:
    """Name of a termination log made now: its milliseconds, so that the log of an instance is found again after a
    restart by the time at which the instance was created."""
    return f"{_milliseconds(made_at):08x}"


def log_of(names: list[str], created_at: datetime) -> str | None:
    """Returns the log in a container's directory of the instance created then, None if there is none."""
    created = _milliseconds(created_at)
    ages = {(created - int(name, 16)) % _TICKS: name for name in names if _is_log_name(name)}
    nearest = min(ages, default=_TICKS)
    return ages[nearest] if nearest <= _SAME_START_MS else None


def read_last_words(log: str, policy: str, ended: EndedInstance) -> str:
    """Returns the message of a terminated state: the runtime's own words first, then the end of the file, or
    of the output if the policy says so and the container failed. `log` is "" if there is no file."""
    text = _file_end(log) if log else ""
    fall_back = policy == _FALLBACK and ended.exit_code != 0 and ended.reason != _NEVER_RAN
    if not text and fall_back and ended.log_path:
        text = log_end(ended.log_path)
    return ": ".join(part for part in (ended.message, text) if part)


def log_end(path: str) -> str:
    """The last lines of a container's log without times, at most MAX_LOG_LINES and MAX_LOG_BYTES."""
    try:
        data = read_end(path, _LOG_WINDOW)
    except OSError as error:
        return f"Error on reading termination message from logs: {error.strerror}"
    lines = data.split(b"\n")
    complete = lines[:-1] if not lines[-1] else lines
    text = b"".join(map(_content, complete[-MAX_LOG_LINES:]))
    return text[-MAX_LOG_BYTES:].decode("utf-8", "replace")


def _file_end(path: str) -> str:
    try:
        return read_end(path, MAX_FILE_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"Error on reading termination log {path}: {error.strerror}"


def _content(line: bytes) -> bytes:
    """The text of one log line: CRI's `time stream tag text`, or docker's JSON. A line cut in front is all text."""
    if line.startswith(b"{"):
        try:
            return str(json.loads(line)["log"]).encode()
        except (ValueError, KeyError, TypeError, RecursionError):
            return line + b"\n"
    parts = line.split(b" ", 3)
    if len(parts) == 4 and parts[1] in (b"stdout", b"stderr"):
        return parts[3] if parts[2].split(b":")[0] == b"P" else parts[3] + b"\n"
    return line + b"\n"


def _is_log_name(name: str) -> bool:
    return len(name) == 8 and all(char in "0123456789abcdef" for char in name)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000) % _TICKS
