"""The disk below the root directory is full or read-only: what runs goes on, and the agent says what is wrong."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.agent import NODE, Agent, busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.faults.table import LONG, Row, sized
from tests.faults.world import gone, healthz, ready, restarts, running_twice, started

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(900 if LONG else 600)]
STEADY = tuple(f"steady-{number}" for number in range(sized(2, 10)))
SIZE = 48
"""MiB: the record wants 32 free."""


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of its own; gone afterwards."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-R", "-l", str(folder)], check=True)


def make_read_only(folder: Path) -> None:
    """By a read-only mount of the folder over itself, because a file system with open files refuses to be made so."""
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)


def make_writable(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Until not one byte more fits."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return ballast


@contextmanager
def agent_with_root(containerd: PrivateContainerd, folder: Path, disk: Path) -> Iterator[Agent]:
    """Only its root directory is on that disk."""
    agent = Agent(folder, containerd)
    agent.root = disk / "root"
    agent.start()
    try:
        yield agent
    finally:
        agent.kill()
        containerd.remove_all_pods()


async def has_steady_pods(agent: Agent) -> None:
    await agent.wait_until_ready()
    for name in STEADY:
        pod = busybox_pod(name)
        pod["spec"]["containers"][0]["readinessProbe"] = {
            "exec": {"command": ["true"]},
            "periodSeconds": 1,
            "timeoutSeconds": 60,
        }
        agent.put(pod)
    await agent.wait_for(ready(*STEADY))


async def until_told(agent: Agent, words: str) -> None:
    """Until the log has a finding with these words."""
    async with asyncio.timeout(120):
        while not any(words in line for line in agent.log.read_text(errors="replace").splitlines()):
            await asyncio.sleep(0.1)


async def until_why_says(agent: Agent, name: str, words: str) -> None:
    """Raises AssertionError with what it says instead."""
    verdict = None
    try:
        async with asyncio.timeout(120):
            while words not in str(verdict):
                await asyncio.sleep(0.1)
                verdict = await agent.ask(f"/glass/v1/pods/default/{name}-{NODE}/why")
    except TimeoutError:
        raise AssertionError(f"why says {verdict}") from None


def findings(agent: Agent) -> list[str]:
    return [line for line in agent.log.read_text(errors="replace").splitlines() if '"finding"' in line]


async def test_a_full_disk_stops_nothing_that_runs_and_is_over_when_there_is_room(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    with small_disk(tmp_path / "disk") as disk, agent_with_root(containerd, tmp_path / "a", disk) as agent:
        await has_steady_pods(agent)
        before = await started(containerd, *STEADY)
        row.did("the file system of the root directory is full, also over a restart of the agent")
        ballast = fill(disk)
        agent.put(busybox_pod("waiting"))
        rows = await agent.wait_for(lambda rows: "waiting" in rows)
        await until_told(agent, "No space left on device")
        rows = await agent.wait_for(lambda rows: "waiting" in rows)
        assert rows["waiting"]["ready"] == 0
        assert ready(*STEADY)(rows)
        assert healthz(agent) == 200
        await until_why_says(agent, "waiting", "No space left on device")
        row.holds("why of a new pod names the full disk", "healthz ok")
        agent.kill()
        agent.start()
        await agent.wait_until_ready()
        rows = await agent.wait_for(ready(*STEADY))
        assert await started(containerd, *STEADY) == before
        row.holds("an agent starts on a full disk")
        agent.remove(STEADY[0])
        await agent.wait_for(gone(STEADY[0]))
        row.holds("pods can be removed")
        ballast.unlink()
        rows = await agent.wait_for(ready("waiting", *STEADY[1:]), seconds=240)
        assert restarts(rows, *STEADY[1:]) == {}
        assert (await started(containerd, *STEADY[1:])).items() <= before.items()
        assert await running_twice(containerd) == []
        row.holds("the new pod starts when there is room", "no restart")
        row.figure("findings", len(findings(agent)))
        assert len(findings(agent)) < 30, findings(agent)
        assert "Traceback" not in agent.log.read_text(errors="replace")


async def test_a_root_directory_that_cannot_be_written_stops_nothing_that_runs(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    with small_disk(tmp_path / "disk") as disk, agent_with_root(containerd, tmp_path / "a", disk) as agent:
        await has_steady_pods(agent)
        before = await started(containerd, *STEADY)
        row.did("the file system of the root directory becomes read-only, and writable again")
        make_read_only(agent.root)
        agent.put(busybox_pod("waiting"))
        rows = await agent.wait_for(lambda rows: "waiting" in rows)
        await until_told(agent, "Read-only file system")
        await asyncio.sleep(sized(3, 60))
        rows = await agent.wait_for(lambda rows: "waiting" in rows)
        assert ready(*STEADY)(rows)
        assert rows["waiting"]["ready"] == 0
        await until_why_says(agent, "waiting", "Read-only file system")
        assert healthz(agent) == 200
        row.holds("why names it", "healthz ok")
        agent.kill()
        agent.start()
        code = await asyncio.to_thread(agent.wait_for_exit)
        assert code == 1
        assert "Read-only file system" in agent.tail_of_log()
        assert str(agent.root) in agent.tail_of_log()
        assert await started(containerd, *STEADY) == before
        row.holds("an agent that starts says why it cannot, and touches nothing")
        make_writable(agent.root)
        agent.start()
        rows = await agent.wait_for(ready("waiting", *STEADY), seconds=240)
        assert restarts(rows, *STEADY) == {}
        assert await started(containerd, *STEADY) == before
        row.holds("it goes on when it can be written", "no restart")
