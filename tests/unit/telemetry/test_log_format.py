"""Log lines: the text form of klog, the JSON form of the Go components."""

from __future__ import annotations

import json
import logging
import sys

from glasslet.telemetry.log_format import JSONFormatter, TextFormatter


def record(level: int = logging.INFO, message: str = "Pod started", **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord(
        {"name": "glasslet.pods", "levelno": level, "pathname": "/x/pods/worker.py", "filename": "worker.py"}
        | {"lineno": 61, "msg": message, "created": 1700000000.25}
    )
    vars(made).update(extra)
    return made


def failed() -> logging.LogRecord:
    try:
        raise OSError("disk full")
    except OSError:
        return record(logging.ERROR, exc_info=sys.exc_info())


def test_text_line_has_severity_place_event_and_fields() -> None:
    line = TextFormatter().format(record(logging.WARNING, seconds=1.5, container="main"))
    assert line.startswith("W")
    assert line.endswith('worker.py:61] "Pod started" seconds=1.5 container="main"')


def test_text_line_stays_one_line_whatever_a_field_holds() -> None:
    assert "\n" not in TextFormatter().format(record(error='two\nlines and a "quote"'))


def test_severities_are_klogs_letters() -> None:
    letters = {TextFormatter().format(record(level))[0] for level in (logging.DEBUG, logging.INFO)}
    assert letters == {"I"}
    assert TextFormatter().format(record(logging.ERROR))[0] == "E"


def test_context_fields_are_bound_and_the_calls_own_win() -> None:
    formatter = TextFormatter(lambda: {"pod": "default/web", "station": "image"})
    assert formatter.format(record(station="sandbox")).endswith('pod="default/web" station="sandbox"')


def test_text_traceback_is_indented_below_its_line() -> None:
    first, *rest = TextFormatter().format(failed()).split("\n")
    assert first.endswith('err="disk full"')
    assert rest
    assert all(line.startswith("\t") for line in rest)


def test_json_line_has_milliseconds_caller_event_and_fields() -> None:
    entry = json.loads(JSONFormatter(lambda: {"pod": "default/web"}).format(record(attempt=2)))
    assert entry == {
        "ts": 1700000000250.0,
        "caller": "worker.py:61",
        "msg": "Pod started",
        "v": 0,
        "pod": "default/web",
        "attempt": 2,
    }


def test_json_error_carries_the_error_and_no_verbosity() -> None:
    entry = json.loads(JSONFormatter().format(failed()))
    assert entry["err"] == "disk full"
    assert "v" not in entry


def test_json_shows_what_it_cannot_hold_as_text() -> None:
    assert json.loads(JSONFormatter().format(record(where={1})))["where"] == "{1}"
