"""Calls as a tree of text, as a file for Perfetto, and as spans."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from glasslet.answers.calls import Call, CallsAnswer
from glasslet.answers.states import Milestone
from glasslet.answers.trace import Span, TraceAnswer, TraceRow, TraceWait
from glasslet.cli.calls.export import as_otlp, as_perfetto, lanes, send, trace_as_perfetto
from glasslet.cli.calls.tree import drawn
from glasslet.cli.failure import Failure

START = datetime(2026, 11, 22, 10, 1, 3, tzinfo=UTC)


def call(function: str, start: float, end: float | None, parent: int = -1, **more: Any) -> Call:
    """A call in milliseconds from the start."""
    return Call(parent=parent, function=function, file="glasslet/pods/a.py", line=7, start_ms=start, end_ms=end, **more)


def answer(*calls: Call, **more: Any) -> CallsAnswer:
    fields: dict[str, Any] = {"namespace": "shop", "name": "web", "start": START, "end": START + timedelta(seconds=1)}
    return CallsAnswer(calls=calls, **{**fields, **more})


SYNC = call("PodSync.settle", 0.0, 200.0, cpu_ms=12.0, waited_ms=180.0, waited_on="RunPodSandbox")
RUN = call("SandboxCreator.create", 1.0, 190.0, 0, arguments="attempt=0", result="<64 characters>")


def test_a_call_is_a_line_below_its_caller_with_place_and_times() -> None:
    lines = drawn(answer(SYNC, RUN), everything=False).splitlines()
    assert lines[0] == "shop/web  10:01:03.000 to 10:01:04.000 (1.00 s), 2 calls, CPU 12 ms"
    assert lines[1] == "  PodSync.settle()  pods/a.py:7  200 ms, CPU 12 ms, awaited 180 ms (RunPodSandbox)"
    assert lines[2] == "    SandboxCreator.create(attempt=0) -> <64 characters>  pods/a.py:7  189 ms"


def test_short_calls_are_summed_up_unless_all_are_asked_for() -> None:
    short = [call(f"small_{number}", 2.0 + number, 2.5 + number, 0, repeated=2) for number in range(3)]
    assert "    … 6 shorter calls, 1.5 ms" in drawn(answer(SYNC, *short), everything=False).splitlines()
    assert drawn(answer(SYNC, *short), everything=True).count("small_") == 3


def test_a_short_call_that_failed_is_shown() -> None:
    assert "ValueError" in drawn(answer(SYNC, call("check", 2.0, 2.1, 0, outcome="ValueError")), everything=False)


def test_a_call_that_goes_on_has_no_length() -> None:
    assert "not over" in drawn(answer(call("wait", 2.0, None), end=None), everything=False)


def test_a_part_of_the_start_that_is_no_function_has_no_parentheses() -> None:
    assert "  load modules  pods/a.py:7" in drawn(answer(call("load modules", 0.0, 5.0), name=""), everything=False)


def test_a_tree_as_deep_as_an_answer_can_be_is_drawn() -> None:
    deep = [call(f"f{number}", float(number), 20_000.0, number - 1) for number in range(5_000)]
    assert len(drawn(answer(*deep), everything=True).splitlines()) == 5_001


def test_nothing_traced_and_calls_left_out_are_said() -> None:
    assert "nothing ran for it in that time" in drawn(answer(), everything=False)
    assert "  7 more calls were not kept" in drawn(answer(SYNC, left_out=7), everything=False)


def test_perfetto_gets_complete_events_in_microseconds() -> None:
    events: Any = as_perfetto(answer(SYNC, RUN))["traceEvents"]
    sync, run, name = events
    assert (sync["ph"], sync["ts"], sync["dur"]) == ("X", START.timestamp() * 1e6, 200_000.0)
    assert run["ts"] - sync["ts"] == 1000.0
    assert run["args"]["arguments"] == "attempt=0"
    assert name["args"]["name"] == "glasslet: calls for shop/web"


def test_a_call_stands_on_its_callers_lane_and_calls_at_one_moment_on_others() -> None:
    beside = [call("a", 10.0, 50.0, 0), call("b", 20.0, 60.0, 0), call("c", 70.0, 80.0, 0)]
    assert lanes([SYNC, *beside]) == [0, 0, 1, 0]


def test_a_call_that_outlives_its_caller_leaves_its_lane() -> None:
    assert lanes([call("a", 0.0, 10.0), call("task", 5.0, 50.0, 0)]) == [0, 1]


def test_an_unfinished_call_ends_with_the_trace_for_other_tools() -> None:
    unfinished = answer(call("wait", 400.0, None))
    events: Any = as_perfetto(unfinished)["traceEvents"]
    event = events[0]
    assert event["dur"] == 600_000.0
    assert event["args"]["over"] == "no"


def test_spans_have_parents_times_and_outcomes() -> None:
    failed = call("check", 2.0, 3.0, 0, outcome="ValueError")
    sent: Any = as_otlp(answer(SYNC, failed))
    (resource,) = sent["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    first, second = scope["spans"]
    assert "parentSpanId" not in first
    assert second["parentSpanId"] == first["spanId"]
    assert int(second["endTimeUnixNano"]) - int(second["startTimeUnixNano"]) == 1_000_000
    assert second["status"] == {"code": 2, "message": "ValueError"}
    assert len(first["traceId"]) == 32
    names = {one["key"]: one["value"] for one in resource["resource"]["attributes"]}
    assert names["k8s.pod.name"] == {"stringValue": "web"}


def test_the_same_trace_sent_twice_is_the_same_spans() -> None:
    assert as_otlp(answer(SYNC)) == as_otlp(answer(SYNC))


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no/such"):
        send({}, str(tmp_path / "no" / "such"))


def test_a_collector_that_does_not_answer_is_named() -> None:
    with pytest.raises(Failure, match=r"127\.0\.0\.1:1/v1/traces did not take the spans"):
        send({}, "http://127.0.0.1:1/")


def test_a_trace_has_a_track_for_each_row_and_more_for_its_waits() -> None:
    waits = [TraceWait(kind="cri_call", on=on, start_ms=start, end_ms=end) for on, start, end in WAITS]
    row = TraceRow(name="sandbox", busy_ms=30, spans=(Span(start_ms=10, end_ms=40),), waits=tuple(waits))
    image = TraceRow(name="image", container="main", busy_ms=1, spans=(Span(start_ms=40, end_ms=41),))
    trace = TraceAnswer(
        namespace="shop",
        name="web",
        uid="1",
        start=START,
        end=START,
        milestone=Milestone.READY,
        total_ms=41,
        unnamed_ms=0,
        rows=(row, image),
    )
    events: Any = trace_as_perfetto(trace)["traceEvents"]
    tracks = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert tracks == {1: "sandbox", 2: "sandbox: waits", 3: "sandbox: waits", 4: "main  image"}
    drawn = [(one["name"], one["tid"], one["dur"]) for one in events if one["ph"] == "X"]
    assert drawn == [("sandbox", 1, 30_000), ("a", 2, 10_000), ("b", 3, 10_000), ("c", 2, 5_000), ("image", 4, 1_000)]
    assert events[-1]["ts"] == START.timestamp() * 1e6 + 40_000


WAITS = (("a", 10.0, 20.0), ("b", 15.0, 25.0), ("c", 30.0, 35.0))
