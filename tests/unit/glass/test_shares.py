"""Each instant of a trace has one owner, and the ledger, the shares and the rows agree on it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from glasslet.answers.trace import TraceAnswer
from glasslet.glass.trace.waterfall import waterfall
from glasslet.record.events import Event
from glasslet.record.history import AgentGap
from tests.builders.record import BASE, ready, record, station, waited

A_START = (
    station("seen", 0.000, 0.002),
    station("sandbox", 0.010, 0.100),
    waited("cri_call", "RunPodSandbox", 0.020, 0.090, "sandbox"),
    waited("pause", "break 1 at sandbox", 0.010, 0.020, "sandbox"),
    station("status", 0.050, 0.120),
    waited("api_call", "PATCH status", 0.060, 0.110, "status"),
    waited("back_off", "container main", 0.150, 0.180),
    ready(0.250),
)


def trace(*events: Event, gaps: tuple[AgentGap, ...] = ()) -> TraceAnswer:
    return waterfall(replace(record(*events), gaps=gaps), now=BASE + 10)


def test_the_ledger_covers_the_window_without_a_gap_and_in_order() -> None:
    ledger = trace(*A_START).ledger
    assert ledger[0].start_ms == 0
    assert ledger[-1].end_ms == pytest.approx(250)
    assert all(one.end_ms == following.start_ms for one, following in pairwise(ledger))


def test_the_ledger_adds_up_to_the_shares() -> None:
    answer = trace(*A_START)
    for share in answer.shares:
        taken = sum(span.end_ms - span.start_ms for span in answer.ledger if span.who == share.who)
        assert taken == pytest.approx(share.ms, abs=0.01), share.who
    unnamed = sum(span.end_ms - span.start_ms for span in answer.ledger if not span.who)
    assert unnamed == pytest.approx(answer.unnamed_ms, abs=0.01)


def test_neighbours_in_the_ledger_have_different_owners() -> None:
    ledger = trace(*A_START).ledger
    assert all(one.who != following.who for one, following in pairwise(ledger))


def test_a_hold_is_a_party_of_its_own() -> None:
    answer = trace(*A_START)
    assert {share.who: share.ms for share in answer.shares}["held"] == pytest.approx(10, abs=0.1)


def test_the_runtime_comes_before_the_api_where_both_were_at_it() -> None:
    at_70 = next(span for span in trace(*A_START).ledger if span.start_ms <= 70 < span.end_ms)
    assert at_70.who == "runtime"


def test_each_wait_of_a_row_names_its_party() -> None:
    row = next(row for row in trace(*A_START).rows if row.name == "sandbox")
    assert {wait.on: wait.who for wait in row.waits} == {"RunPodSandbox": "runtime", "break 1 at sandbox": "held"}


def test_a_time_without_an_agent_is_in_the_ledger() -> None:
    answer = trace(*A_START, gaps=(AgentGap(BASE + 0.190, BASE + 0.240),))
    assert [span.who for span in answer.ledger if span.start_ms == pytest.approx(190)] == ["no agent"]
