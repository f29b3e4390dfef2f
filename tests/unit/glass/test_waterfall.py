"""From a record to a waterfall in which every millisecond has a name."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from glasslet.answers.trace import TraceAnswer
from glasslet.glass.trace.waterfall import _overlap, _union, waterfall
from glasslet.record.events import ChangeObserved, Decided, Event
from glasslet.record.history import AgentGap
from glasslet.record.milestones import CREATED
from tests.builders.record import BASE, START, accepted, created, ready, record, standing, station, waited, waiting

START_OF_A_POD = (
    station("seen", 0.000, 0.000),
    station("admitted", 0.002, 0.002),
    station("volumes", 0.003, 0.009, detail="2 projected"),
    station("sandbox", 0.010, 0.138),
    waited("cri_call", "RunPodSandbox", 0.011, 0.137, "sandbox"),
    station("image", 0.138, 0.139, "main"),
    station("created", 0.140, 0.170, "main"),
    waited("cri_call", "CreateContainer", 0.141, 0.170, "created", "main"),
    station("started", 0.170, 0.200, "main"),
    waited("cri_call", "StartContainer", 0.170, 0.199, "started", "main"),
    station("created", 0.142, 0.180, "log"),
    waited("cri_call", "CreateContainer", 0.143, 0.179, "created", "log"),
    station("started", 0.180, 0.205, "log"),
    waited("cri_call", "StartContainer", 0.180, 0.204, "started", "log"),
    station("status", 0.206, 0.240, detail="2 patches"),
    waited("api_call", "PATCH status", 0.207, 0.239, "status"),
    ready(0.250),
)


def trace(*events: Event, now: float = 10.0, **live: Any) -> TraceAnswer:
    return waterfall(record(*events, **live), now=BASE + now)


def test_the_window_goes_from_seen_to_ready() -> None:
    answer = trace(*START_OF_A_POD)
    assert answer.milestone == "Ready"
    assert answer.total_ms == pytest.approx(250)


def test_shares_and_the_unnamed_rest_add_up_to_the_whole() -> None:
    answer = trace(*START_OF_A_POD)
    assert sum(share.ms for share in answer.shares) + answer.unnamed_ms == pytest.approx(answer.total_ms)


def test_each_party_gets_its_own_time() -> None:
    shares = {share.who: share.ms for share in trace(*START_OF_A_POD).shares}
    assert shares["runtime"] == pytest.approx(126 + 63, abs=0.1)
    assert shares["API"] == pytest.approx(32, abs=0.1)
    assert shares["glasslet"] == pytest.approx(6 + 1 + 1 + 1 + 1 + 1 + 1 + 1, abs=1)


def test_create_and_start_of_a_container_are_one_row() -> None:
    row = next(row for row in trace(*START_OF_A_POD).rows if row.container == "main" and row.name == "create, start")
    assert row.busy_ms == pytest.approx(60)
    assert [wait.on for wait in row.waits] == ["CreateContainer", "StartContainer"]


def test_containers_that_start_at_the_same_time_are_beside_each_other() -> None:
    rows = {row.container: row for row in trace(*START_OF_A_POD).rows if row.name == "create, start"}
    assert rows["main"].beside == ("log create, start",)
    assert rows["log"].beside == ("main create, start",)


def test_rows_come_in_the_order_in_which_they_began() -> None:
    names = [row.name for row in trace(*START_OF_A_POD).rows]
    assert names == [
        "seen, merged, admitted",
        "volumes",
        "sandbox",
        "image",
        "create, start",
        "create, start",
        "status accepted",
    ]


def test_time_between_stations_is_without_a_name() -> None:
    answer = trace(station("seen", 0, 0), station("volumes", 0.1, 0.2), ready(0.2))
    assert answer.unnamed_ms == pytest.approx(100)


def test_a_wait_outside_of_any_station_is_a_row_of_its_own() -> None:
    answer = trace(station("seen", 0, 0), waited("queue", "end of the pod of the same name", 0, 0.5), ready(0.6))
    (row,) = [row for row in answer.rows if row.name == "waiting: queue"]
    assert row.busy_ms == pytest.approx(500)
    assert row.detail == "end of the pod of the same name"


def test_what_is_still_going_on_ends_now() -> None:
    answer = trace(station("seen", 0, 0), stations=(standing("sandbox", 1.0),), now=5.0)
    assert answer.milestone == "now"
    assert answer.total_ms == pytest.approx(5000)
    row = answer.rows[-1]
    assert (row.name, row.open) == ("sandbox", True)
    assert row.busy_ms == pytest.approx(4000)


def test_a_live_wait_belongs_to_its_party() -> None:
    waits = (waiting("cri_call", "PullImage", 1.0),)
    answer = trace(station("seen", 0, 0), waits=waits, now=5.0)
    assert {share.who: share.ms for share in answer.shares} == {"runtime": pytest.approx(4000)}


def test_without_a_ready_the_start_ends_with_the_last_started_container() -> None:
    events = [event for event in START_OF_A_POD if not hasattr(event, "subject")]
    answer = trace(*events)
    assert answer.milestone == "Running"
    assert answer.total_ms == pytest.approx(205)


def test_a_container_on_its_way_keeps_the_window_open() -> None:
    events = [event for event in START_OF_A_POD if not hasattr(event, "subject")]
    answer = trace(*events, stations=(standing("image", 0.21, "third"),), now=3.0)
    assert answer.milestone == "now"


def test_a_failed_start_is_no_end() -> None:
    answer = trace(station("seen", 0, 0), station("started", 0.1, 0.2, "main", "failed", "no such file"), now=4.0)
    assert answer.milestone == "now"
    assert answer.rows[-1].outcome == "failed"


def test_a_pod_that_comes_back_under_the_same_uid_starts_anew() -> None:
    going = (station("gone", 5, 5.1), waited("volume", "remove directories", 5.2, 5.3))
    answer = trace(*START_OF_A_POD, *going, station("seen", 7, 7), ready(7.3))
    assert answer.total_ms == pytest.approx(300)


def test_events_after_the_start_are_listed_after_it() -> None:
    answer = trace(*START_OF_A_POD, station("stopping", 5, 6), station("gone", 6, 6.1))
    assert [row.text for row in answer.later if row.kind == "station"] == ["stopping", "gone"]
    assert answer.ended


def test_time_without_an_agent_has_a_share_of_its_own() -> None:
    gap = AgentGap(BASE + 1, BASE + 3)
    known = replace(record(station("seen", 0, 0), station("sandbox", 3, 4), ready(4)), gaps=(gap,))
    answer = waterfall(known, now=BASE + 9)
    assert {share.who: share.ms for share in answer.shares} == {
        "no agent": pytest.approx(2000),
        "glasslet": pytest.approx(1000),
    }
    assert len(answer.gaps) == 1


def test_an_empty_record_gives_an_empty_trace() -> None:
    answer = trace()
    assert (answer.rows, answer.total_ms, answer.unnamed_ms) == ((), 0, 0)


def test_names_of_a_newer_version_are_shown_as_they_are() -> None:
    answer = trace(station("seen", 0, 0), station("checkpointed", 0, 0.1), waited("moon", "full", 0, 0.1), ready(0.1))
    assert {row.name for row in answer.rows} >= {"checkpointed", "waiting: moon"}


@pytest.mark.parametrize("seed", range(40))
def test_any_record_is_accounted_for_to_the_millisecond(seed: int) -> None:
    dice = random.Random(seed)
    names = ("volumes", "sandbox", "image", "created", "started", "status")
    kinds = ("cri_call", "api_call", "queue", "exit", "back_off", "volume")
    events: list[Event] = [station("seen", 0, 0)]
    for _ in range(30):
        start = dice.uniform(0, 2)
        end = start + dice.expovariate(5)
        where, container = dice.choice(names), dice.choice(("", "a", "b"))
        events.append(station(where, start, end, container))
        events.append(waited(dice.choice(kinds), "it", start, end, dice.choice(("", where)), container))
    answer = trace(*events, ready(dice.uniform(1, 3)))
    assert sum(share.ms for share in answer.shares) + answer.unnamed_ms == pytest.approx(answer.total_ms, abs=0.05)
    for row in answer.rows:
        assert row.busy_ms <= answer.total_ms + 0.01
        assert all(0 <= span.start_ms <= span.end_ms <= answer.total_ms + 0.01 for span in row.spans)


def test_start_of_a_new_agent_has_a_name_in_the_pods_trace() -> None:
    gap = AgentGap(BASE + 1, BASE + 3)
    known = replace(record(station("seen", 0, 0), station("woken", 3.5, 3.5), ready(4)), gaps=(gap,))
    answer = waterfall(known, now=BASE + 10)
    assert [row.busy_ms for row in answer.rows if row.name == "agent starts"] == [500.0]


def test_where_there_is_an_api_the_start_ends_when_it_has_accepted_ready() -> None:
    answer = trace(*START_OF_A_POD, station("status", 0.251, 0.280), accepted(0.279))
    assert answer.milestone == "Ready accepted at API"
    assert answer.total_ms == pytest.approx(279)
    assert [row.name for row in answer.rows][-2:] == ["Ready here", "Ready accepted at API"]


def test_the_creation_of_the_api_object_is_part_of_the_trace() -> None:
    answer = trace(created(-1), *START_OF_A_POD)
    assert answer.created == START - timedelta(seconds=1)
    assert answer.total_ms == pytest.approx(250)


def test_an_unreadable_creation_time_is_left_out() -> None:
    answer = trace(ChangeObserved(BASE, CREATED, "", "yesterday"), *START_OF_A_POD)
    assert answer.created is None


def test_the_agents_own_trace_lists_all_decisions() -> None:
    decided = Decided(BASE + 2, "image a.example/app:1 removed", "", (("why", "too old"),))
    own = replace(record(waited("cri_call", "ListImages", 1, 3), decided), pod=None)
    answer = waterfall(own, now=BASE + 10)
    assert answer.milestone == "now"
    assert [row.text for row in answer.later] == ["image a.example/app:1 removed (why=too old)"]


def test_of_a_pod_that_failed_for_days_the_newest_events_are_listed_and_the_others_counted() -> None:
    started = (station("seen", 0, 0), station("started", 1, 2, "main"))
    failures = [station("image", 10 + number, 10 + number, "main", "failed") for number in range(5000)]
    answer = trace(*started, *failures)
    assert (len(answer.later), answer.later_left_out) == (2000, 3000)
    assert answer.later[-1].at == START + timedelta(seconds=5009)


def test_many_details_of_a_row_are_counted_beyond_the_first() -> None:
    tries = [station("sandbox", number, number + 0.5, detail=f"attempt {number}") for number in range(100)]
    (row,) = [row for row in trace(*tries, now=1000).rows if row.name == "sandbox"]
    assert row.detail.endswith("attempt 7 and 92 more")


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), max_size=12)


@given(spans, spans)
def test_the_overlap_of_two_rows_is_the_time_that_both_cover(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    covers = [{second for start, length in row for second in range(start, start + length)} for row in (one, other)]
    unions = [_union([(float(start), float(start + length)) for start, length in row]) for row in (one, other)]
    assert _overlap(*unions) == len(covers[0] & covers[1])
