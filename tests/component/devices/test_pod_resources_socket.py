"""The pod resources API on its socket: errors, the rate limit, and a socket that cannot be had at first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from glasslet.concurrency.services import running
from glasslet.devices import pod_resources, unix_server
from glasslet.devices._generated import podresources_pb2 as v1
from glasslet.devices.pod_resources import PodResources
from glasslet.devices.unix_server import UnixServer
from glasslet.record.store import Record
from glasslet.telemetry.metrics.catalog import Metrics
from tests.unit.devices.test_pod_resources import Node


def server(
    path: Path,
    record: Record,
    over_limit: Callable[[], bool] = lambda: False,
    known: Callable[[], bool] = lambda: True,
) -> UnixServer:
    node = Node()
    told = Metrics().pod_resources
    service = PodResources(
        pods=node, devices=node, shares=node, claims=node, metrics=told, over_limit=over_limit, known=known
    )
    return UnixServer(path=str(path), handlers=service.services(), recorder=record)


async def get(path: Path, name: str) -> Any:
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        call = channel.unary_unary(
            "/v1.PodResourcesLister/Get",
            request_serializer=v1.GetPodResourcesRequest.SerializeToString,
            response_deserializer=v1.GetPodResourcesResponse.FromString,
        )
        return await call(v1.GetPodResourcesRequest(pod_name=name, pod_namespace="default"))


async def test_a_pod_is_told_and_an_unknown_one_is_an_error(tmp_path: Path) -> None:
    it = server(tmp_path / "s", Record())
    async with running({"server": it.run}):
        await it.listening.wait()
        assert (await get(tmp_path / "s", "lives")).pod_resources.name == "lives"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await get(tmp_path / "s", "nobody")
        assert caught.value.details() == "pod nobody in namespace default not found"


async def test_an_answer_waits_until_the_pods_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that asks a restarted agent at once would be told that no pod has a device."""
    known = asyncio.Event()
    it = server(tmp_path / "s", Record(), known=known.is_set)
    async with running({"server": it.run}):
        await it.listening.wait()
        asked = asyncio.ensure_future(get(tmp_path / "s", "lives"))
        done, _ = await asyncio.wait([asked], timeout=0.2)
        assert not done
        known.set()
        assert (await asked).pod_resources.name == "lives"
    # The pods of a source that stays away are not waited for by every call.
    monkeypatch.setattr(pod_resources, "KNOWN_SECONDS", 0.0)
    it = server(tmp_path / "s", Record(), known=lambda: False)
    async with running({"server": it.run}):
        await it.listening.wait()
        assert (await get(tmp_path / "s", "lives")).pod_resources.name == "lives"


async def test_too_many_calls_are_refused(tmp_path: Path) -> None:
    # behaviours.md, constants: "podresources.qps 100", "podresources.burst 10"; http.md: "above it ResourceExhausted
    # "rejected by rate limit""
    it = server(tmp_path / "s", Record(), over_limit=lambda: True)
    async with running({"server": it.run}):
        await it.listening.wait()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await get(tmp_path / "s", "lives")
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert caught.value.details() == "rejected by rate limit"


async def test_a_socket_that_cannot_be_had_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_server, "RETRY_SECONDS", 0.05)
    record = Record()
    path = tmp_path / "s"
    path.mkdir()
    it = server(path, record)
    async with running({"server": it.run}):
        while not it.problem:
            await it_happens()
        assert any("cannot listen on" in text for text in record.findings())
        path.rmdir()
        await it.listening.wait()
        assert it.problem == ""
        assert record.findings() == []


async def test_a_path_that_is_too_long_is_told_in_words(tmp_path: Path) -> None:
    record = Record()
    it = server(tmp_path / ("x" * 120), record)
    async with running({"server": it.run}):
        while not it.problem:
            await it_happens()
    assert "the path is longer than 107 bytes" in it.problem


async def it_happens() -> None:
    """A moment passes."""

    await asyncio.sleep(0.005)
