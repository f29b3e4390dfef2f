"""Volumes that are mounted with an SELinux label: what drivers get, and pods that want another one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from glasslet.api.pod import Pod
from glasslet.volumes.csi.selinux import LabelledMounts
from glasslet.volumes.errors import VolumeNotReady
from tests.component.csi_world import api_server, claim_pod, csi_world, driver_in, put_driver, put_volume
from tests.fakes.api_server import FakeAPIServer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

FILE = "system_u:object_r:container_file_t:s0"
LABELS = LabelledMounts(file=FILE, one_pod=True, all_modes=True)


@pytest.fixture
async def server() -> FakeAPIServer:
    found = api_server()
    put_volume(found, mountOptions=["noatime"])
    put_driver(found, seLinuxMount=True)
    return found


def labelled_pod(uid: str, level: str) -> Pod:
    context: dict[str, Any] = {"securityContext": {"seLinuxOptions": {"level": level}}}
    return claim_pod(uid, **context)


async def test_a_label_is_a_mount_option_and_the_runtime_labels_nothing(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server, LABELS) as world, driver_in(world) as driver:
        mounted = (await world.volumes.prepare(labelled_pod("u1", "s0:c1,c2")))["data"]
        for method in ("NodeStageVolume", "NodePublishVolume"):
            flags = list(driver.last(method).volume_capability.mount.mount_flags)
            assert flags == ["noatime", f'context="{FILE}:c1,c2"']
        assert not mounted.selinux_relabel
        note = json.loads((Path(mounted.path).parent / "vol_data.json").read_text())
        assert note["seLinuxMountContext"] == f"{FILE}:c1,c2"
        await world.tear_down(labelled_pod("u1", "s0:c1,c2"))


async def test_a_pod_with_another_label_waits_for_the_one_that_has_the_volume(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server, LABELS) as world, driver_in(world) as driver:
        first, second = labelled_pod("u1", "s0:c1,c2"), labelled_pod("u2", "s0:c3,c4")
        await world.prepare(first)
        with pytest.raises(VolumeNotReady, match="already mounted to a different pod with a different SELinux label"):
            await world.prepare(second)
        await world.tear_down(first)
        await world.prepare(second)
        flags = driver.last("NodeStageVolume").volume_capability.mount.mount_flags
        assert flags[-1] == f'context="{FILE}:c3,c4"'
        await world.tear_down(second)
        assert world.mounted() == []


async def test_what_an_earlier_agent_staged_with_another_label_is_undone_first(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server, LABELS) as world, driver_in(world) as driver:
        first = labelled_pod("u1", "s0:c1,c2")
        await world.prepare(first)
        driver.failing["NodeUnstageVolume"] = (StatusCode.INTERNAL, "busy")
        with pytest.raises(VolumeNotReady):
            await world.tear_down(first)
        driver.failing.clear()
        async with csi_world(tmp_path, server, LABELS) as later:
            await later.until(lambda: later.drivers.all())
            second = labelled_pod("u2", "s0:c3,c4")
            driver.calls.clear()
            await later.prepare(second)
            assert [call for call in driver.calls if call != "NodeGetInfo"] == [
                "NodeUnstageVolume",
                "NodeStageVolume",
                "NodePublishVolume",
            ]
            await later.tear_down(second)
            assert later.mounted() == []
