"""Long changes of a volume's group, in virtual time."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from glasslet.host.threads import HERE, HostThreads, ThreadPlace
from glasslet.record.stations import WaitKind
from glasslet.volumes import ownership
from glasslet.volumes.group_owner import GroupOwner
from tests.builders.podspec import pod_of
from tests.fakes.waits import WaitLog

pytestmark = [
    pytest.mark.looptime,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to any group"),
]
T = TypeVar("T")


class SlowThreads:
    """Every call takes this long after its work is done."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def run(
        self,
        call: Callable[[], T],
        *,
        on: str,
        key: str = "",
        kind: WaitKind = WaitKind.VOLUME,
        within: float = 30.0,
        place: ThreadPlace = HERE,
    ) -> T:
        answer = call()
        async with asyncio.timeout(within):
            await asyncio.sleep(self.seconds)
        return answer


async def given(path: Path, seconds: float, **context: object) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    owner = GroupOwner(threads=SlowThreads(seconds), emit=lambda pod, kind, reason, text: told.append((reason, text)))
    await owner.give(pod_of({}, securityContext={"fsGroup": 4711, **context}), "data", str(path))
    return told


async def test_a_long_change_is_told_after_half_a_minute_then_every_minute(tmp_path: Path) -> None:
    # behaviours.md §22: "Long ownership changes: event VolumePermissionChangeInProgress after 30 s, then each 60 s."
    (tmp_path / "uid-1").mkdir()
    (tmp_path / "uid-1" / "file").touch()
    told = await given(tmp_path / "uid-1", 170)
    assert [reason for reason, _ in told] == ["VolumePermissionChangeInProgress"] * 3
    assert told[0][1].startswith("Setting volume ownership for uid-1 is taking longer than expected, consider using")
    assert told[2][1] == "Setting volume ownership for uid-1, processed 1 files."


async def test_a_short_change_is_not_told(tmp_path: Path) -> None:
    assert await given(tmp_path, 29) == []
    assert tmp_path.stat().st_gid == 4711


async def test_only_the_root_is_looked_at_where_the_policy_says_so(tmp_path: Path) -> None:
    # behaviours.md §22: "fsGroupChangePolicy OnRootMismatch checks only the root and counts for volumes with that
    # support (PV-backed, CSI)"
    await given(tmp_path, 0)
    (tmp_path / "new").touch()
    os.chown(tmp_path / "new", 0, 0)
    await given(tmp_path, 0, fsGroupChangePolicy="OnRootMismatch")
    assert (tmp_path / "new").stat().st_gid == 0
    await given(tmp_path, 0, fsGroupChangePolicy="Always")
    assert (tmp_path / "new").stat().st_gid == 4711


async def test_the_walk_of_a_pod_that_is_deleted_meanwhile_ends(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"dir-{number:03}").mkdir()
    go_on = threading.Event()
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    change, walked = ownership._Walk._change, 0

    def slow(walk: ownership._Walk, descriptor: int) -> bool:
        nonlocal walked
        walked += 1
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(20)
        return change(walk, descriptor)

    threads = HostThreads(recorder=WaitLog())
    owner = GroupOwner(threads=threads, emit=lambda *told: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ownership._Walk, "_change", slow)
        task = asyncio.create_task(owner.give(pod_of({}, securityContext={"fsGroup": 4711}), "data", str(tmp_path)))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        go_on.set()
        while threads.running():
            await asyncio.sleep(0.01)
    assert walked < 200
    assert tmp_path.stat().st_gid != 4711
