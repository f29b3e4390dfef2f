"""As much of an agent as pods of an API server need: source, admission, workers, statuses, mirrors; over the fake
runtime and the fake API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from glasslet.admission.chain import PodAdmission
from glasslet.api.codec import convert
from glasslet.api.node import Node as APINode
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_update import PodUpdate
from glasslet.mirror.manager import MirrorPods, MirrorViews
from glasslet.mirror.plan import full_name
from glasslet.pods.status.status_keeper import StatusServices
from glasslet.pods.workers import PodWorkers
from glasslet.sources.api import APISource
from glasslet.sources.desired import DesiredPods
from glasslet.sources.last_known import VERSION, LastKnown, LastKnownPods
from glasslet.sources.names import API, FILE
from glasslet.status.builder import status_builder
from glasslet.status.manager import StatusManager
from tests.component.pod_agent import Agent, Node
from tests.fakes.api_server import FakeAPIServer, Plain
from tests.fakes.background import in_background
from tests.fakes.inline_threads import InlineThreads

NODE = "n1"
ROOM = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"}


class APIAgent(Agent):
    """One run of the agent against a server. Static pods are given to `static()`, all others come from the server."""

    def __init__(self, server: FakeAPIServer, node: Node, memory: str = "") -> None:
        super().__init__(node)
        self.server = server
        self.api = APISource(
            client=server,
            node_name=NODE,
            deliver=lambda pods: self.desired.update_source(API, pods),
            recorder=self.record,
        )
        self.api.subscribe(self._changed)
        self.memory = self._memory(memory) if memory else None
        news = self.memory.changed if self.memory is not None else None
        self.manager = StatusManager(recorder=self.record, client=server, pods=self.api, news=news, stops=self.arrivals)
        self.workers = PodWorkers(
            census=self.census,
            services=self.services,
            status=StatusServices(
                build=status_builder("fake"),
                publish=self.manager.publish,
                probes=self._probes,
                host_ips=lambda: ("192.0.2.1",),
                finished=self.manager.finish,
            ),
            report=self.report,
            settings=self.settings,
            admit=PodAdmission(node=self.api_node, allocatable=lambda: self.api_node().status.allocatable),
        )
        self.desired = DesiredPods(sources=(FILE, API), clock=self.clock, recorder=self.record)
        self.desired.subscribe(self._deliver)
        self.mirrors = MirrorPods(
            client=server,
            node=self.api_node,
            views=MirrorViews(
                static=lambda: [pod for pod in self.desired.all() if is_static(pod)],
                mirrors=self.api.mirrors,
                stopping=lambda: {full_name(pod) for pod in self.census.ending() if is_static(pod)},
                complete=self.desired.ready,
            ),
            recorder=self.record,
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.observed.run())
            group.create_task(self.workers.run())
            group.create_task(self.manager.run())
            await self.observed.synced.wait()
            group.create_task(self.api.run())
            group.create_task(self.mirrors.run())
            if self.memory is not None:
                group.create_task(self.memory.run())

    def static(self, *pods: Pod) -> None:
        """All pods that files say now."""
        self.desired.update_source(FILE, pods)

    def api_node(self) -> APINode:
        """The node as the server has it."""
        return convert(self.server.get_plain("nodes", "", NODE), APINode)

    def seen(self, name: str = "web") -> Plain | None:
        """The pod as the server has it."""
        return self.server.get_plain("pods", "default", name)

    def phase(self, name: str = "web") -> str:
        """Its phase there."""
        return str((self.seen(name) or {}).get("status", {}).get("phase", ""))

    def condition(self, kind: str, name: str = "web") -> Plain:
        """One of its conditions there."""
        conditions: list[Plain] = (self.seen(name) or {}).get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == kind), {})

    async def until_ready(self, name: str = "web") -> None:
        await self.until(lambda: self.condition("Ready", name).get("status") == "True")

    def _changed(self, uid: PodUID) -> None:
        self.manager.changed(uid)
        self.mirrors.wake()

    def _deliver(self, updates: Sequence[PodUpdate]) -> None:
        for update in updates:
            self.workers.update(update)
        self.mirrors.wake()
        if self.memory is not None:
            self.memory.changed()

    def _memory(self, path: str) -> LastKnownPods:
        return LastKnownPods(
            path=path,
            listed=self.api.synced,
            now=lambda: LastKnown(
                version=VERSION, pods=tuple(self._with_status(p) for p in self.desired.given_by(API))
            ),
            recall=lambda state: self.desired.recall(API, state.pods),
            threads=InlineThreads(),
            recorder=self.record,
        )

    def _with_status(self, pod: Pod) -> Pod:
        view = self.census.view(PodUID(pod.metadata.uid))
        return pod if view is None else replace(pod, status=view.status)


def api_node(**changed: str) -> Plain:
    """The node object n1; `changed` are amounts of what pods may have."""
    return {
        "metadata": {"name": NODE, "labels": {"kubernetes.io/os": "linux"}},
        "status": {"allocatable": {**ROOM, **changed}},
    }


def api_pod(name: str = "web", *, requests: dict[str, str] | None = None, **spec: Any) -> Plain:
    """A pod bound to the node."""
    main = {
        "name": "main",
        "image": "docker.io/library/busybox:1.36",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": requests or {}},
    }
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {
            "nodeName": NODE,
            "containers": [main],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "Default",
            **spec,
        },
        "status": {
            "phase": "Pending",
            "qosClass": "BestEffort",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
        },
    }


@asynccontextmanager
async def running(
    server: FakeAPIServer, node: Node | None = None, *, static: Sequence[Pod] = (), memory: str = "", **amounts: str
) -> AsyncIterator[APIAgent]:
    """An agent that runs while the body does. Then nothing manages the pods any more. `memory`: the file in which it
    keeps the API's pods."""
    if server.get_plain("nodes", "", NODE) is None:
        server.put("nodes", api_node(**amounts))
    agent = APIAgent(server, node or Node(), memory)
    agent.static(*static)
    async with in_background(agent.run):
        yield agent


async def until(happened: Callable[[], object], seconds: float = 120.0) -> None:
    """Lets virtual time pass until it happened."""
    for _ in range(int(seconds / 0.05)):
        if happened():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"did not happen within {seconds} s")
