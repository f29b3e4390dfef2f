"""Devices in a pod's life: asked for once, before anything is made; a refusal is final; a hang is one pod's own."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.exchange.admission import Rejected
from glasslet.podspec.errors import container_error
from glasslet.runtime.spec import ContainerDevices, Device
from tests.builders.pod import container, pod
from tests.component.pod_agent import Node, running_agent

pytestmark = pytest.mark.looptime
GPU = Device(container_path="/dev/gpu", host_path="/dev/gpu7", permissions="rw")


class Plugins:
    """Stands for the device manager: `refusal` for pods named `refused`, an answer that never comes for `hung`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.problem = ""

    async def allocate(self, pod: Pod) -> Rejected | None:
        self.asked.append(pod.metadata.name)
        if pod.metadata.name == "hung":
            await asyncio.get_running_loop().create_future()
        if pod.metadata.name == "refused":
            return Rejected(reason="UnexpectedAdmissionError", message="Allocate failed due to x, which is unexpected")
        return None

    async def prepare(self, pod: Pod, container: Container) -> ContainerDevices:
        if self.problem:
            raise container_error(self.problem)
        return ContainerDevices(envs=(("GPU", "7"),), devices=(GPU,))


async def test_a_container_is_made_with_what_its_plugin_gave() -> None:
    plugins = Plugins()
    async with running_agent(Node(devices=plugins)) as agent:
        agent.add(pod())
        await agent.until_running("main")
        spec = agent.runtime.instances("main")[0].spec
        assert spec.devices == (GPU,)
        assert ("GPU", "7") in spec.envs
        assert plugins.asked == ["web"]


async def test_a_pod_that_its_plugin_refuses_fails_and_nothing_is_made() -> None:
    async with running_agent(Node(devices=Plugins())) as agent:
        agent.add(pod(name="refused"))
        await agent.until(lambda: agent.statuses.told and agent.status().phase == "Failed")
        await asyncio.sleep(300)
        assert agent.status().reason == "UnexpectedAdmissionError"
        assert agent.status().message == "Pod was rejected: Allocate failed due to x, which is unexpected"
        assert not agent.runtime.containers
        assert agent.events.reasons() == ["UnexpectedAdmissionError"]


async def test_a_pod_whose_plugin_hangs_can_be_deleted_and_others_run() -> None:
    async with running_agent(Node(devices=Plugins())) as agent:
        hung = pod(name="hung")
        agent.add(hung)
        agent.add(pod(name="other", uid="other"))
        await agent.until_running("main", uid="other")
        agent.remove(hung)
        await agent.until_gone()
        assert agent.runtime.running("other") == ["main"]


async def test_a_container_whose_devices_cannot_be_prepared_says_so_and_starts_later() -> None:
    plugins = Plugins()
    plugins.problem = "device plugin PreStartContainer rpc failed with err: x"
    async with running_agent(Node(devices=plugins)) as agent:
        agent.add(pod(container("main")))
        await agent.until(lambda: agent.statuses.told)
        await agent.until(lambda: (waiting := agent.container().state.waiting) and "PreStart" in waiting.message)
        waiting = agent.container().state.waiting
        assert waiting is not None
        assert waiting.reason == "CreateContainerConfigError"
        plugins.problem = ""
        await agent.until_running("main")
