"""Rotating the logs of running containers: real files, a runtime that reopens them."""

from __future__ import annotations

import asyncio
import gzip
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from glasslet.api.object import ContainerID
from glasslet.record.events import Decided
from glasslet.record.store import Record
from glasslet.runtime.errors import RuntimeTimeout
from glasslet.runtime.logs import LogRotator, RotationPolicy
from glasslet.runtime.model import ObservedContainer, ObservedPod
from tests.builders.observed import exited_container, observed_container, observed_pod


class Reopens:
    """A runtime that opens logs again: each of its containers writes into the file behind its path."""

    def __init__(self, paths: dict[str, Path]) -> None:
        self.paths = paths
        self.reopened: list[str] = []
        self.fails = 0
        self.hung: set[str] = set()
        self.hanging = asyncio.Event()
        self.answered = asyncio.Event()

    async def reopen_log(self, container: ContainerID) -> None:
        if container in self.hung:
            self.hanging.set()
            await asyncio.sleep(3600)
        if self.fails:
            self.fails -= 1
            raise RuntimeTimeout("ReopenContainerLog", "no answer")
        self.paths[container].touch()
        self.reopened.append(container)
        self.answered.set()


class FixedClock:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class Node:
    def __init__(self, tmp_path: Path, *containers: ObservedContainer, **policy: Any) -> None:
        self.tmp_path = tmp_path
        named = [self._with_path(c) for c in containers]
        self.pods: tuple[ObservedPod, ...] = (observed_pod(*named),)
        self.runtime = Reopens({c.id: Path(c.log_path) for c in named})
        self.clock = FixedClock()
        self.record = Record()
        limits: dict[str, Any] = {"container_log_max_size": 100, "container_log_max_files": 4}
        self.rotator = LogRotator(
            runtime=self.runtime,
            pods=lambda: self.pods,
            recorder=self.record,
            clock=self.clock,
            policy=RotationPolicy(**(limits | policy)),
        )

    def _with_path(self, container: ObservedContainer) -> ObservedContainer:
        directory = self.tmp_path / container.name
        directory.mkdir()
        fields: dict[str, Any] = {name: getattr(container, name) for name in container.__struct_fields__}
        return ObservedContainer(**(fields | {"log_path": str(directory / f"{container.attempt}.log")}))

    def log(self, container: str = "main") -> Path:
        return self.tmp_path / container / "0.log"

    def write(self, size: int, container: str = "main") -> None:
        with self.log(container).open("ab") as file:
            file.write(b"x" * size)

    def files(self, container: str = "main") -> list[str]:
        return sorted(os.listdir(self.tmp_path / container))

    async def rotate(self) -> None:
        await self.rotator.rotate_now()
        self.clock.at += timedelta(seconds=10)


def stamp(seconds: int) -> str:
    moment = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC) + timedelta(seconds=seconds)
    return moment.astimezone().strftime("%Y%m%d-%H%M%S")


async def test_a_log_below_the_limit_is_left_alone(tmp_path: Path) -> None:
    node = Node(tmp_path, observed_container())
    node.write(99)
    await node.rotate()
    assert node.files() == ["0.log"]


async def test_a_log_at_the_limit_is_rotated_and_opened_anew(tmp_path: Path) -> None:
    # behaviours.md §18: "at size >= containerLogMaxSize"
    node = Node(tmp_path, observed_container())
    node.write(100)
    await node.rotate()
    assert node.files() == ["0.log", f"0.log.{stamp(0)}"]
    assert node.log().stat().st_size == 0
    assert node.runtime.reopened == ["main-0"]


async def test_the_newest_rotated_file_stays_plain_and_older_ones_are_compressed(tmp_path: Path) -> None:
    # behaviours.md §18: "The newest rotated file stays uncompressed."
    node = Node(tmp_path, observed_container())
    node.write(100)
    os.chmod(node.log(), 0o640)
    await node.rotate()
    node.write(150)
    await node.rotate()
    packed = node.tmp_path / "main" / f"0.log.{stamp(0)}.gz"
    assert node.files() == ["0.log", f"0.log.{stamp(0)}.gz", f"0.log.{stamp(10)}"]
    assert gzip.decompress(packed.read_bytes()) == b"x" * 100
    assert packed.stat().st_mode & 0o777 == 0o640


