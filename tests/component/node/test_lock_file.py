"""The lock file of an agent."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from glasslet.host.lock_file import LockFile, LockNotTaken, contended
from glasslet.record.store import Record


async def test_the_second_agent_waits_until_the_first_one_ends(tmp_path: Path) -> None:
    # behaviours.md §31: "--lock-file is waited for at start"
    path, record = str(tmp_path / "lock"), Record()
    first, second = LockFile(path, recorder=record), LockFile(path, recorder=record)
    await first.take()
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600
    told: list[str] = []
    waiting = asyncio.create_task(second.take(told.append))
    await asyncio.sleep(0.05)
    assert told == [f"another process holds the lock file {path}"]
    assert [wait.on for wait in record.live_waits()] == [f"lock file {path}"]
    first.release()
    await asyncio.wait_for(waiting, 5)
    second.release()


async def test_a_lock_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(LockNotTaken, match=r'unable to acquire file lock on ".*none/lock": No such file or directory'):
        await LockFile(str(tmp_path / "none" / "lock"), recorder=Record()).take()


@pytest.mark.parametrize("ask", [Path.read_bytes, Path.unlink])
async def test_a_process_that_opens_or_removes_the_file_asks_for_it(tmp_path: Path, ask: object) -> None:
    # behaviours.md §31: "with --exit-on-lock-contention the kubelet ends when another process opens it"
    path = tmp_path / "lock"
    path.touch()
    watch = asyncio.create_task(contended(str(path)))
    await asyncio.sleep(0.05)
    assert not watch.done()
    ask(path)  # type: ignore[operator]
    await asyncio.wait_for(watch, 5)
