"""Verbosity, destination, and the check that lines get out."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator

import pytest

from glasslet.telemetry.log_writer import LogWriter
from glasslet.telemetry.logging_setup import ActiveLogging, LoggingSettings, set_up_logging
from glasslet.telemetry.verbosity import TRACE, VerbosityFilter, threshold


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def logs(stream: io.StringIO) -> Iterator[ActiveLogging]:
    logging_ = set_up_logging(LoggingSettings(), stream=stream)
    yield logging_
    logging_.close()
    logging.captureWarnings(False)


class Stuck(io.StringIO):
    """A stream whose reader has stopped reading."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.reached = threading.Event()

    def write(self, text: str) -> int:
        self.reached.set()
        self.free.wait(60)
        return super().write(text)


def test_debug_lines_are_shown_from_verbosity_4() -> None:
    assert [threshold(v) for v in (0, 3, 4, 6)] == [logging.INFO, logging.INFO, logging.DEBUG, TRACE]


def test_vmodule_pattern_raises_one_file_only() -> None:
    shown = VerbosityFilter(0, {"worker*": 4})
    debug = {"levelno": logging.DEBUG, "name": "glasslet"}
    assert shown.filter(logging.makeLogRecord(debug | {"pathname": "/x/pods/worker.py"}))
    assert not shown.filter(logging.makeLogRecord(debug | {"pathname": "/x/pods/planner.py"}))


def test_vmodule_pattern_with_a_slash_sees_the_whole_path() -> None:
    shown = VerbosityFilter(0, {"*/pods/*": 4})
    debug = {"levelno": logging.DEBUG, "name": "glasslet"}
    assert shown.filter(logging.makeLogRecord(debug | {"pathname": "/x/pods/planner.py"}))
    assert not shown.filter(logging.makeLogRecord(debug | {"pathname": "/x/server/planner.py"}))


def test_libraries_stay_quiet_below_warnings() -> None:
    shown = VerbosityFilter(4, {})
    line = {"name": "asyncio", "pathname": "/x/events.py"}
    assert not shown.filter(logging.makeLogRecord(line | {"levelno": logging.INFO}))
    assert shown.filter(logging.makeLogRecord(line | {"levelno": logging.WARNING}))


def test_verbosity_of_a_running_agent_can_change(logs: ActiveLogging, stream: io.StringIO) -> None:
    log = logging.getLogger("glasslet.test")
    log.debug("before")
    logs.set_verbosity(4)
    log.debug("after")
    logs.close()
    assert "after" in stream.getvalue()
    assert "before" not in stream.getvalue()


def test_verbosity_out_of_range_is_refused_with_the_range(logs: ActiveLogging) -> None:
    with pytest.raises(ValueError, match="verbosity -1: allowed are 0 to 2147483647"):
        logs.set_verbosity(-1)


def test_unknown_format_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match=r"logging.format 'xml': allowed are text and json"):
        set_up_logging(LoggingSettings(format="xml"))


def test_lines_leave_in_order() -> None:
    stream = io.StringIO()
    writer = LogWriter(stream)
    for number in range(100):
        writer.write(str(number))
    writer.close()
    assert stream.getvalue().split() == [str(number) for number in range(100)]


def test_a_reader_who_stopped_costs_lines_not_the_agent() -> None:
    stream = Stuck()
    writer = LogWriter(stream, capacity=3)
    writer.write("first")
    assert stream.reached.wait(60)
    for number in range(10):
        writer.write(str(number))
    stream.free.set()
    writer.close()
    assert stream.getvalue().split("\n") == ["first", "0", "1", "2", "[7 log lines dropped: nobody reads them]", ""]


def test_log_check_fails_when_nothing_gets_out_for_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    # http.md: "log when flushing hangs 2 min", 500 "internal server error: logging blocked"
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream = Stuck()
    writer = LogWriter(stream)
    writer.write("line")
    assert stream.reached.wait(60)
    now += 119
    assert writer.problem() is None
    now += 2
    assert writer.problem() == "logging blocked"
    stream.free.set()
    writer.close()
    assert writer.problem() is None
