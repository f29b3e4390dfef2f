"""Reading logs from real files, in real time where a log is followed."""

from __future__ import annotations

import asyncio
import gc
import os
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from glasslet.runtime.logs import LogOptions, UnknownLogFormat, read_logs, watch
from glasslet.runtime.logs.options import LogStream

STAMP = b"2026-01-01T10:00:00.5Z"


def line(text: str, tag: str = "F", stream: str = "stdout") -> bytes:
    return STAMP + f" {stream} {tag} {text}\n".encode()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "0.log"
    path.write_bytes(b"".join(line(f"line {n}") for n in range(10)))
    return path


def append(path: Path, *texts: str) -> None:
    with path.open("ab") as file:
        file.writelines(line(text) for text in texts)


async def read(path: Path, **options: Any) -> bytes:
    return b"".join([piece async for piece in read_logs(str(path), LogOptions(**options))])


class Follower:
    """Somebody who follows a log."""

    def __init__(self, path: Path, running: Callable[[], bool], **options: Any) -> None:
        self.seen = b""
        self._more = asyncio.Event()
        self._task = asyncio.create_task(self._follow(str(path), LogOptions(follow=True, **options), running))

    async def _follow(self, path: str, options: LogOptions, running: Callable[[], bool]) -> None:
        async for piece in read_logs(path, options, running=running):
            self.seen += piece
            self._more.set()
        self._more.set()

    async def until(self, text: str) -> None:
        async with asyncio.timeout(60):
            while not self.seen.endswith(text.encode() + b"\n"):
                self._more.clear()
                await self._more.wait()

    async def ended(self) -> bytes:
        async with asyncio.timeout(60):
            await self._task
        return self.seen

    async def give_up(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_the_whole_log_by_default(log: Path) -> None:
    assert await read(log) == b"".join(b"line %d\n" % n for n in range(10))


async def test_the_last_lines(log: Path) -> None:
    # behaviours.md §18: "`tail` counts lines from the end of the current file only."
    assert await read(log, tail=2) == b"line 8\nline 9\n"
    assert await read(log, tail=0) == b""
    assert await read(log, tail=99) == await read(log)


async def test_tail_counts_lines_of_the_file_before_other_options_select(log: Path) -> None:
    with log.open("ab") as file:
        file.write(line("to err", stream="stderr"))
    assert await read(log, tail=2, stream=LogStream.STDERR) == b"to err\n"


async def test_no_more_than_so_many_bytes(log: Path) -> None:
    assert await read(log, limit_bytes=9) == b"line 0\nli"
    assert await read(log, limit_bytes=0) == b""
    assert await read(log, limit_bytes=35, timestamps=True) == b"2026-01-01T10:00:00.500000000Z line "[:35]


async def test_only_newer_lines(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b"2026-01-01T10:00:01Z stdout F late\n")
    assert await read(log, since=datetime(2026, 1, 1, 10, 0, 1, tzinfo=UTC)) == b"late\n"


async def test_a_last_line_without_end_is_shown(log: Path) -> None:
    with log.open("ab") as file:
        file.write(line("cut off")[:-1])
    assert (await read(log)).endswith(b"line 9\ncut off")


async def test_a_link_is_followed_to_the_log(log: Path, tmp_path: Path) -> None:
    link = tmp_path / "web_default_main-abc.log"
    link.symlink_to(log)
    assert await read(link, tail=1) == b"line 9\n"


async def test_a_log_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await read(tmp_path / "1.log")


async def test_a_file_that_is_no_log_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text("something else\n")
    with pytest.raises(UnknownLogFormat):
        await read(path)


async def test_an_empty_log_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.touch()
    assert await read(path) == b""


async def test_following_shows_what_is_written_until_the_container_ends(log: Path) -> None:
    running = [True]
    follower = Follower(log, lambda: running[0], tail=1)
    await follower.until("line 9")
    append(log, "new 1")
    await follower.until("new 1")
    append(log, "new 2", "last words")
    running[0] = False
    assert await follower.ended() == b"line 9\nnew 1\nnew 2\nlast words\n"


async def test_following_a_container_that_does_not_run_ends_at_the_end_of_the_file(log: Path) -> None:
    # behaviours.md §18: "ends at the end of file when the container is not running"
    assert (await Follower(log, lambda: False, tail=3).ended()).count(b"\n") == 3


async def test_following_goes_on_over_rotation_without_losing_a_line(log: Path) -> None:
    # behaviours.md §18: "follow goes on over rotation"
    running = [True]
    follower = Follower(log, lambda: running[0], tail=1)
    await follower.until("line 9")
    written = ["line 9"]
    for turn in range(5):
        for n in range(20):
            append(log, text := f"{turn}/{n}")
            written.append(text)
        log.rename(log.with_name(f"0.log.{turn}"))
        log.touch()
        append(log, text := f"{turn}/first of the next")
        written.append(text)
        await follower.until(text)
    running[0] = False
    assert (await follower.ended()).decode().split("\n")[:-1] == written


async def test_a_log_emptied_in_place_is_read_from_its_new_begin(log: Path) -> None:
    follower = Follower(log, lambda: True, tail=1)
    await follower.until("line 9")
    log.write_bytes(line("again"))
    await follower.until("again")
    await follower.give_up()


async def test_a_line_that_is_half_written_is_shown_when_it_is_whole(log: Path) -> None:
    follower = Follower(log, lambda: True, tail=1)
    await follower.until("line 9")
    whole = line("in two halves")
    with log.open("ab", buffering=0) as file:
        file.write(whole[:30])
        await asyncio.sleep(0.1)
        assert follower.seen == b"line 9\n"
        file.write(whole[30:])
    await follower.until("in two halves")
    await follower.give_up()


async def test_following_works_where_the_node_has_no_inotify_left(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_open_watch", lambda directory: None)
    follower = Follower(log, lambda: True, tail=1)
    await follower.until("line 9")
    append(log, "polled")
    await follower.until("polled")
    await follower.give_up()


async def test_a_reader_that_gives_up_leaves_nothing_open(log: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        follower = Follower(log, lambda: True)
        await follower.until("line 9")
        await asyncio.sleep(0.02)
        await follower.give_up()
    async with asyncio.timeout(60):
        while len(os.listdir("/proc/self/fd")) > before:
            await asyncio.sleep(0.01)


async def test_a_large_log_is_never_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(line("x" * 100) * 1000)
    gc.collect()
    tracemalloc.start()
    try:
        total = 0
        async for piece in read_logs(str(path)):
            total += len(piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 200 * 1000 * 101
    assert peak < 6 * 1024 * 1024
