"""The texts of the commands: tables, waterfalls, verdicts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.answers.pods import PodRow
from glasslet.answers.states import Rule, VerdictState
from glasslet.answers.trace import Share, Span, TraceAnswer, TraceRow, TraceWait
from glasslet.answers.why import Evidence, VerdictAnswer
from glasslet.cli.failure import Failure
from glasslet.cli.logs_command import since
from glasslet.cli.output import fitted, printable, styled, table
from glasslet.cli.ps_command import changes, pods_table
from glasslet.cli.trace_command import drawn, painted
from glasslet.cli.why_command import verdict_text

NOW = datetime(2026, 1, 1, 10, 1, tzinfo=UTC)
WEB = PodRow(
    namespace="default",
    name="web",
    uid="1",
    phase="Running",
    ready=2,
    containers=2,
    since=NOW - timedelta(seconds=41),
    is_ready=True,
)
FLAKY = PodRow(
    namespace="default",
    name="flaky",
    uid="2",
    phase="Running",
    containers=1,
    restarts=4,
    now="back-off after exit 1 (80 s), next start in 31 s",
    since=NOW - timedelta(seconds=49),
)


def trace(**fields: object) -> TraceAnswer:
    rows = (
        TraceRow(
            name="sandbox",
            busy_ms=128,
            spans=(Span(start_ms=10, end_ms=138),),
            waits=(TraceWait(kind="cri_call", on="RunPodSandbox", start_ms=11, end_ms=137),),
        ),
        TraceRow(name="create, start", container="main", busy_ms=60, spans=(Span(start_ms=140, end_ms=200),)),
    )
    defaults: dict[str, Any] = {
        "namespace": "default",
        "name": "web",
        "uid": "6f1c2d3e4f",
        "start": NOW,
        "end": NOW + timedelta(milliseconds=200),
        "milestone": "Ready",
        "total_ms": 200.0,
        "unnamed_ms": 0.4,
        "rows": rows,
        "shares": (Share(who="runtime", ms=186.0), Share(who="glasslet", ms=13.6)),
    }
    return TraceAnswer(**{**defaults, **fields})


def test_a_table_of_pods_is_aligned_and_complete() -> None:
    lines = pods_table([WEB, FLAKY], NOW).splitlines()
    assert lines[0].split() == ["POD", "PHASE", "READY", "RESTARTS", "NOW", "SINCE"]
    assert lines[1].split() == ["default/web", "Running", "2/2", "0", "-", "41", "s"]
    assert lines[2].startswith(
        "default/flaky  Running  0/1    4         back-off after exit 1 (80 s), next start in 31 s"
    )
    assert lines[1].index("Running") == lines[2].index("Running")


def test_without_pods_there_is_one_line() -> None:
    assert pods_table([], NOW) == "no pods"


def test_a_change_is_one_line_and_a_countdown_is_none() -> None:
    before: dict[str, tuple[str, ...]] = {}
    assert len(changes(before, [WEB, FLAKY], NOW)) == 2
    later = replace(FLAKY, now=FLAKY.now.replace("31", "30"))
    assert changes(before, [WEB, later], NOW) == []
    assert changes(before, [WEB], NOW)[0].endswith("default/flaky  removed")


def test_a_waterfall_names_total_parties_and_the_rest() -> None:
    text = drawn(trace(), columns=120)
    assert "Ready" in text.splitlines()[0]
    assert "(200 ms: runtime 186 ms, glasslet 14 ms)" in text.splitlines()[0]
    assert "128 ms  RunPodSandbox 126 ms" in text
    assert "all but 0.4 ms of" in text


def test_a_waterfall_with_a_hole_does_not_claim_to_be_complete() -> None:
    assert "50 ms of 200 ms have no name (25%)" in drawn(trace(unnamed_ms=50.0), columns=120)


def test_an_empty_record_is_one_line() -> None:
    assert "nothing was recorded" in drawn(trace(rows=()), columns=80)


@pytest.mark.parametrize(
    ("spans", "strokes"),
    [
        ([(0, 100)], "██████████"),
        ([(50, 100)], "     █████"),
        ([(0, 5)], "▌"),
        ([(99.9, 100)], "         ▏"),
        ([(0, 10), (90, 100)], "█        █"),
        ([(30, 30)], "   ▏"),
        ([], ""),
    ],
)
def test_spans_are_painted_to_scale_and_the_shortest_is_visible(spans: list[tuple[float, float]], strokes: str) -> None:
    given = tuple(Span(start_ms=start, end_ms=end) for start, end in spans)
    assert painted(given, total_ms=100, cells=10) == strokes


def test_a_trace_of_no_length_is_painted() -> None:
    assert painted((Span(start_ms=0, end_ms=0),), total_ms=0, cells=10) == "▏"


def test_a_verdict_puts_the_sentence_first_and_aligns_its_evidence() -> None:
    answer = VerdictAnswer(
        namespace="default",
        name="job-9",
        rule=Rule.MISSING_OBJECT,
        state=VerdictState.WAITING,
        sentence="default/job-9 waits for Secret default/db-credentials, which does not exist.",
        evidence=(Evidence(label="needed by", text="container main"), Evidence(label="said", text="one\ntwo")),
        rest="admitted",
        next_step="create the Secret",
    )
    assert verdict_text(answer).splitlines() == [
        "default/job-9 waits for Secret default/db-credentials, which does not exist.",
        "  needed by  container main",
        "  said       one",
        "             two",
        "  the rest   admitted: nothing else is known to be missing",
        "  next step  create the Secret",
    ]


def test_control_characters_of_pods_never_reach_the_terminal() -> None:
    assert "\x1b" not in printable("\x1b[31mred\x07")
    assert "\x1b" not in table(("A",), [["\x1b]0;title\x07"]])


@pytest.mark.parametrize(("text", "sent"), [("5m", "300.000"), ("2h30m", "9000.000"), ("90", "90"), ("", "")])
def test_a_time_span_becomes_seconds(text: str, sent: str) -> None:
    assert since(text) == sent


@pytest.mark.parametrize("text", ["yesterday", "5x", "m5", "5m x"])
def test_a_wrong_time_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(Failure, match="allowed: 5m"):
        since(text)


def test_on_a_narrow_terminal_only_what_a_pod_does_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasslet.cli.output.on_terminal", lambda: True)
    monkeypatch.setattr("glasslet.cli.output.width", lambda: 70)
    headers = ("POD", "NOW", "SINCE")
    (row,) = fitted([["default/flaky", "n" * 100, "49 s"]], headers, columns=[1])
    assert (row[0], row[2]) == ("default/flaky", "49 s")
    assert len("  ".join(row)) == 70 - 1


def test_the_creation_of_the_api_object_is_a_range_because_it_has_whole_seconds() -> None:
    lines = drawn(trace(created=NOW - timedelta(seconds=1.25)), columns=120).splitlines()
    assert "in whole seconds" in lines[1]
    assert lines[1].endswith("250 ms to 1.25 s before it was seen here")


def test_a_creation_by_a_clock_that_is_ahead_is_no_negative_time() -> None:
    lines = drawn(trace(created=NOW + timedelta(seconds=3)), columns=120).splitlines()
    assert lines[1].endswith("by a clock that is ahead of this node's")


def test_a_wide_table_fits_the_terminal_and_its_widest_column_is_cut_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasslet.cli.output.on_terminal", lambda: True)
    monkeypatch.setattr("glasslet.cli.output.width", lambda: 80)
    headers = ("TASK", "POD", "WAITS FOR", "AT")
    rows = fitted([["t" * 20, "default/web", "w" * 90, "a" * 90]], headers, columns=range(4))
    assert rows[0][:2] == ["t" * 20, "default/web"]
    assert len("  ".join(rows[0])) == 80


def test_a_table_without_a_terminal_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasslet.cli.output.on_terminal", lambda: False)
    assert fitted([["x" * 500]], ("A",), columns=[0]) == [["x" * 500]]


@pytest.mark.parametrize(("value", "colours"), [("1", False), ("", True)])
def test_no_color_switches_colours_off(monkeypatch: pytest.MonkeyPatch, value: str, colours: bool) -> None:
    monkeypatch.setattr("glasslet.cli.output.on_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", value)
    assert ("\x1b" in styled("text", "red")) is colours
