"""ResourceSlices of drivers that are gone are deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from glasslet.dra import slices
from glasslet.kubeapi.errors import NotFound, Unavailable
from tests.component.dra_world import GPU, dra_world, driver_in, put_slice
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.dra_driver import FakeDRADriver


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "GRACE", 0.3)
    monkeypatch.setattr(slices, "_FIRST_PAUSE", 0.02)


async def test_at_the_start_all_slices_of_this_node_go(tmp_path: Path) -> None:
    # behaviours.md §24: "the kubelet deletes a node's slices at start and when a driver is gone for 30 s"
    server = FakeAPIServer()
    put_slice(server, "mine")
    put_slice(server, "also-mine", driver="other.example")
    put_slice(server, "theirs", node="n2")
    async with dra_world(tmp_path, server) as world:
        await world.until(lambda: world.slice_names() == ["theirs"])


async def test_an_api_server_that_is_away_at_the_start_is_asked_again(tmp_path: Path) -> None:
    server = FakeAPIServer()
    put_slice(server, "mine")
    server.fail_next(Unavailable, verb="DELETE", path="/resourceslices", times=3)
    async with dra_world(tmp_path, server) as world:
        await world.until(lambda: world.findings())
        assert "ResourceSlices of earlier DRA drivers cannot be deleted" in world.findings()[0]
        await world.until(lambda: not world.slice_names())
        await world.until(lambda: not world.findings())


async def test_where_the_api_is_not_served_there_is_nothing_to_delete(tmp_path: Path) -> None:
    server = FakeAPIServer()
    server.fail_next(NotFound, verb="DELETE", path="/resourceslices", times=1000)
    async with dra_world(tmp_path, server) as world:
        await world.until(lambda: server.requests)
        await asyncio.sleep(0.1)
        assert len(server.requests) == 1
        assert not world.findings()


async def test_a_driver_that_is_gone_for_long_loses_its_slices_and_no_other_driver(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver, driver_in(world, "other.example"):
        await world.until(lambda: world.server.requests)
        put_slice(world.server, "gone")
        put_slice(world.server, "living", driver="other.example")
        await driver.unregister()
        await world.until(lambda: world.slice_names() == ["living"])


async def test_a_registered_driver_that_ended_loses_its_slices(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        await world.until(lambda: world.server.requests)
        put_slice(world.server, "gone")
        await driver.stop_serving()
        await world.until(lambda: not world.slice_names())


async def test_a_driver_that_registers_and_never_listens_loses_its_slices(tmp_path: Path) -> None:
    async with dra_world(tmp_path) as world:
        await world.until(lambda: world.server.requests)
        put_slice(world.server, "gone")
        driver = FakeDRADriver(tmp_path)
        await driver.register()
        await world.until(lambda: not world.slice_names())
        await driver.stop()


async def test_a_driver_that_is_back_within_the_grace_keeps_its_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "GRACE", 2.0)
    async with dra_world(tmp_path) as world, driver_in(world) as driver:
        await world.until(lambda: world.server.requests)
        put_slice(world.server, "kept")
        await driver.stop_serving()
        await world.until(lambda: not world.plugins.connected(GPU))
        await driver.serve()
        await world.until(lambda: world.plugins.connected(GPU))
        await asyncio.sleep(2.5)
        assert world.slice_names() == ["kept"]
