"""Notices about memory, on the real kernel."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
from collections.abc import Iterator

import pytest

from glasslet.concurrency.clock import LoopClock
from glasslet.eviction.memory_notices import MemoryNotices
from glasslet.eviction.reading import Reading
from glasslet.eviction.signals import Observation, Signal
from glasslet.eviction.thresholds import Threshold
from glasslet.host.cgroups.memory_notices import EventsNotice, KernelNotice, StallNotice, UsageNotice, memory_notices
from glasslet.host.cgroups.v1 import CgroupV1
from glasslet.record.store import Record
from tests.fakes.cgroups import RealRoot, real_root

MIB = 2**20
TAKES = """
import os, sys
with open(sys.argv[1], "w") as group:
    group.write(str(os.getpid()))
taken = bytearray(int(sys.argv[2]))
taken[::4096] = b"x" * len(taken[::4096])
print(flush=True)
sys.stdin.read()
"""
"""Moves into a cgroup, touches so much memory, and keeps it until its input ends."""


@pytest.fixture
def root() -> Iterator[RealRoot]:
    with real_root() as made:
        yield made


def v1_folder(root: RealRoot) -> str:
    if not isinstance(root.tree, CgroupV1):
        pytest.skip("NOTICES OF CGROUP V1 NOT TESTED: this machine has version 2 alone")
    return root.tree.mounts["memory"] + root.path


def taking(folder: str, amount: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", TAKES, f"{folder}/cgroup.procs", str(amount)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def has_news(notice: KernelNotice, seconds: float = 0.0) -> bool:
    return bool(select.select([notice], [], [], seconds)[0])


def test_the_kernel_notices_the_crossing_of_an_amount_in_both_directions(root: RealRoot) -> None:
    folder = v1_folder(root)
    notice = UsageNotice(folder, 30 * MIB)
    assert not has_news(notice)
    with taking(folder, 60 * MIB) as hog:
        assert has_news(notice, 20)
        assert hog.stdout is not None
        hog.stdout.readline()
        notice.take()
        assert not has_news(notice)
        hog.communicate()
    assert has_news(notice, 20)
    notice.take()
    notice.take()
    notice.close()


def test_use_below_the_amount_is_not_noticed(root: RealRoot) -> None:
    folder = v1_folder(root)
    notice = UsageNotice(folder, 300 * MIB)
    with taking(folder, 20 * MIB) as small:
        assert small.stdout is not None
        small.stdout.readline()
        small.communicate()
    assert not has_news(notice)
    notice.close()


def test_a_cgroup_that_is_not_there_is_an_error_and_leaves_no_descriptor(root: RealRoot) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        UsageNotice(f"{v1_folder(root)}/no-such", 1)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_the_loop_looks_within_a_moment_of_the_crossing(root: RealRoot) -> None:
    """From the kernel's notice to the end of a pause of ten minutes."""
    folder = v1_folder(root)

    def subscribe(signal: Signal, amount: int) -> list[KernelNotice]:
        return memory_notices(root.tree, pods=root.path, amount=amount, of_pods=signal is Signal.ALLOCATABLE_MEMORY)

    notices = MemoryNotices(subscribe=subscribe, clock=LoopClock(), recorder=Record())
    seen = Observation(signal=Signal.ALLOCATABLE_MEMORY, available=100 * MIB, capacity=100 * MIB, usage=0)
    crossed = Threshold(signal=Signal.ALLOCATABLE_MEMORY, amount="60Mi")
    notices.renew(Reading(taken=0.0, thresholds=(crossed,), observations={seen.signal: seen}))
    with taking(folder, 90 * MIB) as hog:
        async with asyncio.timeout(30):
            await notices.wait(600)
        hog.communicate()
    notices.close()


def test_stalls_can_be_subscribed_to_and_a_quiet_machine_has_none() -> None:
    try:
        notice = StallNotice("/proc/pressure/memory")
    except OSError as error:
        pytest.skip(f"STALLS OF MEMORY NOT TESTED: this kernel has no pressure figures: {error}")
    # A busy machine may stall: what counts is that news ends when it is taken.
    if has_news(notice, 0.1):
        notice.take()
    notice.close()


def test_files_that_the_kernel_signals_are_news_until_they_are_read() -> None:
    """cgroup.events stands for memory.events.local, which needs the memory controller in version 2."""
    folder = f"/sys/fs/cgroup/unified/glt-notice-{os.getpid()}"
    if not os.path.isdir(os.path.dirname(folder)):
        folder = folder.replace("unified/", "")
    try:
        os.mkdir(folder)
    except OSError as error:
        pytest.skip(f"NOTICES OF CGROUP V2 NOT TESTED: {error}")
    try:
        notice = EventsNotice(f"{folder}/cgroup.events")
        assert not has_news(notice)
        with taking(folder, MIB) as process:
            assert has_news(notice, 20)
            notice.take()
            assert not has_news(notice)
            process.communicate()
        assert has_news(notice, 20)
        notice.close()
    finally:
        os.rmdir(folder)
