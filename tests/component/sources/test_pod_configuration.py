"""What pods take from API objects: waited for, followed, given back. Real workers and object watches, virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from glasslet.api.codec import convert
from glasslet.api.container import Container
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.volume import LocalObjectReference
from glasslet.concurrency.clock import LoopClock
from glasslet.kubeapi.objects.pod_objects import Detection, PodObjects, build_pod_objects
from glasslet.kubeapi.objects.services import Services
from glasslet.podspec.object_environment import ObjectEnvironment, ResolvedEnvironment
from glasslet.record.stations import WaitKind
from glasslet.runtime.images.keyring_files import NodeKeyring
from glasslet.runtime.images.keyring_secrets import PullCredentials
from glasslet.runtime.protocols import RegistryAuth
from tests.builders.objects import config_map, secret, with_data
from tests.builders.pod import UID, api_pod, container
from tests.component.pod_agent import Agent, Node, running_agent
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.programs import exits
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.looptime


class ClusterData:
    """Configuration data over a fake API server."""

    def __init__(self, agent_events: list[Any]) -> None:
        clock = LoopClock()
        self.server = FakeAPIServer(clock=clock)
        self.agent: Agent | None = None
        self.forgotten: list[PodUID] = []
        self.objects: PodObjects = build_pod_objects(
            Detection(strategy="Watch", sync_frequency=60.0, on_change=self._changed),
            client=self.server,
            recorder=WaitLog(),
            clock=clock,
        )
        self.services = Services(client=self.server, recorder=WaitLog())
        self._environments = ObjectEnvironment(objects=self.objects, services=self.services)
        self._credentials = PullCredentials(
            secrets=self.objects,
            node=NodeKeyring(paths=(), clock=clock),
            events=lambda *event: agent_events.append(event),
        )

    def _changed(self, uid: PodUID) -> None:
        assert self.agent is not None
        self.agent.wakes.refresh(uid)

    def register(self, pod: Pod) -> None:
        self.objects.register(pod)

    def forget(self, ref: PodRef) -> None:
        self.forgotten.append(ref.uid)
        self.objects.forget(ref.uid)

    async def environment(self, pod: Pod, container: Container) -> ResolvedEnvironment:
        return await self._environments.resolve(pod, container)

    async def credentials(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        return await self._credentials.matching(pod, image)

    async def plugin_credentials(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        return ()


@asynccontextmanager
async def cluster_agent(node: Node | None = None) -> AsyncIterator[tuple[Agent, ClusterData]]:
    node = node or Node()
    data = ClusterData([])
    node.data = data
    async with running_agent(node) as agent, asyncio.TaskGroup() as group:
        data.agent = agent
        tasks = [group.create_task(data.objects.run()), group.create_task(data.services.run())]
        yield agent, data
        for task in tasks:
            task.cancel()


def needs(*sources: dict[str, Any], **spec: Any) -> Pod:
    """A pod whose container takes its environment from these."""
    return api_pod(convert({**_plain(container()), "envFrom": list(sources)}, Container), **spec)


def _plain(one: Container) -> dict[str, Any]:
    return {"name": one.name, "image": one.image, "imagePullPolicy": one.image_pull_policy}


def envs(agent: Agent, name: str = "main") -> dict[str, str]:
    """The environment in the request to the runtime."""
    (made,) = [c.spec for c in agent.runtime.containers.values() if c.spec.name == name]
    return dict(made.envs)


async def test_container_gets_what_its_objects_hold() -> None:
    async with cluster_agent() as (agent, data):
        data.server.put("secrets", secret("db", PASSWORD="hunter2"))
        data.server.put("configmaps", config_map("settings", MODE="fast"))
        agent.add(needs({"secretRef": {"name": "db"}}, {"configMapRef": {"name": "settings"}}))
        await agent.until_running("main")
        assert {"PASSWORD": "hunter2", "MODE": "fast"}.items() <= envs(agent).items()


async def test_a_missing_object_is_shown_and_its_arrival_starts_the_container_at_once() -> None:
    async with cluster_agent() as (agent, data):
        agent.add(needs({"secretRef": {"name": "db"}}))
        await asyncio.sleep(300)
        waiting = agent.container().state.waiting
        assert waiting is not None
        assert (waiting.reason, waiting.message) == ("CreateContainerConfigError", 'secret "db" not found')
        assert 'Error: secret "db" not found' in {event.message for event in agent.events.of("Failed")}
        (wait,) = [w for w in agent.record.live_waits() if w.kind == WaitKind.BACK_OFF]
        assert 'secret "db" not found' in wait.on
        data.server.put("secrets", secret("db", PASSWORD="x"))
        came = agent.clock.monotonic()
        await agent.until_running("main")
        assert agent.clock.monotonic() - came < 2


async def test_a_changed_object_reaches_the_volumes_of_a_running_pod_at_once() -> None:
    # behaviours.md §22: "Update delay: detection + sync: Watch: push, seen at next pod sync (<= syncFrequency*1.5
    # default 90 s)"
    async with cluster_agent() as (agent, data):
        data.server.put("configmaps", config_map("settings", MODE="fast"))
        agent.add(needs({"configMapRef": {"name": "settings"}}))
        await agent.until_running("main")
        await asyncio.sleep(5)
        before = len(agent.node.volumes.refreshed)
        data.server.put("configmaps", config_map("settings", MODE="slow"))
        await asyncio.sleep(0.5)
        assert len(agent.node.volumes.refreshed) == before + 1


# behaviours.md §22: "pods needing remount (secrets, configmaps, tokens, downward, ...) at every pod sync"
async def test_volumes_of_a_running_pod_are_looked_at_again_at_every_sync() -> None:
    async with cluster_agent() as (agent, _):
        agent.add(needs())
        await agent.until_running("main")
        await asyncio.sleep(5)
        before = len(agent.node.volumes.refreshed)
        await asyncio.sleep(900)
        assert 10 <= len(agent.node.volumes.refreshed) - before <= 15


async def test_new_labels_of_a_running_pod_reach_its_volumes() -> None:
    async with cluster_agent() as (agent, _):
        agent.add(needs())
        await agent.until_running("main")
        await asyncio.sleep(5)
        agent.change(needs(annotations={"note": "new"}))
        await asyncio.sleep(0.5)
        assert agent.node.volumes.refreshed[-1].metadata.annotations["note"] == "new"


async def test_a_server_that_does_not_answer_keeps_no_container_from_its_restart() -> None:
    async with cluster_agent() as (agent, _):
        agent.runtime.program("main", exits(1, after=5))
        agent.add(needs())
        await agent.until_running("main")
        agent.node.volumes.takes = 10_000.0
        agent.wakes.refresh(PodUID(UID))
        await agent.until(lambda: agent.container().restart_count == 2)
        assert agent.clock.monotonic() < 60


async def test_volumes_that_cannot_be_brought_up_to_date_are_told_and_the_pod_runs_on() -> None:
    async with cluster_agent() as (agent, _):
        agent.add(needs())
        await agent.until_running("main")
        agent.node.volumes.problem = 'MountVolume.SetUp failed for volume "v" : secret "db" not found'
        agent.wakes.refresh(PodUID(UID))
        await asyncio.sleep(1)
        (event,) = agent.events.of("FailedMount")
        assert event.message == agent.node.volumes.problem
        assert agent.runtime.running() == ["main"]
        assert agent.container().restart_count == 0


async def test_a_restarted_agent_follows_the_objects_of_the_pods_that_it_finds() -> None:
    node = Node()
    async with cluster_agent(node) as (agent, _):
        agent.add(needs({"configMapRef": {"name": "settings", "optional": True}}))
        await agent.until_running("main")
    async with cluster_agent(node) as (agent, data):
        agent.add(needs({"configMapRef": {"name": "settings", "optional": True}}))
        await asyncio.sleep(5)
        before = len(node.volumes.refreshed)
        assert before > 0
        data.server.put("configmaps", config_map("settings", MODE="slow"))
        await asyncio.sleep(0.5)
        assert len(node.volumes.refreshed) == before + 1
        assert agent.container().restart_count == 0


async def test_objects_of_a_pod_that_ended_are_given_back() -> None:
    async with cluster_agent() as (agent, data):
        data.server.put("secrets", secret("db", PASSWORD="x"))
        one = needs({"secretRef": {"name": "db"}})
        agent.add(one)
        await agent.until_running("main")
        agent.remove(one)
        await agent.until_gone()
        assert data.forgotten == [UID]


async def test_pull_secrets_reach_the_pull() -> None:
    async with cluster_agent() as (agent, data):
        auths = {"registry.example": {"username": "ann", "password": "hunter2"}}
        body = secret("pull", kind="kubernetes.io/dockerconfigjson")
        data.server.put("secrets", with_data(body, {".dockerconfigjson": json.dumps({"auths": auths})}))
        image = "registry.example/team/app:1"
        pulling = container(image=image, image_pull_policy="Always")
        agent.add(api_pod(pulling, image_pull_secrets=(LocalObjectReference(name="pull"),)))
        await agent.until(lambda: agent.runtime.pulled_with)
        ((pulled, auth), *_) = agent.runtime.pulled_with
        assert auth is not None
        assert (pulled, auth.username, auth.password) == (image, "ann", "hunter2")
        assert auth.source is not None
        assert (auth.source.kind, auth.source.name) == ("Secret", "pull")


async def test_each_volume_that_fails_has_an_event_of_its_own() -> None:
    async with cluster_agent() as (agent, _):
        agent.node.volumes.problems = ('MountVolume.SetUp failed for volume "a" : x', "b is not ready")
        agent.add(needs())
        await agent.until(lambda: len(agent.events.of("FailedMount")) >= 2)
        assert [event.message for event in agent.events.of("FailedMount")][:2] == list(agent.node.volumes.problems)
