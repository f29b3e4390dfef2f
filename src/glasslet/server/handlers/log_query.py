"""Queries of the node's logs: what a client asks for, what is refused, and what journalctl is called with. Pure.

    /logs/?query=kubelet&query=containerd&sinceTime=2026-01-01T00:00:00Z&tailLines=100&pattern=error
    /logs/?query=/syslog                                                  a file below /var/log

Source of the rules: http.md, `/logs/` with `query`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct
from multidict import MultiMapping

MOST_SERVICES = 4
MOST_CHARACTERS = 256
"""Of a service's name."""
MOST_PATTERN = 1024
"""Characters of a pattern. The Go kubelet has no such limit."""
MOST_LINES = 100_000

_NAMES = ("query", "sinceTime", "untilTime", "tailLines", "boot", "pattern")
_SERVICE = re.compile(r"[a-zA-Z\-_.:0-9@]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_NUMBER = re.compile(r"[+-]?\d{1,18}")
_UNIT = re.compile(r".+\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)")
_BROKEN = (
    "unterminated",
    "missing",
    "unbalanced",
    "nothing to repeat",
    "multiple repeat",
    "min repeat",
    "bad character",
)
"""How Python's errors begin for patterns that are broken in every dialect."""


class QueryRefused(Exception):
    """`status`: 400 for what cannot be read, 406 for what does not fit together. The text is for the client."""

    def __init__(self, status: int, problems: list[str]) -> None:
        super().__init__(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        self.status = status


class LogQuery(Struct, frozen=True, kw_only=True):
    """Services, or one file; the other fields are the options, None or "" where they are not given."""

    services: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    lines: int | None = None
    boot: int | None = None
    pattern: str = ""

    @property
    def options(self) -> bool:
        """Whether any is given."""
        return (self.since, self.until, self.lines, self.boot, self.pattern) != (None, None, None, None, "")


def read_query(parameters: MultiMapping[str]) -> LogQuery | None:
    """The query of a request; None for one that asks for a file by its path. Raises QueryRefused."""
    if not any(parameters.get(name) for name in _NAMES) and "query" not in parameters:
        return None
    problems: list[str] = []
    asked = [one for one in parameters.getall("query", []) if one.strip()]
    if "query" in parameters and not asked:
        given = ", ".join(f'"{one}"' for one in parameters.getall("query"))
        problems.append(f"query: Invalid value: []string{{{given}}}: may not be empty")
    query = LogQuery(
        services=tuple(one for one in asked if "/" not in one and "\\" not in one),
        files=tuple(one for one in asked if "/" in one or "\\" in one),
        since=_time(parameters, "sinceTime", problems),
        until=_time(parameters, "untilTime", problems),
        boot=_number(parameters, "boot", problems),
        lines=_number(parameters, "tailLines", problems),
        pattern=parameters.get("pattern", ""),
    )
    if problems:
        raise QueryRefused(400, problems)
    if found := list(_misfits(query)):
        raise QueryRefused(406, found)
    return query


def _time(parameters: MultiMapping[str], name: str, problems: list[str]) -> datetime | None:
    text = parameters.get(name, "")
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if _TIME.fullmatch(text) else _wrong()
    except (ValueError, OverflowError):
        problems.append(f'{name}: Invalid value: "{text}": invalid time format')
        return None


def _number(parameters: MultiMapping[str], name: str, problems: list[str]) -> int | None:
    text = parameters.get(name, "")
    if not text:
        return None
    if _NUMBER.fullmatch(text):
        return int(text)
    problems.append(f'{name}: Invalid value: "{text}": strconv.Atoi: parsing "{text}": invalid syntax')
    return None


def _wrong() -> datetime:
    raise ValueError


def _misfits(query: LogQuery) -> Iterator[str]:
    for service in query.services:
        if len(service) > MOST_CHARACTERS:
            yield f'query: Invalid value: "{service}": length must be less than {MOST_CHARACTERS + 1}'
        elif not _SERVICE.fullmatch(service):
            yield f'query: Invalid value: "{service}": input contains unsupported characters'
    if len(query.services) > MOST_SERVICES:
        yield f"query: Too many: {len(query.services)}: must have at most {MOST_SERVICES} items"
    files = ", ".join(f'"{file}"' for file in query.files)
    if not query.files and not query.services:
        yield "query: Required value: cannot be empty with options"
    elif query.files and query.services:
        yield f"query: Invalid value: {files}: cannot specify a file and service"
    elif len(query.files) > 1:
        yield f"query: Invalid value: {files}: cannot specify more than one file"
    elif query.files and query.options:
        yield f"query: Invalid value: {files}: cannot specify file with options"
    if query.since is not None and query.until is not None and query.since > query.until:
        yield f'untilTime: Invalid value: "{query.until.isoformat()}": must be after `sinceTime`'
    if query.boot is not None and query.boot > 0:
        yield f"boot: Invalid value: {query.boot}: must be less than 1"
    if query.lines is not None and not 0 <= query.lines <= MOST_LINES:
        yield f"tailLines: Invalid value: {query.lines}: must be between 0 and {MOST_LINES}, inclusive"
    if problem := _pattern_problem(query.pattern):
        yield f"pattern: Invalid value: {problem}"


def _pattern_problem(pattern: str) -> str:
    """ "" for a pattern that journalctl may have; it reads more than Python does, and says itself what it cannot."""
    if len(pattern) > MOST_PATTERN:
        return f"length must be less than {MOST_PATTERN + 1}"
    if "\0" in pattern:
        return "must not hold a null character"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error) if not isinstance(error, re.error) or error.msg.startswith(_BROKEN) else ""
    return ""


def unit_of(service: str, units: frozenset[str]) -> str:
    """The unit of a service among those that the journal has entries of; "" for none."""
    return next((name for name in (f"{service}.service", service) if name in units and _UNIT.fullmatch(name)), "")


def journal_command(query: LogQuery, units: tuple[str, ...]) -> tuple[str, ...]:
    """The call of journalctl for these units. Each value is part of one argument, so none can become an option. Times
    carry their zone: without one journalctl takes them for the node's own."""
    command = ["journalctl", "--utc", "--no-pager", "--output=short-precise"]
    if query.since is not None:
        command.append(f"--since={query.since:%Y-%m-%d %H:%M:%S} UTC")
    if query.until is not None:
        command.append(f"--until={query.until:%Y-%m-%d %H:%M:%S} UTC")
    if query.lines is not None:
        command.append(f"--lines={query.lines}")
    command += [f"--unit={unit}" for unit in units]
    if query.pattern:
        command.append(f"--grep={query.pattern}")
    if query.boot is not None:
        command.append(f"--boot={query.boot}")
    return tuple(command)


LIST_UNITS = ("journalctl", "--no-pager", "--field=_SYSTEMD_UNIT")
"""Prints every unit that the journal has entries of, one a line."""


def file_names(service: str) -> tuple[str, ...]:
    """Where a service that does not log to the journal may have its log, below /var/log."""
    return service, f"{service}.log", f"{service}/{service}.log"