async def test_never_more_files_than_allowed(tmp_path: Path) -> None:
    node = Node(tmp_path, observed_container(), container_log_max_files=3)
    for _ in range(6):
        node.write(200)
        await node.rotate()
        assert len(node.files()) <= 3
    assert node.files() == ["0.log", f"0.log.{stamp(40)}.gz", f"0.log.{stamp(50)}"]


async def test_only_logs_of_running_containers_are_rotated(tmp_path: Path) -> None:
    # behaviours.md §18: "running containers only"
    node = Node(tmp_path, exited_container())
    node.write(1000)
    await node.rotate()
    assert node.files() == ["0.log"]


async def test_a_running_container_without_its_log_gets_one(tmp_path: Path) -> None:
    # behaviours.md §18: "A running container without its log file: ReopenContainerLog."
    node = Node(tmp_path, observed_container())
    await node.rotate()
    assert node.files() == ["0.log"]


async def test_if_the_runtime_does_not_reopen_the_log_has_its_name_back(tmp_path: Path) -> None:
    # behaviours.md §18: "If reopening fails the name is restored."
    node = Node(tmp_path, observed_container())
    node.write(100)
    node.runtime.fails = 1
    await node.rotate()
    assert node.files() == ["0.log"]
    assert node.log().stat().st_size == 100
    await node.rotate()
    assert node.files() == ["0.log", f"0.log.{stamp(10)}"]


async def test_a_rotation_that_is_cancelled_gives_the_name_back(tmp_path: Path) -> None:
    node = Node(tmp_path, observed_container())
    node.write(100)
    node.runtime.hung.add("main-0")
    task = asyncio.create_task(node.rotator.run())
    async with asyncio.timeout(60):
        await node.runtime.hanging.wait()
    assert node.files() != ["0.log"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert node.files() == ["0.log"]


async def test_a_second_rotation_within_a_second_waits_for_the_next_round(tmp_path: Path) -> None:
    node = Node(tmp_path, observed_container(), container_log_max_files=5)
    node.write(100)
    await node.rotator.rotate_now()
    node.write(200)
    await node.rotate()
    assert node.files() == ["0.log", f"0.log.{stamp(0)}.gz"]
    await node.rotate()
    assert node.files() == ["0.log", f"0.log.{stamp(0)}.gz", f"0.log.{stamp(10)}"]


async def test_leftovers_of_an_interrupted_rotation_go(tmp_path: Path) -> None:
    node = Node(tmp_path, observed_container())
    node.write(100)
    directory = node.log().parent
    for name in ("0.log.20250101-000000", "0.log.20250101-000000.gz", "0.log.20250101-000001.tmp", "1.log", "0.logs"):
        (directory / name).write_bytes(b"old")
    await node.rotate()
    assert node.files() == ["0.log", "0.log.20250101-000000.gz", f"0.log.{stamp(0)}", "0.logs", "1.log"]


async def test_a_negative_size_switches_rotation_off(tmp_path: Path) -> None:
    # behaviours.md §18: "a negative size switches rotation off"
    node = Node(tmp_path, observed_container(), container_log_max_size=-1)
    node.write(100)
    async with asyncio.timeout(60):
        await node.rotator.run()
    assert node.files() == ["0.log"]


async def test_the_rotation_is_a_decision_in_the_record(tmp_path: Path) -> None:
    node = Node(tmp_path, observed_container())
    node.write(100)
    await node.rotate()
    record = node.record.of("uid-1")
    assert record is not None
    assert [(e.what, e.container) for e in record.events if isinstance(e, Decided)] == [("log rotated", "main")]


async def test_one_container_that_hangs_does_not_hold_up_the_others(tmp_path: Path) -> None:
    node = Node(tmp_path, observed_container("sick"), observed_container("well"), container_log_max_workers=2)
    for name in ("sick", "well"):
        node.write(100, name)
    node.runtime.hung.add("sick-0")
    task = asyncio.create_task(node.rotator.run())
    async with asyncio.timeout(60):
        await node.runtime.answered.wait()
    assert node.runtime.reopened == ["well-0"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
