"""Images mounted as volumes: pulled like those of containers, and handed to the runtime by their id."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

import pytest

from glasslet.api.container import VolumeMount
from glasslet.api.pod import Pod
from glasslet.api.volume import ImageVolumeSource, Volume
from glasslet.exchange.volume import MountedVolume
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected
from glasslet.volumes.plugin import VolumeRequest
from glasslet.volumes.types.image import ImageVolume
from tests.builders.pod import container, pod
from tests.component.pod_agent import Agent, Node, running_agent
from tests.fakes.pod_node import FakeVolumes
from tests.fakes.programs import Pull

pytestmark = pytest.mark.looptime

DATA = "registry.local/data:1"


class ImageVolumes(FakeVolumes):
    """Volumes as a node with the gate ImageVolume has them."""

    async def prepare(self, pod: Pod) -> Mapping[str, MountedVolume]:
        await super().prepare(pod)
        requests = [VolumeRequest(pod=pod, volume=volume) for volume in pod.spec.volumes]
        return {one.volume.name: await ImageVolume().set_up(one) for one in requests}


def mounting() -> Pod:
    mounts = (VolumeMount(name="data", mount_path="/data", sub_path="part"),)
    source = ImageVolumeSource(reference=DATA, pull_policy="IfNotPresent")
    return pod(container(volume_mounts=mounts), volumes=(Volume(name="data", image=source),))


async def test_the_image_is_pulled_and_mounted_by_the_runtime() -> None:
    node = Node(volumes=ImageVolumes())
    async with running_agent(node) as agent:
        agent.runtime.pulls[DATA] = Pull(takes=2)
        agent.add(mounting())
        await agent.until_running("main")
        (mount,) = [m for m in agent.runtime.container("main").spec.mounts if m.container_path == "/data"]
        assert (mount.image, mount.image_sub_path, mount.host_path) == (agent.runtime.images[DATA].id, "part", "")
        assert mount.readonly


async def test_an_image_that_cannot_be_pulled_holds_the_container_back() -> None:
    node = Node(volumes=ImageVolumes())
    async with running_agent(node) as agent:
        agent.runtime.pulls[DATA] = Pull(error="no such host")
        agent.add(mounting())
        await agent.until(lambda: agent.events.of("Failed"))
        await asyncio.sleep(0.1)
        waiting = agent.container().state.waiting
        assert waiting is not None
        assert waiting.reason in ("ErrImagePull", "ImagePullBackOff")
        assert agent.runtime.running() == []


def counted(agent: Agent) -> tuple[int, int, int]:
    """Image volumes requested, mounts that were made, mounts that failed."""
    page = agent.registry.expose().decode()
    names = ("requested_total", "mounted_succeed_total", "mounted_errors_total")
    found = [re.search(rf"^kubelet_image_volume_{name} (\d+)$", page, re.MULTILINE) for name in names]
    requested, mounted, failed = (int(one[1]) if one else -1 for one in found)
    return requested, mounted, failed


async def test_mounts_of_images_are_counted_once_a_start() -> None:
    async with running_agent(Node(volumes=ImageVolumes())) as agent:
        agent.add(mounting())
        await agent.until_running("main")
        await agent.until(lambda: counted(agent) == (1, 1, 0))


async def test_an_image_that_the_runtime_cannot_mount_is_counted_as_failed() -> None:
    async with running_agent(Node(volumes=ImageVolumes())) as agent:
        error = RuntimeRejected("CreateContainer", "ImageVolumeMountFailed: no such layer")
        agent.runtime.fail(Verb.CREATE_CONTAINER, error, times=1)
        agent.add(mounting())
        await agent.until(lambda: counted(agent) == (1, 0, 1))
        await agent.until_running("main")
        await agent.until(lambda: counted(agent) == (2, 1, 1))
