"""An API server that was away for long: ten seconds after its return the node knows and has told everything."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.api.meta import ObjectMeta
from glasslet.api.pod import Pod, PodSpec
from glasslet.kubeapi import paths
from glasslet.kubeapi.reflector import Change, Reflector
from tests.fakes.api_server import FakeAPIServer

pytestmark = pytest.mark.looptime


async def test_a_pod_made_after_a_long_absence_is_seen_within_ten_seconds() -> None:
    server = FakeAPIServer()
    seen: list[Change[Pod]] = []
    query = {"fieldSelector": "spec.nodeName=n1"}
    reflector = Reflector(client=server, path=paths.PODS, kind=Pod, query=query, on_change=seen.append)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reflector.run())
        await asyncio.sleep(1)
        server.down = True
        await asyncio.sleep(90)
        server.down = False
        pod = Pod(metadata=ObjectMeta(name="web", namespace="default"), spec=PodSpec(node_name="n1"))
        await server.create(paths.namespaced("default", "pods"), pod, Pod)
        await asyncio.sleep(10)
        task.cancel()
    assert [change.new.metadata.name for change in seen if change.new] == ["web"]
