"""An agent killed at every step of making and removing the volumes of a pod: the next one goes on from the disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from glasslet.api.container import Container, VolumeMount
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.volume import (
    ConfigMapVolumeSource,
    EmptyDirVolumeSource,
    PersistentVolumeClaimVolumeSource,
    SecretVolumeSource,
    Volume,
)
from glasslet.pods.upkeep.orphan_folders import OrphanFolders
from tests.builders.pod import UID, container, pod
from tests.component.pod_agent import Agent, Node
from tests.component.volume_world import Machine, Steps, watch_files
from tests.fakes.background import in_background
from tests.fakes.pod_node import FakePodFiles, FakeVolumes
from tests.fakes.runtime import FakeRuntime

pytestmark = [pytest.mark.looptime, pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")]

PATIENCE = 200.0
"""Virtual seconds."""

PLACES = {"mem": "/m", "disk": "/d", "conf": "/c", "key": "/k", "claimed": "/p"}
VOLUMES = (
    Volume(name="mem", empty_dir=EmptyDirVolumeSource(medium="Memory")),
    Volume(name="disk", empty_dir=EmptyDirVolumeSource()),
    Volume(name="conf", config_map=ConfigMapVolumeSource(name="data")),
    Volume(name="key", secret=SecretVolumeSource(secret_name="data")),
    Volume(name="claimed", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="c")),
)


def with_volumes() -> Pod:
    mounts = [VolumeMount(name=name, mount_path=path) for name, path in PLACES.items()]
    mounts.append(VolumeMount(name="disk", mount_path="/part", sub_path="a/b"))
    mounts.append(VolumeMount(name="claimed", mount_path="/of", sub_path="precious"))
    main: Container = container(volume_mounts=tuple(mounts))
    return pod(main, volumes=VOLUMES)


class OtherPods:
    """Only what the runtime and the workers know is alive."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def all_known(self) -> bool:
        return self._agent.observed.synced.is_set()

    def content_removable(self, uid: PodUID) -> bool:
        return not self._agent.census.knows(uid)

    def alive(self, uid: PodUID) -> bool:
        return self._agent.census.knows(uid) or self._agent.observed.get(uid) is not None


@asynccontextmanager
async def agent_on(machine: Machine, runtime: FakeRuntime, steps: Steps) -> AsyncIterator[Agent]:
    files = machine.files(steps)
    node = Node(runtime=runtime, volumes=cast(FakeVolumes, machine.volumes(steps)), files=cast(FakePodFiles, files))
    agent = Agent(node)
    folders = OrphanFolders(folders=files, pods=OtherPods(agent), stop=agent.workers.stop_orphan, recorder=agent.record)

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(agent.run())
            group.create_task(folders.run())

    async with in_background(run):
        yield agent


async def live(agent: Agent, machine: Machine, steps: Steps) -> bool:
    """The whole life of the pod; whether it was over before the agent died. Only its deletion may be left then."""
    agent.add(with_volumes())
    await agent.until(lambda: steps.dead or agent.runtime.running(), PATIENCE, 0.1)
    if steps.dead:
        return False
    assert_complete(machine)
    agent.remove(with_volumes())
    await agent.until(lambda: steps.dead or not (machine.pods() or agent.census.knows(PodUID(UID))), PATIENCE, 0.1)
    return True


def assert_complete(machine: Machine) -> None:
    volumes = machine.kubelet / "pods" / UID / "volumes"
    assert (volumes / "kubernetes.io~local-volume/pv-1/precious").read_text() == "kept"
    assert (volumes / "kubernetes.io~configmap/conf/key").read_text() == "value"
    assert (volumes / "kubernetes.io~secret/key/key").read_text() == "value"
    assert (volumes / "kubernetes.io~empty-dir/disk/a/b").is_dir()
    shown = machine.kubelet / "pods" / UID / "volume-subpaths"
    assert (shown / "pv-1/main/6").read_text() == "kept"
    # Two in memory, one from the claim, two parts: each once.
    assert len(machine.mounted()) == 5


def assert_nothing_left(machine: Machine) -> None:
    assert machine.mounted() == []
    assert machine.pods() == []
    assert (machine.disk / "precious").read_text() == "kept"


@pytest.mark.parametrize("share", range(16))
async def test_an_agent_killed_at_any_step_leaves_nothing_that_the_next_one_cannot_take_up(
    tmp_path: Path, share: int
) -> None:
    # behaviours.md §22: "At restart volumes are reconstructed from the pods directory."
    # Logs are not looked at: those of pods that are no more are the garbage collector's.
    killed, at = 0, share
    while await killed_and_taken_up(Machine(Path(os.path.realpath(tmp_path)) / str(at)), at):
        killed += 1
        at += 16
    assert killed > 5


async def killed_and_taken_up(machine: Machine, at: int) -> bool:
    """Two agents one after the other, the first one killed at that step; whether it came so far."""
    steps, runtime = Steps(at), FakeRuntime()
    try:
        with pytest.MonkeyPatch.context() as patch:
            watch_files(steps, machine.root, lambda module, name, value: patch.setattr(module, name, value))
            async with agent_on(machine, runtime, steps) as agent:
                ran = await live(agent, machine, steps)
        async with agent_on(machine, runtime, Steps()) as agent:
            if not ran:
                await live(agent, machine, Steps())
            await agent.until(lambda: not machine.pods(), PATIENCE, 0.1)
        assert_nothing_left(machine)
    finally:
        machine.clean()
    return steps.dead
