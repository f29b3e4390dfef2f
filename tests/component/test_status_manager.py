"""The one writer of pod statuses, against an API server that says what the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.pod_status import PodStatus
from glasslet.kubeapi.errors import APIError, Conflict, NotFound, Unavailable
from glasslet.record.store import Record
from glasslet.status.manager import StatusManager

pytestmark = pytest.mark.looptime
POD = Pod(metadata=ObjectMeta(name="web", namespace="default", uid="u1"))
UID = PodUID("u1")


class Server:
    """Keeps the phase last written; `failures` are raised first, one per request."""

    def __init__(self) -> None:
        self.phase = ""
        self.requests = 0
        self.failures: list[APIError] = []
        self.latency = 0.0
        self.gone = False

    async def patch(self, path: str, body: Any, kind: type[Pod], **_: Any) -> Pod:
        self.requests += 1
        await asyncio.sleep(self.latency)
        if self.failures:
            failure = self.failures.pop(0)
            self.gone = isinstance(failure, NotFound | Conflict)
            raise failure
        self.phase = body["status"].get("phase", self.phase)
        return POD

    def api_pod(self, ref: PodRef) -> Pod | None:
        return None if self.gone else POD


@asynccontextmanager
async def managed(server: Server) -> AsyncIterator[StatusManager]:
    manager = StatusManager(recorder=Record(), client=server, pods=server)  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await asyncio.sleep(0)
        yield manager
        task.cancel()


async def test_published_status_reaches_the_server() -> None:
    server = Server()
    async with managed(server) as manager:
        manager.publish(POD, PodStatus(phase="Running"))
        await asyncio.sleep(1)
        assert manager.accepted(UID)
    assert server.phase == "Running"


async def test_statuses_published_meanwhile_are_coalesced_to_the_newest() -> None:
    server = Server()
    server.latency = 1.0
    async with managed(server) as manager:
        for phase in ("Pending", "Running", "Failed", "Succeeded"):
            manager.publish(POD, PodStatus(phase=phase))
            await asyncio.sleep(0.1)
        await asyncio.sleep(5)
    assert (server.phase, server.requests) == ("Succeeded", 2)


async def test_unavailable_server_is_asked_again_until_it_accepts() -> None:
    server = Server()
    server.failures = [Unavailable("PATCH", "down")] * 5
    async with managed(server) as manager:
        manager.publish(POD, PodStatus(phase="Running"))
        await asyncio.sleep(60)
    assert server.phase == "Running"


@pytest.mark.parametrize("error", [NotFound("PATCH", "gone"), Conflict("PATCH", "other uid")])
async def test_pod_that_is_gone_is_not_written_again(error: APIError) -> None:
    # behaviours §6: "A pod recreated with another UID is skipped."
    server = Server()
    server.failures = [error]
    async with managed(server) as manager:
        manager.publish(POD, PodStatus(phase="Running"))
        await asyncio.sleep(60)
    assert server.requests == 1


async def test_equal_status_is_not_sent_again() -> None:
    # behaviours §6: "Identical statuses are skipped"
    server = Server()
    async with managed(server) as manager:
        for _ in range(3):
            manager.publish(POD, PodStatus(phase="Running"))
            await asyncio.sleep(1)
    assert server.requests == 1


async def test_without_an_api_server_every_status_counts_as_accepted() -> None:
    manager = StatusManager(recorder=Record())
    manager.publish(POD, PodStatus(phase="Running"))
    assert manager.accepted(UID)
    assert manager.status_of(UID) == PodStatus(phase="Running")
