"""Answers from the record on disk: also from a damaged one, of which every line may say anything."""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glasslet.answers.trace import TraceAnswer
from glasslet.answers.why import VerdictAnswer
from glasslet.answers.wire import ErrorAnswer, encode
from glasslet.glass.offline import answer_offline
from glasslet.record.disk import Line, packed
from glasslet.record.events import ChangeObserved, Decided, FindingMade, StationSpan, Waited

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POD = ("default", "web", "uid-1")
LINES = (
    Line(run="1", started=1000.0),
    Line(
        run="1",
        pod=POD,
        events=(
            StationSpan(1001.0, 1001.0, "seen"),
            Waited(1001.0, 1002.0, "cri_call", "StartContainer", "main", "started", "open"),
            Decided(1002.0, "plan", "main", (("action", "start"),)),
            ChangeObserved(1002.0, "condition Ready", "False", "True"),
            ChangeObserved(1001.0, "created at API", "", "2026-01-01T00:00:00+00:00"),
            FindingMade(1003.0, "no progress"),
        ),
    ),
    Line(run="2", started=2000.0, before=1500.0),
    Line(run="2", pod=(), events=(Decided(2001.0, "start"),)),
    Line(run="2", pod=POD, events=(StationSpan(2001.0, 2002.0, "gone"),)),
)
STRANGE = st.one_of(
    st.none(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.text(max_size=20)
)


def written(root: Path, lines: list[Any]) -> None:
    """The lines as a segment, each with a good checksum."""
    folder = root / "glasslet" / "records"
    folder.mkdir(parents=True, exist_ok=True)
    bodies = [json.dumps(line).encode() for line in lines]
    (folder / "00000001.segment").write_bytes(b"".join(b"%08x %s\n" % (zlib.crc32(body), body) for body in bodies))


def good() -> list[Any]:
    return [json.loads(packed(line)[9:]) for line in LINES]


@pytest.mark.parametrize("typed", ["web", "default/web", "we"])
def test_a_pod_is_found_by_its_name_or_the_beginning_of_it(tmp_path: Path, typed: str) -> None:
    written(tmp_path, good())
    trace = answer_offline(tmp_path, "trace", typed, NOW)
    assert isinstance(trace, TraceAnswer)
    assert (trace.namespace, trace.name, trace.ended) == ("default", "web", True)
    assert isinstance(answer_offline(tmp_path, "why", typed, NOW), VerdictAnswer)


def test_without_a_name_the_agent_itself_is_meant(tmp_path: Path) -> None:
    written(tmp_path, good())
    trace = answer_offline(tmp_path, "trace", "", NOW)
    assert isinstance(trace, TraceAnswer)
    assert trace.name == "agent"


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    written(tmp_path, good())
    answer = answer_offline(tmp_path, "why", "wen", NOW)
    assert isinstance(answer, ErrorAnswer)
    assert answer.nearest == ("default/web",)


@pytest.mark.parametrize("seconds", [1e308, -1e308, 1e18, 253402300800.0])
def test_a_time_that_no_calendar_has_is_shown_as_the_nearest(tmp_path: Path, seconds: float) -> None:
    lines = good()
    lines[-1]["events"][0][1:3] = [seconds, seconds]
    written(tmp_path, lines)
    assert isinstance(answer_offline(tmp_path, "trace", "web", NOW), TraceAnswer)


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_line_with_a_strange_value_anywhere_costs_no_answer(tmp_path: Path, data: st.DataObject) -> None:
    lines = good()
    at: Any = data.draw(st.sampled_from(lines))
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans()):
            at = at[key]
            continue
        at[key] = data.draw(STRANGE)
        break
    written(tmp_path, lines)
    for question in ("trace", "why"):
        for typed in ("web", ""):
            encode(answer_offline(tmp_path, question, typed, NOW))
