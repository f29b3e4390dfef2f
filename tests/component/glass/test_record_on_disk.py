"""The record on disk: real files, real threads, restarts."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.record.archive import Archive, Archived
from glasslet.record.disk import Line, NoSpace, Retention, SegmentWriter, raw_lines, segments
from glasslet.record.events import Decided, Waited
from glasslet.record.history import PodRecord
from glasslet.record.keeper import Pace, RecordKeeper
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station, WaitKind
from glasslet.record.store import Record, RecordBounds
from tests.builders.pod import pod
from tests.builders.record import BASE, WEB, ManualClock
from tests.fakes.glass import FakeSeenPod, fake_agent

FAST = Pace(write=0.01, alive=0.01, retry=30.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "records"


@asynccontextmanager
async def agent(
    folder: Path, clock: ManualClock, *, limits: RecordBounds | None = None, retention: Retention | None = None
) -> AsyncIterator[tuple[Record, RecordKeeper]]:
    """One agent run that keeps its record in `folder`."""
    record = Record(clock=clock, limits=limits)
    keeper = RecordKeeper(record=record, folder=folder, pace=FAST, retention=retention)
    running = asyncio.create_task(keeper.run())
    await keeper.flush()
    try:
        yield record, keeper
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def step(record: Record, text: str, pod: PodRef = WEB) -> None:
    with working_for(pod):
        record.decided(text)


async def whole(keeper: RecordKeeper, pod: PodRef | str = WEB) -> PodRecord:
    """The pod's record, of memory and disk, which must exist."""
    record = await keeper.of(pod)
    assert record is not None
    return record


def archived(folder: Path) -> Archived:
    """The pod's record on disk, which must exist."""
    found = Archive(folder).read(WEB.uid)
    assert found is not None
    return found


def steps(record: PodRecord) -> list[str]:
    return [event.what for event in record.events if isinstance(event, Decided)]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_restarted_agent_knows_what_the_one_before_it_wrote(folder: Path) -> None:
    clock = ManualClock()
    async with agent(folder, clock) as (record, _):
        step(record, "before")
    clock.advance(60)
    async with agent(folder, clock) as (record, keeper):
        step(record, "after")
        assert steps(await whole(keeper)) == ["before", "after"]


async def test_an_event_in_memory_and_on_disk_is_listed_once(folder: Path) -> None:
    async with agent(folder, ManualClock()) as (record, keeper):
        step(record, "once")
        await keeper.flush()
        assert steps(await whole(keeper)) == ["once"]


async def test_records_of_pods_that_memory_gave_up_are_read_from_disk(folder: Path) -> None:
    clock = ManualClock()
    async with agent(folder, clock, limits=RecordBounds(head=2, tail=4, total=8)) as (record, keeper):
        with working_for(WEB):
            record.decided("started")
            record.passed(Station.GONE)
        await keeper.flush()
        for number in range(9):
            step(record, "other", PodRef("default", f"p{number}", PodUID(f"u{number}")))
        assert record.of(WEB) is None
        assert steps(await whole(keeper)) == ["started"]
        assert WEB in await keeper.pods()


async def test_the_middle_that_memory_shed_is_read_from_disk(folder: Path) -> None:
    async with agent(folder, ManualClock(), limits=RecordBounds(head=2, tail=4)) as (record, keeper):
        for number in range(5):
            step(record, str(number))
            await keeper.flush()
        for number in range(5, 9):
            step(record, str(number))
        assert steps(await whole(keeper)) == [str(number) for number in range(9)]


async def test_time_without_an_agent_is_a_gap(folder: Path) -> None:
    clock = ManualClock()
    async with agent(folder, clock, retention=Retention(max_age_seconds=1e12)) as (record, keeper):
        step(record, "before")
        await until(lambda: (folder / "alive").exists())
        await keeper.flush()
    for sign in (folder / "alive", *segments(folder)):
        os.utime(sign, (clock.now().timestamp(),) * 2)
    clock.advance(30)
    async with agent(folder, clock, retention=Retention(max_age_seconds=1e12)) as (record, keeper):
        step(record, "after")
        (gap,) = (await whole(keeper)).gaps
    assert gap.end - gap.start == pytest.approx(30, abs=0.01)


