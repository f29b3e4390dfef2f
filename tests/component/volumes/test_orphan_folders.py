"""Folders of pods that nobody knows: their volumes go, what must not go stays."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from glasslet.api.object import PodUID
from glasslet.api.volume import EmptyDirVolumeSource, Volume
from glasslet.host.mounts.syscalls import Mounts
from glasslet.pods.upkeep.orphan_folders import OrphanFolders
from tests.builders.pod import UID, pod
from tests.component.pod_agent import Agent, Node
from tests.component.volume_world import Machine, Steps
from tests.fakes.background import in_background
from tests.fakes.pod_node import FakePodFiles, FakeVolumes
from tests.fakes.runtime import FakeRuntime

pytestmark = [pytest.mark.looptime, pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")]

TEXT = f'orphaned pod "{UID}" found, but volumes are not cleaned up'


class Known:
    """What the sources told; `ready` when they told all."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.ready = True
        self.wanted: set[PodUID] = set()

    def all_known(self) -> bool:
        return self.ready

    def content_removable(self, uid: PodUID) -> bool:
        return not self._agent.census.knows(uid)

    def alive(self, uid: PodUID) -> bool:
        return uid in self.wanted or self._agent.census.knows(uid)


class World:
    """A machine with an agent that looks for folders; `sweeps` are (found, left) of every look."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sweeps: list[tuple[int, int]] = []
        files = machine.files(Steps())
        volumes = machine.volumes(Steps())
        node = Node(runtime=FakeRuntime(), volumes=cast(FakeVolumes, volumes), files=cast(FakePodFiles, files))
        self.agent = Agent(node)
        self.known = Known(self.agent)
        self.folders = OrphanFolders(
            folders=files,
            pods=self.known,
            stop=self.agent.workers.stop_orphan,
            recorder=self.agent.record,
            swept=lambda found, left: self.sweeps.append((found, left)),
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.agent.run())
            group.create_task(self.folders.run())

    async def leave_pod(self) -> Path:
        """A pod with one volume, as an earlier agent left it; the volume's directory."""
        source = EmptyDirVolumeSource()
        left = pod(volumes=(Volume(name="data", empty_dir=source),))
        await self.machine.files(Steps()).prepare(left)
        directory = self.machine.kubelet / "pods" / UID / "volumes/kubernetes.io~empty-dir/data"
        directory.mkdir(parents=True)
        (directory / "file").write_text("x")
        return directory


@asynccontextmanager
async def looking(machine: Machine) -> AsyncIterator[World]:
    world = World(machine)
    await world.leave_pod()
    async with in_background(world.run):
        yield world


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    made = Machine(Path(os.path.realpath(tmp_path)) / "machine")
    yield made
    made.clean()


async def test_the_folder_of_a_pod_that_is_no_more_goes_with_its_volumes_and_logs(machine: Machine) -> None:
    async with looking(machine) as world:
        await asyncio.sleep(15)
        assert machine.pods() == []
        assert os.listdir(machine.root / "logs") == []
        assert world.sweeps == [(1, 0), (0, 0)]


async def test_nothing_is_an_orphan_before_all_pods_are_known(machine: Machine) -> None:
    async with looking(machine) as world:
        world.known.ready = False
        await asyncio.sleep(100)
        assert machine.pods() == [UID]
        world.known.ready = True
        await asyncio.sleep(15)
        assert machine.pods() == []


async def test_a_pod_that_is_wanted_keeps_its_folder(machine: Machine) -> None:
    async with looking(machine) as world:
        world.known.wanted.add(PodUID(UID))
        await asyncio.sleep(100)
        assert machine.pods() == [UID]


async def test_what_is_still_mounted_keeps_its_data_and_is_told_until_it_is_gone(machine: Machine) -> None:
    # behaviours.md §22: "remaining content or mounts are left and logged"
    async with looking(machine) as world:
        inside = machine.kubelet / "pods" / UID / "volumes/kubernetes.io~empty-dir/data/bound"
        inside.mkdir()
        Mounts().bind(str(machine.disk), str(inside))
        await asyncio.sleep(300)
        assert (machine.disk / "precious").read_text() == "kept"
        assert (inside.parent / "file").exists()
        assert world.agent.record.findings() == [TEXT]
        assert world.sweeps[-1] == (1, 1)
        Mounts().unmount(str(inside))
        await asyncio.sleep(300)
        assert machine.pods() == []
        assert world.agent.record.findings() == []
        assert (machine.disk / "precious").read_text() == "kept"


async def test_data_of_an_unknown_type_is_left(machine: Machine) -> None:
    # behaviours.md §22: "Orphan directories of unknown pods: removed only with empty directories (rmdir)"
    async with looking(machine) as world:
        other = machine.kubelet / "pods" / UID / "volumes/example.org~odd/v"
        other.mkdir(parents=True)
        (other / "file").write_text("x")
        await asyncio.sleep(100)
        assert (other / "file").exists()
        assert not (machine.kubelet / "pods" / UID / "volumes/kubernetes.io~empty-dir/data").exists()
        assert world.agent.record.findings() == [TEXT]


async def test_a_folder_that_is_no_pods_is_not_touched(machine: Machine) -> None:
    async with looking(machine):
        other = machine.kubelet / "pods" / "lost+found"
        (other / "inode").mkdir(parents=True)
        await asyncio.sleep(100)
        assert machine.pods() == ["lost+found"]
