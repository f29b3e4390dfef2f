"""Images mounted as volumes: pulled like those of containers, and handed to the runtime by their id."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from glasslet.api.container import VolumeMount
from glasslet.api.pod import Pod
from glasslet.api.volume import ImageVolumeSource, Volume
from glasslet.exchange.volume import MountedVolume
from glasslet.volumes.plugin import VolumeRequest
from glasslet.volumes.types.image import ImageVolume
from tests.builders.pod import container, pod
from tests.component.pod_agent import Node, running_agent
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
