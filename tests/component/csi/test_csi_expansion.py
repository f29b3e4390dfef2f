"""Volumes that grow: real gRPC, an API server in memory. Needs root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from glasslet.host.mounts.syscalls import Mounts
from glasslet.kubeapi.errors import Unavailable
from glasslet.volumes.csi import publication
from glasslet.volumes.errors import VolumeNotReady
from tests.component.csi_world import CSIWorld, api_server, claim_pod, csi_world, driver_in, put_driver, put_volume
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.csi_driver import STAGE, Capability

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

ABLE = {STAGE, Capability.EXPAND_VOLUME}


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(publication, "_FIRST_PAUSE", 0.02)
    yield
    for entry in Mounts().table().at_or_below(str(tmp_path)):
        Mounts().unmount(entry.path)


@pytest.fixture
async def server() -> FakeAPIServer:
    found = api_server()
    put_driver(found)
    sizes(found, "1Gi", "1Gi")
    return found


def sizes(server: FakeAPIServer, volume: str, claim: str, status: str = "", **spec: Any) -> None:
    """The volume's size and that of its claim; `status` of the claim's expansion, "" without account of it."""
    told: dict[str, Any] = {"capacity": {"storage": claim}}
    if status:
        told |= {"allocatedResources": {"storage": volume}, "allocatedResourceStatuses": {"storage": status}}
    put_volume(server, capacity={"storage": volume}, claim_status=told, **spec)


def claim(world: CSIWorld) -> dict[str, Any]:
    found = world.server.get_plain("persistentvolumeclaims", "default", "c1")
    assert found is not None
    status: dict[str, Any] = found["status"]
    return status


async def test_a_volume_that_grew_while_mounted_grows_at_the_next_refresh(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=ABLE) as driver:
        path = await world.prepare(claim_pod())
        assert "NodeExpandVolume" not in driver.calls
        sizes(server, "2Gi", "1Gi", "NodeResizePending")
        await world.volumes.refresh(claim_pod())
        asked = driver.last("NodeExpandVolume")
        assert asked.capacity_range.required_bytes == 2 << 30
        assert asked.volume_path == path
        assert asked.staging_target_path == driver.last("NodeStageVolume").staging_target_path
        assert asked.volume_capability.access_mode.mode == 1
        assert claim(world)["capacity"] == {"storage": "2Gi"}
        assert claim(world).get("allocatedResourceStatuses", {}) == {}
        text = 'MountVolume.NodeExpandVolume succeeded for volume "pv1" n1'
        assert world.events == [("FileSystemResizeSuccessful", text)]
        await world.volumes.refresh(claim_pod())
        assert driver.calls.count("NodeExpandVolume") == 1


async def test_a_volume_that_grew_before_its_pod_came_grows_first(tmp_path: Path, server: FakeAPIServer) -> None:
    sizes(server, "2Gi", "1Gi")
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=ABLE) as driver:
        await world.prepare(claim_pod())
        assert driver.calls[-2:] == ["NodePublishVolume", "NodeExpandVolume"]
        assert claim(world)["capacity"] == {"storage": str(2 << 30)}


async def test_a_pod_does_not_start_with_a_volume_that_could_not_grow(tmp_path: Path, server: FakeAPIServer) -> None:
    sizes(server, "2Gi", "1Gi", "NodeResizePending")
    failing = {"NodeExpandVolume": (StatusCode.INTERNAL, "no")}
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=ABLE, failing=failing) as driver:
        with pytest.raises(VolumeNotReady, match="failed while expanding volume: rpc error: code = Internal desc = no"):
            await world.prepare(claim_pod())
        told = claim(world)["conditions"][0]
        assert (told["type"], told["status"]) == ("NodeResizeError", "True")
        assert claim(world)["allocatedResourceStatuses"] == {"storage": "NodeResizeInProgress"}
        driver.failing.clear()
        await world.prepare(claim_pod())
        assert claim(world)["capacity"] == {"storage": "2Gi"}
        assert claim(world)["conditions"] == []


async def test_a_pod_that_runs_keeps_its_volume_when_it_cannot_grow(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=ABLE) as driver:
        await world.prepare(claim_pod())
        sizes(server, "2Gi", "1Gi", "NodeResizePending")
        driver.failing["NodeExpandVolume"] = (StatusCode.INTERNAL, "no")
        await world.volumes.refresh(claim_pod())
        assert world.events[0][0] == "VolumeResizeFailed"
        assert len(world.mounted()) == 2


@pytest.mark.parametrize("code", [StatusCode.INVALID_ARGUMENT, StatusCode.OUT_OF_RANGE, StatusCode.NOT_FOUND])
async def test_a_size_that_the_driver_cannot_give_is_infeasible(
    tmp_path: Path, server: FakeAPIServer, code: StatusCode
) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=ABLE) as driver:
        await world.prepare(claim_pod())
        sizes(server, "2Gi", "1Gi", "NodeResizePending")
        driver.failing["NodeExpandVolume"] = (code, "too large")
        await world.volumes.refresh(claim_pod())
        assert claim(world)["allocatedResourceStatuses"] == {"storage": "NodeResizeInfeasible"}
        driver.failing.clear()
        await world.volumes.refresh(claim_pod())
        assert driver.calls.count("NodeExpandVolume") == 1


async def test_an_expansion_whose_end_is_not_known_is_tried_again_and_the_claim_is_not_told(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=ABLE) as driver:
        await world.prepare(claim_pod())
        sizes(server, "2Gi", "1Gi", "NodeResizePending")
        driver.failing["NodeExpandVolume"] = (StatusCode.DEADLINE_EXCEEDED, "slow")
        await world.volumes.refresh(claim_pod())
        assert "conditions" not in claim(world)
        driver.failing.clear()
        await world.volumes.refresh(claim_pod())
        assert claim(world)["capacity"] == {"storage": "2Gi"}


async def test_a_driver_that_cannot_grow_volumes_in_use_is_not_asked_again(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=ABLE) as driver:
        await world.prepare(claim_pod())
        sizes(server, "2Gi", "1Gi", "NodeResizePending")
        driver.failing["NodeExpandVolume"] = (StatusCode.FAILED_PRECONDITION, "in use")
        await world.volumes.refresh(claim_pod())
        await world.volumes.refresh(claim_pod())
        assert driver.calls.count("NodeExpandVolume") == 1
        await world.tear_down(claim_pod())
        driver.failing.clear()
        await world.prepare(claim_pod())
        assert claim(world)["capacity"] == {"storage": "2Gi"}


async def test_a_read_only_volume_does_not_grow(tmp_path: Path, server: FakeAPIServer) -> None:
    sizes(server, "2Gi", "1Gi", "NodeResizePending")
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=ABLE) as driver:
        await world.prepare(claim_pod(read_only=True))
        assert "NodeExpandVolume" not in driver.calls
        assert world.events[0][0] == "FileSystemResizeFailed"


async def test_the_api_server_away_keeps_no_volume_from_its_pod(tmp_path: Path, server: FakeAPIServer) -> None:
    sizes(server, "2Gi", "1Gi")
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=ABLE) as driver:
        await world.prepare(claim_pod("u1"))
        await world.objects.get("d.example")
        server.fail_next(Unavailable, path="persistentvolumeclaims", times=50)
        await world.prepare(claim_pod("u1"))
        assert driver.calls.count("NodePublishVolume") == 1
