"""Outcomes that outlive the agent, on a real disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from glasslet.api.object import ContainerID
from glasslet.exchange.facts import ProbeOutcome
from glasslet.host.files.small_files import write_checked
from glasslet.host.threads import HostThreads
from glasslet.probes import memory as module
from glasslet.probes.memory import ProbeMemory
from glasslet.record.store import Record
from tests.fakes.background import in_background

ONE, TWO = ContainerID("one"), ContainerID("two")
READY = ProbeOutcome(ready=True, alive=True)
STARTED = ProbeOutcome(started=True, ready=False)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE", 0.0)
    monkeypatch.setattr(module, "RETRY", 0.01)


class Run:
    """One run of the agent."""

    def __init__(self, folder: Path) -> None:
        self.passing: dict[ContainerID, ProbeOutcome] = {}
        self.record = Record()
        self.memory = ProbeMemory(
            path=str(folder / "probes"),
            passing=lambda: self.passing,
            threads=HostThreads(recorder=self.record),
            recorder=self.record,
        )


@asynccontextmanager
async def agent(folder: Path) -> AsyncIterator[Run]:
    run = Run(folder)
    async with in_background(run.memory.run):
        await asyncio.sleep(0)
        yield run


async def written(folder: Path, before: bytes = b"") -> bytes:
    """The file, once it is another than before."""
    async with asyncio.timeout(60):
        while not (folder / "probes").exists() or (folder / "probes").read_bytes() == before:
            await asyncio.sleep(0.005)
    return (folder / "probes").read_bytes()


async def test_what_passes_is_written_soon(tmp_path: Path) -> None:
    """Not only at the end: agents are killed."""
    async with agent(tmp_path) as run:
        run.passing = {ONE: READY}
        run.memory.changed()
        await written(tmp_path)
        assert Run(tmp_path).memory.recall(ONE) == ProbeOutcome(ready=True)


async def test_the_next_agent_knows_it(tmp_path: Path) -> None:
    async with agent(tmp_path) as run:
        run.passing = {ONE: READY, TWO: STARTED}
    async with agent(tmp_path) as run:
        assert run.memory.recall(ONE) == ProbeOutcome(ready=True)
        assert run.memory.recall(TWO) == ProbeOutcome(started=True)
        assert run.memory.recall(ContainerID("three")) == ProbeOutcome()


async def test_what_does_not_pass_any_more_is_forgotten(tmp_path: Path) -> None:
    async with agent(tmp_path) as run:
        run.passing = {ONE: READY}
        run.memory.changed()
        before = await written(tmp_path)
        run.passing = {}
        run.memory.changed()
        await written(tmp_path, before)
    assert Run(tmp_path).memory.recall(ONE) == ProbeOutcome()


async def test_pods_that_did_not_come_yet_are_carried_over(tmp_path: Path) -> None:
    """Two restarts in a row, before the sources gave anything."""
    async with agent(tmp_path) as run:
        run.passing = {ONE: READY}
    async with agent(tmp_path) as run:
        run.memory.changed()
        await asyncio.sleep(0.05)
    assert Run(tmp_path).memory.recall(ONE) == ProbeOutcome(ready=True)


async def test_pods_that_never_come_are_not_carried_over_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with agent(tmp_path) as run:
        run.passing = {ONE: READY}
    monkeypatch.setattr(module, "RECALLED_FOR", 0.01)
    async with agent(tmp_path) as run:
        await asyncio.sleep(0.05)
        assert run.memory.recall(TWO) == ProbeOutcome()
    assert Run(tmp_path).memory.recall(ONE) == ProbeOutcome()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no checksum line"),
        (b"glasslet-state sha256 0000\n{}", "checksum does not match"),
        (b"\x00" * 4096, "no checksum line"),
    ],
    ids=["empty", "damaged", "zeros"],
)
async def test_a_damaged_file_is_a_finding_and_nothing_else(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "probes").write_bytes(content)
    async with agent(tmp_path) as run:
        assert run.memory.recall(ONE) == ProbeOutcome()
        (finding,) = run.record.findings()
        assert "probe results of the last run are lost" in finding
        assert why in finding
        run.passing = {ONE: READY}
        run.memory.changed()
        await written(tmp_path, content)
    assert Run(tmp_path).memory.recall(ONE) == ProbeOutcome(ready=True)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"version":99}', "has version 99, want 1"),
        (b"[]", "want an object, got a list"),
        (b'{"version":1,"ready":[3]}', "ready"),
    ],
    ids=["another version", "another shape", "another type"],
)
async def test_a_file_of_another_program_is_ignored(tmp_path: Path, data: bytes, why: str) -> None:
    write_checked(str(tmp_path / "probes"), data)
    run = Run(tmp_path)
    assert run.memory.recall(ONE) == ProbeOutcome()
    assert why in run.record.findings()[0]


async def test_a_disk_that_takes_nothing_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    async with agent(folder) as run:
        run.passing = {ONE: READY}
        run.memory.changed()
        async with asyncio.timeout(60):
            while not run.record.findings():
                await asyncio.sleep(0.005)
        assert "cannot be written" in run.record.findings()[0]
        folder.mkdir()
        await written(folder)
