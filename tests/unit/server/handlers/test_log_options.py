"""The query of `/containerLogs`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from multidict import MultiDict

from glasslet.api.pod_log_options import PodLogOptions
from glasslet.runtime.logs.container_logs import reading
from glasslet.server.handlers.log_options import InvalidOption, UndecodableOption, log_options


def options(*pairs: tuple[str, str]) -> PodLogOptions:
    return log_options(MultiDict(pairs))


def test_nothing_asked_is_everything() -> None:
    assert options() == PodLogOptions()


@pytest.mark.parametrize(("text", "value"), [("", True), ("true", True), ("1", True), ("False", False), ("0", False)])
def test_booleans_are_true_unless_they_say_no(text: str, value: bool) -> None:
    assert options(("follow", text)).follow is value


def test_times_may_have_fractions_and_offsets() -> None:
    asked = options(("sinceTime", "2026-01-01T02:00:00.123456789+02:00"))
    assert asked.since_time == datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)


def test_old_tail_counts_as_tail_lines_and_all_as_no_limit() -> None:
    assert options(("tail", "5")).tail_lines == 5
    assert options(("tail", "5"), ("tailLines", "9")).tail_lines == 5
    assert options(("tail", "all"), ("tailLines", "9")).tail_lines is None


def test_first_of_repeated_fields_counts() -> None:
    assert options(("tailLines", "1"), ("tailLines", "2")).tail_lines == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tailLines", "x"),
        ("tailLines", ""),
        ("tailLines", "1.5"),
        ("limitBytes", "9" * 30),
        ("sinceSeconds", "9223372036854775808"),
        ("sinceTime", "yesterday"),
        ("sinceTime", "2026-13-01T00:00:00Z"),
        ("sinceTime", "2026-01-01T00:00:00"),
        ("sinceTime", "0001-01-01T00:00:00+14:00"),
        ("sinceTime", "9999-12-31T23:59:59-14:00"),
    ],
)
def test_values_of_the_wrong_kind_cannot_be_decoded(name: str, text: str) -> None:
    with pytest.raises(UndecodableOption):
        options((name, text))


@pytest.mark.parametrize(
    "pairs",
    [
        [("tailLines", "-1")],
        [("limitBytes", "0")],
        [("sinceSeconds", "0")],
        [("sinceSeconds", "5"), ("sinceTime", "2026-01-01T00:00:00Z")],
        [("stream", "stdout")],
        [("stream", "Stdout"), ("tailLines", "1")],
    ],
)
def test_values_out_of_range_or_at_odds_are_invalid(pairs: list[tuple[str, str]]) -> None:
    # http.md: "422 ...: sinceSeconds with sinceTime, tailLines with a single stream, bad stream value or range"
    with pytest.raises(InvalidOption):
        options(*pairs)


def test_seconds_become_a_time_for_the_reader() -> None:
    now = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert reading(PodLogOptions(since_seconds=60), now).since == datetime(2026, 1, 1, tzinfo=UTC)
    assert reading(PodLogOptions(since_seconds=2**62), now).since is not None
