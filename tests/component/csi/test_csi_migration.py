"""A volume of a type that left the tree is mounted by the CSI driver that took it over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from glasslet.api.codec import decode, encode
from glasslet.api.pod import Pod
from tests.component.csi_world import api_server, claim_pod, csi_world, driver_in, inline_pod, put_volume
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.csi_driver import FakeCSIDriver

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

DRIVER = "ebs.csi.aws.com"


@pytest.fixture
async def server() -> FakeAPIServer:
    found = api_server()
    found.put("csidrivers", {"metadata": {"name": DRIVER}, "spec": {"attachRequired": False, "fsGroupPolicy": "None"}})
    return found


def disk_pod() -> Pod:
    """A pod with the disk vol-1 as its own volume."""
    pod = inline_pod()
    plain = {"name": "data", "awsElasticBlockStore": {"volumeID": "aws://z/vol-1", "fsType": "ext4"}}
    (volume,) = decode(encode({"spec": {"containers": [], "volumes": [plain]}}), Pod).spec.volumes
    return replace(pod, spec=replace(pod.spec, volumes=(volume,)))


async def test_a_pods_own_disk_is_staged_published_and_undone(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world, DRIVER) as driver:
        path = await world.prepare(disk_pod())
        assert path.endswith(f"/volumes/kubernetes.io~csi/{DRIVER}-vol-1/mount")
        asked = driver.last("NodePublishVolume")
        assert asked.volume_id == "vol-1"
        assert asked.volume_capability.mount.fs_type == "ext4"
        await world.tear_down(disk_pod())
        assert moved(driver) == ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]
        assert world.mounted() == []


async def test_a_disk_behind_a_claim_is_the_drivers(tmp_path: Path, server: FakeAPIServer) -> None:
    put_volume(server, awsElasticBlockStore={"volumeID": "vol-2"})
    found = server.get_plain("persistentvolumes", "", "pv1")
    assert found is not None
    found["spec"].pop("csi", None)
    server.put("persistentvolumes", found)
    async with csi_world(tmp_path, server) as world, driver_in(world, DRIVER) as driver:
        await world.prepare(claim_pod())
        assert driver.last("NodeStageVolume").volume_id == "vol-2"
        await world.tear_down(claim_pod())
        assert world.mounted() == []


def moved(driver: FakeCSIDriver) -> list[str]:
    return [method for method in driver.calls if "Volume" in method]