async def test_a_pod_of_the_new_run_has_no_gap_of_the_time_before_it(folder: Path) -> None:
    clock = ManualClock()
    async with agent(folder, clock):
        pass
    for sign in (folder / "alive", *segments(folder)):
        os.utime(sign, (clock.now().timestamp(),) * 2)
    clock.advance(30)
    async with agent(folder, clock) as (record, keeper):
        clock.advance(1)
        step(record, "new")
        assert (await whole(keeper)).gaps == ()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-7],
        lambda data: data + b"garbage\n\x00\xff\xfe",
        lambda data: data.replace(b"before", b"BEFORE"),
        lambda data: b"\n\n" + data + b'00000000 {"run":"x"}\n',
    ],
    ids=["cut off", "garbage at the end", "changed", "wrong checksum"],
)
async def test_damage_costs_only_the_damaged_lines_and_is_found(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    clock = ManualClock()
    async with agent(folder, clock) as (record, keeper):
        record.decided("agent")
        step(record, "kept", PodRef("default", "other", PodUID("other")))
        await keeper.flush()
        step(record, "before")
    (segment,) = segments(folder)
    segment.write_bytes(damage(segment.read_bytes()))
    async with agent(folder, clock) as (record, keeper):
        await until(lambda: bool(record.findings()))
        assert "damaged" in record.findings()[0]
        assert steps(await whole(keeper, "other")) == ["kept"]


async def test_things_that_are_no_segments_are_passed_over(folder: Path) -> None:
    folder.mkdir()
    (folder / "00000001.segment").mkdir()
    os.mkfifo(folder / "00000002.segment")
    (folder / "notes.txt").write_text("hello")
    async with agent(folder, ManualClock()) as (record, keeper):
        step(record, "kept")
        await keeper.flush()
        assert steps(await whole(keeper)) == ["kept"]


async def test_a_full_disk_is_one_finding_and_costs_history_only(folder: Path) -> None:
    clock = ManualClock()
    async with agent(folder, clock, retention=Retention(spare_bytes=1 << 62)) as (record, keeper):
        step(record, "in memory")
        await keeper.flush()
        step(record, "too")
        await keeper.flush()
        assert steps(await whole(keeper)) == ["in memory", "too"]
        assert len([text for text in record.findings() if "pauses" in text]) == 1


async def test_writing_goes_on_when_the_disk_has_room_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    full = True

    def check(self: SegmentWriter) -> None:
        if full:
            raise NoSpace("full")

    monkeypatch.setattr(SegmentWriter, "_check_space", check)
    async with agent(folder, clock) as (record, keeper):
        step(record, "lost on disk")
        await keeper.flush()
        full = False
        clock.advance(31)
        step(record, "written")
        await keeper.flush()
        (finding,) = record.findings()
        assert "goes on after" in finding
    assert steps(archived(folder).record()) == ["written"]


async def test_a_folder_that_cannot_be_made_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    async with agent(tmp_path / "file" / "records", ManualClock()) as (record, keeper):
        step(record, "kept")
        await keeper.flush()
        assert any("pauses" in text for text in record.findings())
        assert steps(await whole(keeper)) == ["kept"]


async def test_the_disk_is_bounded_and_the_oldest_goes_first(folder: Path) -> None:
    retention = Retention(max_bytes=60_000, segment_bytes=10_000)
    async with agent(folder, ManualClock(), retention=retention) as (record, keeper):
        for number in range(1000):
            step(record, f"step {number} {'x' * 200}")
            if number % 10 == 0:
                await keeper.flush()
        await keeper.flush()
    assert sum(path.stat().st_size for path in segments(folder)) <= 60_000
    kept = steps(archived(folder).record())
    assert kept[-1].startswith("step 999 ")
    assert not any(text.startswith("step 0 ") for text in kept)


async def test_segments_are_for_root_only(folder: Path) -> None:
    async with agent(folder, ManualClock()) as (record, keeper):
        step(record, "private")
        await keeper.flush()
    assert segments(folder)[0].stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


async def test_live_waits_are_part_of_the_joined_record(folder: Path) -> None:
    clock = ManualClock()
    async with agent(folder, clock) as (record, _):
        step(record, "before")
    async with agent(folder, clock) as (record, keeper):
        step(record, "after")
        with working_for(WEB), record.wait(WaitKind.EXIT, on="init"):
            assert [wait.on for wait in (await whole(keeper)).waits] == ["init"]


async def test_clients_that_read_much_leave_the_threads_of_others_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go_on = threading.Semaphore(0), threading.Event()

    def slow_pods(_archive: Archive) -> list[PodRef]:
        started.release()
        go_on.wait(10)
        return []

    monkeypatch.setattr(Archive, "pods", slow_pods)
    async with agent(folder, ManualClock()) as (record, keeper):
        reading = [asyncio.create_task(keeper.pods()) for _ in range(100)]
        await asyncio.to_thread(started.acquire)
        record.finding("written meanwhile")
        async with asyncio.timeout(5):
            await keeper.flush()
            assert await asyncio.to_thread(lambda: "answered") == "answered"
        go_on.set()
        await asyncio.gather(*reading)
    assert any("written meanwhile" in line.decode() for line in raw_lines(folder))


async def test_a_finding_of_an_agent_that_died_does_not_hold_for_the_next_one(folder: Path) -> None:
    clock = ManualClock()
    async with agent(folder, clock) as (record, keeper):
        record.finding("no progress", pod=WEB)
        await keeper.flush()
        found = await keeper.of(WEB)
        assert found is not None
        assert found.findings() == ("no progress",)
    clock.advance(10)
    async with agent(folder, clock) as (record, keeper):
        with working_for(WEB):
            record.passed(Station.SEEN)
        found = await keeper.of(WEB)
    assert found is not None
    assert len(found.events) == 2, "the finding is still part of its history"
    assert found.findings() == ()


async def test_the_trace_of_a_pod_that_failed_for_days_does_not_hold_up_the_event_loop(tmp_path: Path) -> None:
    failures = [
        Waited(BASE + number, BASE + number + 0.5, "back_off", "restart of main", "main") for number in range(50_000)
    ]
    folder = tmp_path / "glasslet" / "records"
    writer = SegmentWriter(folder=folder, run="earlier")
    writer.open(BASE)
    pod_of_line = (WEB.namespace, WEB.name, WEB.uid)
    for at in range(0, len(failures), 1000):
        writer.write([Line(run="earlier", pod=pod_of_line, events=tuple(failures[at : at + 1000]))])
    writer.close()
    gc.freeze()  # as the agent does: what the test program has loaded is not collected again
    async with fake_agent(tmp_path) as running:
        running.source.seen.append(FakeSeenPod(pod=pod()))
        late = 0.0
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(tmp_path / "glasslet.sock"))) as client:
            for rest in ("", "/trace", "/why"):
                asking = asyncio.create_task(client.get(f"http://agent/glass/v1/pods/default/web{rest}"))
                while not asking.done():
                    before = time.monotonic()
                    await asyncio.sleep(0.01)
                    late = max(late, time.monotonic() - before - 0.01)
                async with await asking as answer:
                    assert answer.status == 200
    gc.unfreeze()
    assert late < 0.5, "seconds; it was 1.3 to 2.1 for each answer on the loop"
