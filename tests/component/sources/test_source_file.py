"""The file source on a real folder: the kernel reports changes. Real time, since inotify knows no other."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NoReturn

import pytest

from glasslet.api.pod import Pod
from glasslet.sources.file import FileSource, FileSourceConfig
from tests.builders.manifests import READER, manifest, text_of, write
from tests.fakes.waits import WaitLog

SOON = 60.0
"""How long a test waits for what must happen; it mostly happens within milliseconds."""
NEVER = 3600.0


class Source:
    """A running file source and what it delivered."""

    def __init__(self, path: Path, *, check_seconds: float = NEVER, limited: bool = False) -> None:
        self.recorder = WaitLog()
        self.deliveries: list[list[str]] = []
        options = {"open_inotify": no_inotify} if limited else {}
        self.source = FileSource(
            config=FileSourceConfig(paths=(str(path),), check_seconds=check_seconds),
            reader=READER,
            deliver=self.deliver,
            recorder=self.recorder,
            **options,
        )

    def deliver(self, pods: list[Pod]) -> None:
        self.deliveries.append([pod.metadata.name.removesuffix("-node-1") for pod in pods])

    async def names(self, *wanted: str) -> float:
        """Waits until exactly these pods are the last that were delivered; returns how long that took."""
        return await self.until(lambda: self.deliveries[-1:] == [list(wanted)])

    async def until(self, condition: Callable[[], bool]) -> float:
        loop = asyncio.get_running_loop()
        start = loop.time()
        async with asyncio.timeout(SOON):
            while not condition():
                await asyncio.sleep(0.002)
        return loop.time() - start


def no_inotify(_on_events: object) -> NoReturn:
    raise OSError(errno.EMFILE, "the limit fs.inotify.max_user_instances is reached")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Source]:
    """A source on `tmp_path` that has delivered its first, empty set."""
    async for source in started(Source(tmp_path)):
        yield source


async def started(source: Source) -> AsyncIterator[Source]:
    task = asyncio.ensure_future(source.source.run())
    try:
        await source.until(lambda: bool(source.deliveries))
        yield source
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_new_file_is_seen_within_100_milliseconds(running: Source, tmp_path: Path) -> None:
    times: list[float] = []
    while sum(took < 0.1 for took in times) < 3:  # on a machine that has other things to do, not each
        assert len(times) < 50, times
        names = [f"p{number:02}" for number in range(len(times) + 1)]
        write(tmp_path, names[-1])
        times.append(await running.names(*names))


async def test_a_changed_file_is_seen(running: Source, tmp_path: Path) -> None:
    write(tmp_path)
    await running.names("web")
    (tmp_path / "web.yaml").write_text(text_of(manifest("other")))
    await running.names("other")


async def test_a_removed_file_is_seen(running: Source, tmp_path: Path) -> None:
    path = write(tmp_path)
    await running.names("web")
    path.unlink()
    await running.names()


async def test_a_file_moved_in_and_out_is_seen(
    running: Source, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = write(tmp_path_factory.mktemp("elsewhere"))
    elsewhere.rename(tmp_path / "web.yaml")
    await running.names("web")
    (tmp_path / "web.yaml").rename(elsewhere)
    await running.names()


async def test_links_are_seen_when_they_are_made(
    running: Source, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = write(tmp_path_factory.mktemp("elsewhere"))
    (tmp_path / "soft.yaml").symlink_to(elsewhere)
    await running.names("web")


async def test_a_file_that_is_being_written_is_no_finding(running: Source, tmp_path: Path) -> None:
    text = text_of(manifest("slow"))
    with (tmp_path / "slow.yaml").open("w") as file:
        file.write(text[:20])
        file.flush()
        write(tmp_path, "quick")
        await running.names("quick")
        file.write(text[20:])
    await running.names("quick", "slow")
    assert running.recorder.findings == []


async def test_a_bad_file_is_one_finding_and_the_others_stay(running: Source, tmp_path: Path) -> None:
    write(tmp_path)
    await running.names("web")
    (tmp_path / "bad.yaml").write_text("kind: [")
    await running.until(lambda: len(running.recorder.findings) == 1)
    write(tmp_path, "more")
    await running.names("more", "web")
    assert len(running.recorder.findings) == 1
    (tmp_path / "bad.yaml").unlink()
    await running.until(lambda: running.recorder.findings == [])


async def test_atomic_replacement_by_a_mounted_config_map_is_seen(tmp_path: Path) -> None:
    first, second = tmp_path / "..1", tmp_path / "..2"
    first.mkdir()
    second.mkdir()
    write(first, "old", file="web.yaml")
    write(second, "new", file="web.yaml")
    (tmp_path / "..data").symlink_to(first)
    (tmp_path / "web.yaml").symlink_to("..data/web.yaml")
    async for source in started(Source(tmp_path)):
        await source.names("old")
        (tmp_path / "..tmp").symlink_to(second)
        (tmp_path / "..tmp").rename(tmp_path / "..data")
        await source.names("new")


async def test_a_folder_that_appears_later_is_seen(tmp_path: Path) -> None:
    # behaviours.md §1: "File source is ready after its first read, also when the path is missing (empty set)."
    folder = tmp_path / "manifests"
    async for source in started(Source(folder)):
        assert source.deliveries == [[]]
        folder.mkdir()
        write(folder)
        await source.names("web")


async def test_a_folder_that_is_replaced_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    write(folder, "old")
    async for source in started(Source(folder)):
        await source.names("old")
        folder.rename(tmp_path / "away")
        folder.mkdir()
        write(folder, "new")
        await source.names("new")


async def test_a_single_file_that_an_editor_replaces_is_seen(tmp_path: Path) -> None:
    path = write(tmp_path)
    async for source in started(Source(path)):
        await source.names("web")
        write(tmp_path, "other", file="new.tmp").rename(path)
        await source.names("other")


async def test_without_inotify_changes_are_found_from_time_to_time(tmp_path: Path) -> None:
    async for source in started(Source(tmp_path, check_seconds=0.05, limited=True)):
        write(tmp_path)
        await source.names("web")
        assert source.recorder.findings[0] == (
            "manifest folders cannot be watched, only looked at from time to time:"
            " the limit fs.inotify.max_user_instances is reached"
        )


async def test_a_periodic_look_finds_what_the_kernel_did_not_tell(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The target of a link changes in a folder that is not watched."""
    target = write(tmp_path_factory.mktemp("elsewhere"))
    (tmp_path / "web.yaml").symlink_to(target)
    async for source in started(Source(tmp_path, check_seconds=0.05)):
        await source.names("web")
        target.write_text(text_of(manifest("other")))
        await source.names("other")


async def test_a_file_that_stays_bad_loses_its_pod_at_the_next_looks(tmp_path: Path) -> None:
    write(tmp_path)
    async for source in started(Source(tmp_path, check_seconds=0.05)):
        await source.names("web")
        (tmp_path / "web.yaml").write_text("kind: [")
        await source.names()
        assert len(source.recorder.findings) == 1


async def test_closing_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    async for _ in started(Source(tmp_path)):
        pass
    assert len(os.listdir("/proc/self/fd")) <= before


async def test_a_file_that_is_removed_and_written_again_at_once_is_another_one(running: Source, tmp_path: Path) -> None:
    file = write(tmp_path, "web")
    await running.names("web")
    content = file.read_text()
    file.unlink()
    file.write_text(content)
    await running.until(lambda: running.deliveries[-3:] == [["web"], [], ["web"]])
