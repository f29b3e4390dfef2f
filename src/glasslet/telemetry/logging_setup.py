"""Sets Python's logging up for the agent: format, verbosity, destination. Called once, first thing in `main`."""

from __future__ import annotations

import atexit
import logging
import sys
from collections.abc import Mapping
from typing import TextIO

from msgspec import Struct, field

from glasslet.telemetry.log_format import Context, JSONFormatter, TextFormatter, no_context
from glasslet.telemetry.log_writer import LogWriter
from glasslet.telemetry.verbosity import MAX_VERBOSITY, VerbosityFilter


class LoggingSettings(Struct, frozen=True):
    """`format`: text or json (configuration field logging.format). `modules`: file pattern -> verbosity (--vmodule)."""

    format: str = "text"
    verbosity: int = 0
    modules: Mapping[str, int] = field(default_factory=dict)


class _WriterHandler(logging.Handler):
    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._writer.write(self.format(record))
        except Exception:
            self.handleError(record)


class ActiveLogging:
    """The logging that was set up: what the health check and `PUT /debug/flags/v` talk to."""

    def __init__(self, *, writer: LogWriter, handler: logging.Handler, verbosity: VerbosityFilter) -> None:
        self._writer = writer
        self._handler = handler
        self._verbosity = verbosity
        self._previous_level = logging.getLogger().level

    def problem(self) -> str | None:
        """The `log` health check: None while lines get out."""
        return self._writer.problem()

    @property
    def verbosity(self) -> int:
        """The general level, as given with `-v`."""
        return self._verbosity.verbosity

    def set_verbosity(self, verbosity: int) -> None:
        """Changes the general level of a running agent. Raises ValueError outside 0..2147483647."""
        if not 0 <= verbosity <= MAX_VERBOSITY:
            raise ValueError(f"verbosity {verbosity}: allowed are 0 to {MAX_VERBOSITY}")
        self._verbosity.set_verbosity(verbosity)
        logging.getLogger().setLevel(self._verbosity.lowest())

    def close(self) -> None:
        """Writes what is left and takes the handler off again."""
        atexit.unregister(self.close)
        root = logging.getLogger()
        root.removeHandler(self._handler)
        root.setLevel(self._previous_level)
        self._writer.close()


def set_up_logging(
    settings: LoggingSettings, *, context: Context = no_context, stream: TextIO | None = None
) -> ActiveLogging:
    """Sends all records to `stream` (standard error), with the fields that `context` gives for the current task.

    Raises ValueError on an unknown format."""
    formatter: logging.Formatter
    match settings.format:
        case "text":
            formatter = TextFormatter(context)
        case "json":
            formatter = JSONFormatter(context)
        case other:
            raise ValueError(f"logging.format {other!r}: allowed are text and json")
    writer = LogWriter(stream if stream is not None else sys.stderr)
    verbosity = VerbosityFilter(settings.verbosity, settings.modules)
    handler = _WriterHandler(writer)
    handler.setFormatter(formatter)
    handler.addFilter(verbosity)
    result = ActiveLogging(writer=writer, handler=handler, verbosity=verbosity)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(verbosity.lowest())
    logging.captureWarnings(True)
    atexit.register(result.close)
    return result
