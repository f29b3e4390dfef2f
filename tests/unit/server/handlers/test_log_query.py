"""Queries of the node's logs: what is understood, what is refused, and what journalctl is called with."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime

import pytest
from multidict import MultiDict
from yarl import URL

from glasslet.server.handlers.log_query import (
    LogQuery,
    QueryRefused,
    file_names,
    journal_command,
    read_query,
    unit_of,
)


def asked(text: str) -> LogQuery | None:
    return read_query(MultiDict(URL(f"http://node/logs/?{text}").query))


def refusal(text: str) -> tuple[int, str]:
    with pytest.raises(QueryRefused) as refused:
        asked(text)
    return refused.value.status, str(refused.value)


@pytest.mark.parametrize("text", ["", "other=1", "tailLines=", "pattern="])
def test_without_a_parameter_of_queries_it_is_no_query(text: str) -> None:
    assert asked(text) is None


def test_names_with_a_slash_are_files_and_the_others_services() -> None:
    assert asked("query=kubelet&query=containerd") == LogQuery(services=("kubelet", "containerd"))
    assert asked("query=/syslog") == LogQuery(files=("/syslog",))
    assert asked("query=apt\\term.log") == LogQuery(files=("apt\\term.log",))


def test_options_are_read_and_times_have_a_zone() -> None:
    got = asked(
        "query=kubelet&sinceTime=2026-01-02T03:04:05%2B02:00&untilTime=2026-01-02T03:04:05Z&tailLines=5&boot=-1"
    )
    assert got == LogQuery(
        services=("kubelet",),
        since=datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC),
        until=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        lines=5,
        boot=-1,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # http.md: "400 unparsable time, boot or tailLines, or an empty query"
        ("query=%20%20", "may not be empty"),
        ("query=", "may not be empty"),
        ("query=kubelet&sinceTime=yesterday", 'sinceTime: Invalid value: "yesterday": invalid time format'),
        ("query=kubelet&untilTime=2026-13-01T00:00:00Z", "invalid time format"),
        ("query=kubelet&sinceTime=2026-01-01T00:00:00", "invalid time format"),
        ("query=kubelet&boot=last", 'strconv.Atoi: parsing "last": invalid syntax'),
        ("query=kubelet&tailLines=1e3", "invalid syntax"),
        ("query=kubelet&tailLines=" + "9" * 5000, "invalid syntax"),
    ],
)
def test_what_cannot_be_read_is_400(text: str, words: str) -> None:
    status, message = refusal(text)
    assert status == 400
    assert words in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # http.md: "406 ... options without query, services and files together, more than one file, a file with options,
        # more than 4 services, a service over 256 characters or outside [a-zA-Z-_.:0-9@], untilTime before sinceTime,
        # bad pattern"
        ("tailLines=5", "query: Required value: cannot be empty with options"),
        ("query=kubelet&query=/syslog", "cannot specify a file and service"),
        ("query=/syslog&query=/messages", "cannot specify more than one file"),
        ("query=/syslog&tailLines=5", "cannot specify file with options"),
        ("&".join(f"query=s{number}" for number in range(5)), "query: Too many: 5: must have at most 4 items"),
        ("query=" + "a" * 257, "length must be less than"),
        ("query=kubelet;reboot", "input contains unsupported characters"),
        ("query=--output=export%0a", "input contains unsupported characters"),
        ("query=kubelet&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z", "must be after `sinceTime`"),
        ("query=kubelet&boot=1", "boot: Invalid value: 1: must be less than 1"),
        ("query=kubelet&tailLines=-1", "must be between 0 and 100000, inclusive"),
        ("query=kubelet&tailLines=100001", "must be between 0 and 100000, inclusive"),
        ("query=kubelet&pattern=(", "pattern: Invalid value: missing )"),
        ("query=kubelet&pattern=*", "nothing to repeat"),
        ("query=kubelet&pattern=%00", "null character"),
        ("query=kubelet&pattern=" + "a" * 1025, "length must be less than 1025"),
    ],
)
def test_what_does_not_fit_together_is_406(text: str, words: str) -> None:
    status, message = refusal(text)
    assert status == 406
    assert words in message


@pytest.mark.parametrize("pattern", ["error|warn", r"\p{L}%2B", "[[:digit:]]", "(?i)oom", r"\d{3}"])
def test_patterns_of_other_dialects_than_pythons_are_journalctls_to_judge(pattern: str) -> None:
    assert asked(f"query=kubelet&pattern={pattern}") is not None


def test_a_service_is_a_unit_with_its_ending_or_without() -> None:
    units = frozenset({"kubelet.service", "dbus.socket", "init.scope"})
    assert unit_of("kubelet", units) == "kubelet.service"
    assert unit_of("kubelet.service", units) == "kubelet.service"
    assert unit_of("dbus.socket", units) == "dbus.socket"
    assert unit_of("let", units) == ""


def full() -> LogQuery:
    time = datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)
    return LogQuery(services=("kubelet",), since=time, until=time, lines=5, boot=0, pattern="-x")


def test_every_value_of_the_call_is_part_of_one_argument() -> None:
    assert journal_command(full(), ("kubelet.service", "containerd.service"))[1:] == (
        *("--utc", "--no-pager", "--output=short-precise"),
        *("--since=2026-01-02 01:04:05 UTC", "--until=2026-01-02 01:04:05 UTC", "--lines=5"),
        *("--unit=kubelet.service", "--unit=containerd.service", "--grep=-x", "--boot=0"),
    )


@pytest.mark.skipif(shutil.which("journalctl") is None, reason="JOURNALCTL'S OPTIONS NOT TRIED: it is not installed")
def test_journalctl_understands_the_call() -> None:
    done = subprocess.run(journal_command(full(), ("kubelet.service",)), check=False, capture_output=True, text=True)
    assert "option" not in done.stderr
    assert "parse" not in done.stderr.lower()


def test_files_of_a_service_are_looked_for_in_three_places() -> None:
    assert file_names("nginx") == ("nginx", "nginx.log", "nginx/nginx.log")
