"""Every table fits a terminal of 80 columns; without a terminal nothing is cut."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from glasslet.answers.agent import WaitRow
from glasslet.answers.pods import PodDescription, PodRow, ProbeRow, TimelineRow
from glasslet.answers.states import EventKind, Milestone
from glasslet.answers.trace import Span, TraceAnswer, TraceRow
from glasslet.cli.describe_command import described, waits_table
from glasslet.cli.ps_command import pods_table
from glasslet.cli.trace_command import drawn

NOW = datetime(2026, 1, 1, 10, 1, tzinfo=UTC)
LONG = "a sentence that goes on and on, as those of a runtime do when they quote each other's errors in a chain"
POD = PodRow(
    namespace="kube-system", name="metrics-server-6d94bc8694-8xk2w", uid="1", phase="Pending", now=LONG, since=NOW
)
WAIT = WaitRow(
    kind="cri_call", on=LONG, since=NOW, pod=f"{POD.namespace}/{POD.name}", container="metrics-server", station="image"
)
PROBE = ProbeRow(at=NOW, container="metrics-server", kind="readiness", verdict="failure", note=LONG, connect_ms=1.0)
EVENT = TimelineRow(at=NOW, kind=EventKind.WAIT, text=LONG, container="metrics-server", took_ms=2000.0)
TRACE = TraceAnswer(
    namespace="kube-system",
    name="web",
    uid="1",
    start=NOW,
    end=NOW + timedelta(seconds=1),
    milestone=Milestone.READY,
    total_ms=1000,
    unnamed_ms=1,
    rows=(TraceRow(name="image", container="main", busy_ms=9, spans=(Span(start_ms=1, end_ms=10),), detail=LONG),),
)

TABLES: dict[str, Callable[[], str]] = {
    "ps": lambda: pods_table([POD], NOW),
    "ps of many nodes": lambda: pods_table([replace(POD, node="worker-1.example.com")], NOW),
    "waits": lambda: waits_table((WAIT,), NOW),
    "describe": lambda: described(PodDescription(pod=POD, probes=(PROBE,), timeline=(EVENT,)), NOW),
    "trace": lambda: "\n".join(drawn(TRACE, columns=80).splitlines()[1:]),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_fits_eighty_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    # The facts above the tables of `describe` are lines of text, which wrap.
    lines = [line for line in TABLES[name]().splitlines() if not line.startswith(("now ", "pod "))]
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("name", TABLES)
def test_without_a_terminal_nothing_is_cut(name: str) -> None:
    assert LONG[-20:] in TABLES[name]()
