"""One log line from one record, as text (the form of klog) or as JSON (the form of the Go components)."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

Context = Callable[[], Mapping[str, object]]
"""The fields of the object that the current task works for, such as `pod`."""

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_QUOTER = json.JSONEncoder(ensure_ascii=False)
"""One for all: `json.dumps` with an option makes a new one for each text."""
_SEVERITY = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


def no_context() -> Mapping[str, object]:
    """The context of an agent that binds nothing."""
    return {}


def fields_of(record: logging.LogRecord, context: Context) -> dict[str, object]:
    """The context's fields and those given with `extra=`; the call's own win."""
    fields: dict[str, object] = dict(context())
    fields.update((key, value) for key, value in vars(record).items() if key not in _KNOWN)
    return fields


class TextFormatter(logging.Formatter):
    """`I1121 13:05:52.123456    1234 worker.py:61] "Pod started" pod="default/web"`."""

    def __init__(self, context: Context = no_context) -> None:
        super().__init__()
        self._context = context
        self._pid = os.getpid()
        self._second = -1
        self._in_words = ""

    def format(self, record: logging.LogRecord) -> str:
        """One line, tracebacks indented below it."""
        severity = _SEVERITY.get(record.levelno, "I")
        message = quote(record.getMessage())
        line = f"{severity}{self._time(record.created)} {self._pid:7d} {record.filename}:{record.lineno}] {message}"
        for key, value in fields_of(record, self._context).items():
            line += f" {key}={text_value(value)}"
        if record.exc_info and record.exc_info[1] is not None:
            line += f" err={quote(str(record.exc_info[1]))}"
            line += "\n" + "\n".join("\t" + part for part in self.formatException(record.exc_info).split("\n"))
        return line

    def _time(self, created: float) -> str:
        """klog's header: local time to the microsecond. Many lines share a second, so its text is made once."""
        second, microsecond = divmod(int(created * 1_000_000), 1_000_000)
        if second != self._second:
            self._second, self._in_words = second, time.strftime("%m%d %H:%M:%S", time.localtime(second))
        return f"{self._in_words}.{microsecond:06d}"


class JSONFormatter(logging.Formatter):
    """`{"ts": <Unix milliseconds>, "caller": "worker.py:61", "msg": ..., "v": 0, <fields>}`; errors carry no `v`."""

    def __init__(self, context: Context = no_context) -> None:
        super().__init__()
        self._context = context

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON; what JSON cannot hold is shown as text."""
        entry: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            entry["v"] = 0 if record.levelno >= logging.INFO else 4
        for key, value in fields_of(record, self._context).items():
            entry.setdefault(key, value)
        if record.exc_info and record.exc_info[1] is not None:
            entry["err"] = str(record.exc_info[1])
            entry["stacktrace"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


def quote(text: str) -> str:
    """Double quotes around a text; line breaks and quotes inside are escaped, so that one record stays one line."""
    return _QUOTER.encode(text)


def text_value(value: object) -> str:
    """A field's value: numbers and booleans bare, everything else quoted."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case None:
            return "<nil>"
        case _:
            return quote(str(value))
