"""Figures of CSI volumes, as drivers give them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from grpc import StatusCode

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.services import running
from glasslet.exchange.volume import ReportedFigures
from glasslet.volumes.csi._generated import csi_pb2 as messages
from glasslet.volumes.csi.figures import DriverFigures, OpenVolume, figures_of
from tests.component.csi_world import CSIWorld, csi_world, driver_in
from tests.fakes.csi_driver import Capability, FakeCSIDriver

Usage = messages.VolumeUsage
USAGE = [
    Usage(total=100, used=60, available=40, unit=Usage.BYTES),
    Usage(total=9, used=4, available=5, unit=Usage.INODES),
]
ABLE = {Capability.GET_VOLUME_STATS, Capability.VOLUME_CONDITION}
POD = PodRef("default", "db", PodUID("u1"))


def opened(driver: FakeCSIDriver, volume: str = "data", path: str = "/p") -> OpenVolume:
    driver.published[path] = "h1"
    return OpenVolume(POD, volume, "pv1", driver.name, "h1", path)


def figures(world: CSIWorld, *volumes: OpenVolume, conditions: bool = False) -> DriverFigures:
    return DriverFigures(calls=world.calls, volumes=lambda: volumes, period=60, emit=world._emit, conditions=conditions)


async def test_a_volume_has_what_its_driver_says(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world, driver_in(world, capabilities=ABLE, usage=USAGE) as driver:
        found = figures(world, opened(driver))
        async with running({"figures": found.run}):
            await world.until(lambda: found.of("u1"))
        one = found.of("u1")["data"]
        assert (one.capacity, one.used, one.available) == (100, 60, 40)
        assert (one.inodes, one.inodes_used, one.inodes_free) == (9, 4, 5)
        assert one.abnormal is None
        assert found.of("u2") == {}


async def test_a_driver_without_the_capability_is_not_asked(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world, driver_in(world, capabilities=set()) as driver:
        found = figures(world, opened(driver))
        await found.ask(opened(driver))
        assert "NodeGetVolumeStats" not in driver.calls
        assert found.of("u1") == {}


async def test_a_driver_that_fails_leaves_the_last_figures(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world, driver_in(world, capabilities=ABLE, usage=USAGE) as driver:
        found = figures(world, opened(driver))
        await found.ask(opened(driver))
        driver.failing["NodeGetVolumeStats"] = (StatusCode.INTERNAL, "no")
        await found.ask(opened(driver))
        assert found.of("u1")["data"].capacity == 100


async def test_a_driver_that_hangs_keeps_no_other_volume_without_figures(tmp_path: Path) -> None:
    async with (
        csi_world(tmp_path) as world,
        driver_in(world, capabilities=ABLE, usage=USAGE) as hung,
        driver_in(world, "e.example", capabilities=ABLE, usage=USAGE) as well,
    ):
        hung.held.add("NodeGetVolumeStats")
        found = figures(world, opened(hung, "slow"), opened(well, "quick"))
        async with running({"figures": found.run}):
            await world.until(lambda: found.of("u1"))
            assert set(found.of("u1")) == {"quick"}
            hung.go_on.set()
            await world.until(lambda: len(found.of("u1")) == 2)


@pytest.mark.parametrize("gate", [True, False])
async def test_an_unhealthy_volume_is_told_where_the_gate_is_on(tmp_path: Path, gate: bool) -> None:
    condition = messages.VolumeCondition(abnormal=True, message="disk is dying")
    async with csi_world(tmp_path) as world, driver_in(world, capabilities=ABLE, condition=condition) as driver:
        found = figures(world, opened(driver), conditions=gate)
        await found.ask(opened(driver))
        assert found.of("u1")["data"].abnormal is (True if gate else None)
        told = [("VolumeConditionAbnormal", "Volume data: disk is dying")]
        assert world.events == (told if gate else [])


def test_a_unit_that_is_left_out_is_nought() -> None:
    assert figures_of(USAGE[:1], abnormal=None, now=7) == ReportedFigures(
        taken_at=7, capacity=100, available=40, used=60, inodes=0, inodes_free=0, inodes_used=0
    )


async def test_figures_of_a_volume_that_is_gone_go(tmp_path: Path) -> None:
    async with csi_world(tmp_path) as world, driver_in(world, capabilities=ABLE, usage=USAGE) as driver:
        there = [opened(driver)]
        found = DriverFigures(calls=world.calls, volumes=lambda: list(there), period=0.01, emit=world._emit)
        async with running({"figures": found.run}):
            await world.until(lambda: found.of("u1"))
            there.clear()
            await world.until(lambda: not found.of("u1"))
            await asyncio.sleep(0)
