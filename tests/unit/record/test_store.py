"""The record in memory."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from contextlib import suppress
from datetime import timedelta

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.record.events import ChangeObserved, Decided, FindingMade, StationSpan, Waited
from glasslet.record.recorder import current_scope, working_for
from glasslet.record.stations import Station, WaitKind
from glasslet.record.store import Record, RecordBounds
from tests.builders.record import BASE, START, WEB, ManualClock, kept, kept_event


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def record(clock: ManualClock) -> Record:
    return Record(clock=clock)


def other(number: int) -> PodRef:
    return PodRef("default", f"pod-{number}", PodUID(f"uid-{number}"))


def test_a_wait_is_live_while_it_lasts_and_an_event_afterwards(record: Record, clock: ManualClock) -> None:
    with working_for(WEB, container="main"), record.wait(WaitKind.CRI_CALL, on="StartContainer"):
        clock.advance(0.5)
        (live,) = record.live_waits()
        assert (live.pod, live.kind, live.on, live.container) == (WEB, "cri_call", "StartContainer", "main")
        assert live.since == pytest.approx(BASE)
    assert record.live_waits() == []
    (event,) = kept(record).events
    assert event == Waited(BASE, BASE + 0.5, "cri_call", "StartContainer", "main")


def test_what_is_live_of_all_pods_is_what_is_live_of_each(record: Record) -> None:
    with (
        working_for(other(1)),
        record.station(Station.SANDBOX),
        record.wait(WaitKind.CRI_CALL, on="RunPodSandbox"),
        working_for(other(2)),
        record.wait(WaitKind.QUEUE, on="image queue"),
    ):
        standings = record.standings()
        assert standings == {pod: record.standing_of(pod) for pod in (other(1), other(2))}
    record_of = record.of(other(1))
    assert record_of == record.history_of(record.standing_of(other(1)))


def test_readers_see_when_a_wait_ends(record: Record) -> None:
    with working_for(WEB), record.wait(WaitKind.BACK_OFF, on="next start", until=START + timedelta(seconds=10)):
        assert record.live_waits()[0].until == BASE + 10


def test_a_wait_at_a_station_knows_its_station(record: Record) -> None:
    with working_for(WEB), record.station(Station.SANDBOX), record.wait(WaitKind.CRI_CALL, on="RunPodSandbox"):
        assert kept(record).stations[0].station == "sandbox"
    wait, station = sorted(kept(record).events, key=lambda e: isinstance(e, StationSpan))
    assert isinstance(wait, Waited)
    assert isinstance(station, StationSpan)
    assert wait.station == "sandbox"
    assert station.outcome == "ok"


def test_leaving_a_station_restores_the_scope(record: Record) -> None:
    with working_for(WEB):
        before = current_scope()
        with record.station(Station.IMAGE, container="main"):
            assert current_scope().container == "main"
        assert current_scope() is before


def test_an_exception_ends_a_station_as_failed_with_its_words(record: Record) -> None:
    with pytest.raises(RuntimeError), working_for(WEB), record.station(Station.SANDBOX, detail="attempt 0"):
        raise RuntimeError("no network")
    event = kept_event(StationSpan, record)
    assert (event.outcome, event.detail) == ("failed", "attempt 0: no network")


def test_cancellation_is_not_failure(record: Record) -> None:
    with pytest.raises(asyncio.CancelledError), working_for(WEB), record.wait(WaitKind.EXIT, on="init"):
        raise asyncio.CancelledError
    assert kept_event(Waited, record).outcome == "cancelled"


async def test_tasks_started_for_a_pod_record_for_that_pod(record: Record) -> None:
    async def deep() -> None:
        record.observed("container main", "running", "exited 1")

    with working_for(WEB):
        async with asyncio.TaskGroup() as group:
            group.create_task(deep())
    assert kept(record).events == (ChangeObserved(BASE, "container main", "running", "exited 1"),)


async def test_a_live_wait_names_its_task(record: Record) -> None:
    async def waits() -> None:
        with working_for(WEB), record.wait(WaitKind.EXIT, on="init"):
            await asyncio.sleep(0)
            assert record.live_waits()[0].task == "pod default/web"

    async with asyncio.TaskGroup() as group:
        group.create_task(waits(), name="pod default/web")


def test_decisions_keep_their_inputs_as_text(record: Record) -> None:
    with working_for(WEB):
        record.decided("plan", actions=["CreateSandbox"], attempt=1)
    assert kept(record).events == (Decided(BASE, "plan", "", (("actions", "['CreateSandbox']"), ("attempt", "1"))),)


def test_long_texts_are_cut(record: Record) -> None:
    with working_for(WEB):
        record.decided("x" * 5000, why="y" * 5000)
        record.observed("s", "", "z" * 5000)
    assert max(len(event.what) for event in kept(record).events if isinstance(event, Decided)) <= 400
    assert max(len(event.new) for event in kept(record).events if isinstance(event, ChangeObserved)) <= 400


def test_a_finding_is_made_and_logged_once(record: Record, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        record.finding("bad file", pod=WEB)
        record.finding("bad file", pod=WEB)
    assert kept(record).events == (FindingMade(BASE, "bad file"),)
    assert len(caplog.records) == 1


def test_work_without_a_pod_is_the_agents_own(record: Record) -> None:
    record.decided("listening")
    assert kept(record, None).pod is None
    assert record.pods() == []


def test_what_nothing_is_known_of_has_no_record(record: Record) -> None:
    assert record.of(WEB) is None


def test_a_full_record_keeps_its_beginning_and_its_newest_part(clock: ManualClock) -> None:
    record = Record(clock=clock, limits=RecordBounds(head=3, tail=4))
    with working_for(WEB):
        for number in range(10):
            record.decided(str(number))
    left = kept(record)
    assert [event.what for event in left.events if isinstance(event, Decided)] == ["0", "1", "2", "6", "7", "8", "9"]
    assert left.dropped == 3


def test_ended_pods_make_room_for_others(clock: ManualClock) -> None:
    record = Record(clock=clock, limits=RecordBounds(head=10, tail=10, total=40))
    for number in range(20):
        clock.advance(1)
        with working_for(other(number)):
            for _ in range(3):
                record.decided("step")
            if number < 15:
                record.passed(Station.GONE)
    assert record.of(other(0)) is None
    assert all(record.of(other(number)) is not None for number in range(15, 20))


@pytest.mark.parametrize(("head", "tail"), [(2, 50), (50, 2), (50, 50), (0, 50)])
def test_memory_is_bounded_even_when_no_pod_ended(clock: ManualClock, head: int, tail: int) -> None:
    record = Record(clock=clock, limits=RecordBounds(head=head, tail=tail, total=100))
    for _ in range(40):
        for number in range(10):
            clock.advance(1)
            with working_for(other(number)):
                record.decided("step")
    assert sum(len(kept(record, ref).events) for ref in record.pods()) <= 100
    assert record.of(other(9)) is not None


def test_probe_waits_do_not_push_the_rest_out(record: Record) -> None:
    with working_for(WEB):
        record.decided("first")
        for _ in range(1000):
            with record.wait(WaitKind.PROBE, on="readiness in 10 s"):
                pass
    left = kept(record)
    assert left.routine == 1000
    assert len(left.events) < 50


def test_a_slow_call_of_the_agent_itself_is_kept_among_routine_ones(record: Record, clock: ManualClock) -> None:
    for _ in range(100):
        with record.wait(WaitKind.CRI_CALL, on="Status"):
            pass
    with record.wait(WaitKind.CRI_CALL, on="Version"):
        clock.advance(2)
    assert kept_event(Waited, record, None).on == "Version"


def test_the_list_of_pods_ends_with_the_one_written_to_last(record: Record, clock: ManualClock) -> None:
    for number in (1, 2, 1):
        clock.advance(1)
        with working_for(other(number)):
            record.decided("step")
    assert record.pods() == [other(2), other(1)]


def test_a_scope_that_ends_in_another_context_does_no_harm(record: Record) -> None:
    station = record.station(Station.IMAGE)
    contextvars.copy_context().run(station.__enter__)
    station.__exit__(None, None, None)
    assert kept_event(StationSpan, record, None, 0).station == "image"


def test_unwritten_events_are_handed_out_once(record: Record, clock: ManualClock) -> None:
    with working_for(WEB):
        record.decided("one")
    (batch,) = record.take_unwritten()
    assert (batch.pod, [event.what for event in batch.events if isinstance(event, Decided)], batch.shed) == (
        WEB,
        ["one"],
        0,
    )
    assert record.take_unwritten() == []
    with working_for(WEB):
        record.decided("two")
    assert [event.what for event in record.take_unwritten()[0].events if isinstance(event, Decided)] == ["two"]


def test_events_shed_before_they_were_written_are_counted(clock: ManualClock) -> None:
    record = Record(clock=clock, limits=RecordBounds(head=2, tail=3))
    with working_for(WEB):
        for number in range(9):
            record.decided(str(number))
    (batch,) = record.take_unwritten()
    assert len(batch.events) + batch.shed == 9


def test_a_finding_that_no_longer_holds_may_be_made_again(record: Record, clock: ManualClock) -> None:
    record.withdrawn("never made", pod=WEB)
    found = record.of(WEB)
    assert found is None or found.events == ()
    record.finding("it hangs", pod=WEB)
    record.withdrawn("it hangs", pod=WEB)
    record.withdrawn("it hangs", pod=WEB)
    assert kept(record).findings() == ()
    assert len(kept(record).events) == 2
    clock.advance(1)
    record.finding("it hangs", pod=WEB)
    assert kept(record).findings() == ("it hangs",)


def test_slow_and_failing_calls_of_probes_push_nothing_out(record: Record, clock: ManualClock) -> None:
    with working_for(WEB, station=Station.PROBES):
        for _ in range(1000):
            with suppress(OSError), record.wait(WaitKind.CRI_CALL, on="ExecSync"):
                clock.advance(0.5)
                raise OSError
    left = kept(record)
    assert left.routine == 1000
    assert len(left.events) < 50


def test_times_of_pods_are_counted_by_kind_and_station_and_those_of_the_agent_are_not(
    record: Record, clock: ManualClock
) -> None:
    with record.wait(WaitKind.QUEUE, on="the agent's own"):
        clock.advance(1)
        for pod in (other(1), other(2)):
            with working_for(pod), record.station(Station.SANDBOX), record.wait(WaitKind.CRI_CALL, on="RunPodSandbox"):
                clock.advance(2)
        with working_for(WEB), record.wait(WaitKind.BACK_OFF, on="restart"), record.wait(WaitKind.BACK_OFF, on="it"):
            clock.advance(4)
            times = record.pod_times()
    assert times.open_waits == {"back_off": (2, 4.0)}
    assert times.waits == {"cri_call": (2, 4.0)}
    assert times.stations == {"sandbox": (2, 4.0)}
    assert record.pod_times().waits == {"cri_call": (2, 4.0), "back_off": (2, 8.0)}


def test_findings_are_counted_until_they_are_withdrawn(record: Record) -> None:
    record.finding("a manifest cannot be read")
    record.finding("a probe hangs", pod=WEB)
    assert (record.pod_times().agent_findings, record.pod_times().pods_with_findings) == (1, 1)
    record.withdrawn("a manifest cannot be read")
    record.withdrawn("a probe hangs", pod=WEB)
    assert (record.pod_times().agent_findings, record.pod_times().pods_with_findings) == (0, 0)
