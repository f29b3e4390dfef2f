"""Volumes of CSI drivers in pods: real gRPC, real mounts. Needs root."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from glasslet.host.mounts.syscalls import Mounts
from glasslet.kubeapi.errors import Unavailable
from glasslet.volumes import attachment
from glasslet.volumes.csi import publication
from glasslet.volumes.csi.places import attachment_name
from glasslet.volumes.errors import VolumeNotReady
from tests.component.csi_world import (
    NODE,
    api_server,
    attach,
    claim_pod,
    csi_world,
    driver_in,
    inline_pod,
    put_driver,
    put_volume,
)
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.csi_driver import STAGE, Capability, FakeCSIDriver

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

ALL = ["NodeGetInfo", "NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(publication, "_FIRST_PAUSE", 0.02)
    yield
    for entry in Mounts().table().at_or_below(str(tmp_path)):
        Mounts().unmount(entry.path)


@pytest.fixture
async def server() -> FakeAPIServer:
    found = api_server()
    put_volume(found)
    put_driver(found)
    return found


async def test_a_volume_is_staged_published_and_undone_in_order(tmp_path: Path, server: FakeAPIServer) -> None:
    # behaviours.md §23: "Call order: (controller attach, VolumeAttachment attached) NodeGetCapabilities,
    # NodeStageVolume if STAGE_UNSTAGE_VOLUME, NodePublishVolume; ... end: NodeUnpublishVolume, NodeUnstageVolume."
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        path = await world.prepare(claim_pod())
        assert path == f"{tmp_path}/pods/u1/volumes/kubernetes.io~csi/pv1/mount"
        Path(path, "precious").write_text("kept")
        assert len(world.mounted()) == 2
        await world.tear_down(claim_pod())
        assert driver.calls == ALL
        assert world.mounted() == []
        assert not (tmp_path / "pods/u1/volumes/kubernetes.io~csi/pv1").exists()
        assert list((tmp_path / "plugins/kubernetes.io/csi/d.example").iterdir()) == []
        assert (tmp_path / "plugins/d.example/data/h-pv1/precious").read_text() == "kept"


async def test_requests_hold_what_the_volume_says(tmp_path: Path, server: FakeAPIServer) -> None:
    put_volume(server, csi={"fsType": "ext4", "volumeAttributes": {"kind": "ssd"}}, mountOptions=["noatime", "nodev"])
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        target = await world.prepare(claim_pod(read_only=True))
        staged, published = driver.last("NodeStageVolume"), driver.last("NodePublishVolume")
        for asked in (staged, published):
            assert asked.volume_id == "h-pv1"
            assert dict(asked.volume_context) == {"kind": "ssd"}
            assert asked.volume_capability.mount.fs_type == "ext4"
            assert list(asked.volume_capability.mount.mount_flags) == ["noatime", "nodev"]
            assert asked.volume_capability.access_mode.mode == 1
        # behaviours.md §23: "Staging path <root>/plugins/kubernetes.io/csi/<driver>/<sha256 hex of
        # volumeHandle>/globalmount, vol_data.json beside it."
        folder = Path(staged.staging_target_path).parent
        assert folder.parent == tmp_path / "plugins/kubernetes.io/csi/d.example"
        assert json.loads((folder / "vol_data.json").read_text()) == {
            "driverName": "d.example",
            "volumeHandle": "h-pv1",
        }
        assert published.staging_target_path == staged.staging_target_path
        assert published.target_path == target
        assert published.readonly is True


async def test_the_note_of_a_published_volume_is_the_go_kubelets(tmp_path: Path, server: FakeAPIServer) -> None:
    # behaviours.md §23: "vol_data.json of a pod: specVolID, volumeHandle, driverName, nodeName, attachmentID,
    # volumeLifecycleMode (and seLinuxMountContext)"; "Attach ID: csi-<sha256 hex of volumeHandle+driver+node>."
    async with csi_world(tmp_path, server) as world, driver_in(world):
        path = Path(await world.prepare(claim_pod()))
        text = (path.parent / "vol_data.json").read_text()
        attachment = "csi-bbd3ae2a05ba3f02dcd6b7ddbed9f1fab11d1adb6adb2e4ef4e1d5ac94ae5a8c"
        note = json.loads(text)
        assert len(note.pop("attachmentID")) == len(attachment)
        assert note == {
            "driverName": "d.example",
            "nodeName": "n1",
            "specVolID": "pv1",
            "volumeHandle": "h-pv1",
            "volumeLifecycleMode": "Persistent",
        }
        assert text.endswith("}\n")
        assert list(json.loads(text)) == sorted(json.loads(text))


async def test_two_pods_share_one_staging_that_ends_with_the_last(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        await asyncio.gather(world.prepare(claim_pod("u1")), world.prepare(claim_pod("u2")))
        assert driver.calls.count("NodeStageVolume") == 1
        await world.tear_down(claim_pod("u1"))
        assert "NodeUnstageVolume" not in driver.calls
        await world.tear_down(claim_pod("u2"))
        assert driver.calls[-1] == "NodeUnstageVolume"
        assert world.mounted() == []


async def test_a_driver_that_does_not_stage_is_only_asked_to_publish(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=set()) as driver:
        await world.prepare(claim_pod())
        assert driver.last("NodePublishVolume").staging_target_path == ""
        await world.tear_down(claim_pod())
        assert driver.calls == ["NodeGetInfo", "NodePublishVolume", "NodeUnpublishVolume"]


async def test_what_is_published_is_not_published_again(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        await world.prepare(claim_pod())
        await world.prepare(claim_pod())
        await world.volumes.refresh(claim_pod())
        assert driver.calls == ALL[:3]


@pytest.mark.parametrize(
    ("modes", "multi", "wanted"),
    [
        (["ReadWriteOnce"], False, 1),
        (["ReadWriteOnce"], True, 7),
        (["ReadOnlyMany"], True, 3),
        (["ReadWriteMany"], False, 5),
        (["ReadWriteOncePod"], False, 1),
        (["ReadWriteOncePod"], True, 6),
        (["ReadWriteMany", "ReadWriteOnce"], False, 5),
        ([], False, 1),
    ],
)
async def test_the_first_access_mode_counts(
    tmp_path: Path, server: FakeAPIServer, modes: list[str], multi: bool, wanted: int
) -> None:
    put_volume(server, accessModes=modes)
    able = {STAGE, Capability.SINGLE_NODE_MULTI_WRITER} if multi else {STAGE}
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=able) as driver:
        await world.prepare(claim_pod())
        assert driver.last("NodePublishVolume").volume_capability.access_mode.mode == wanted


async def test_a_second_pod_does_not_get_a_volume_for_one_pod(tmp_path: Path, server: FakeAPIServer) -> None:
    put_volume(server, accessModes=["ReadWriteOncePod"])
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        await world.prepare(claim_pod("u1"))
        with pytest.raises(VolumeNotReady, match="already in use by another pod"):
            await world.prepare(claim_pod("u2"))
        assert driver.calls.count("NodePublishVolume") == 1


async def test_a_volume_waits_for_its_attachment_and_the_driver_gets_its_metadata(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    # behaviours.md §23: "publish_context = status.attachmentMetadata of the VolumeAttachment; without attach
    # requirement none."
    put_driver(server, attachRequired=True)
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        await world.objects.get("d.example")
        preparing = asyncio.create_task(world.prepare(claim_pod()))
        unique = "kubernetes.io/csi/d.example^h-pv1"
        await world.until(lambda: world.node().get("status", {}).get("volumesInUse") == [unique])
        assert "NodeStageVolume" not in driver.calls
        attach(server, attachmentMetadata={"device": "/dev/x"})
        await preparing
        for method in ("NodeStageVolume", "NodePublishVolume"):
            assert dict(driver.last(method).publish_context) == {"device": "/dev/x"}
        world.report()
        assert world.node()["status"]["volumesInUse"] == [unique]
        await world.tear_down(claim_pod())
        assert world.node()["status"]["volumesInUse"] == []


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"attached": False}, "volume h-pv1 is not attached for volume attachment csi-"),
        ({"attached": False, "attachError": {"message": "no such disk"}}, "no such disk"),
    ],
)
async def test_an_attachment_that_is_none_is_told(
    tmp_path: Path, server: FakeAPIServer, status: dict[str, Any], said: str
) -> None:
    put_driver(server, attachRequired=True)
    attach(server, **status)
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        await world.objects.get("d.example")
        with pytest.raises(VolumeNotReady, match=f'^MountVolume.WaitForAttach failed for volume "pv1" : {said}'):
            await world.prepare(claim_pod())
        assert driver.calls == ["NodeGetInfo"]


async def test_secrets_reach_the_driver_and_no_error(tmp_path: Path, server: FakeAPIServer) -> None:
    for name in ("stage", "publish"):
        server.put("secrets", {"metadata": {"namespace": "ns", "name": name}, "data": {"key": "aHVudGVyMg=="}})
    references = {
        "nodeStageSecretRef": {"namespace": "ns", "name": "stage"},
        "nodePublishSecretRef": {"namespace": "ns", "name": "publish"},
    }
    put_volume(server, csi=references)
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        driver.failing["NodePublishVolume"] = (StatusCode.UNAUTHENTICATED, "bad key hunter2")
        with pytest.raises(VolumeNotReady) as caught:
            await world.prepare(claim_pod())
        assert dict(driver.last("NodeStageVolume").secrets) == {"key": "hunter2"}
        assert dict(driver.last("NodePublishVolume").secrets) == {"key": "hunter2"}
        assert caught.value.message == (
            'MountVolume.SetUp failed for volume "pv1" : rpc error: code = Unauthenticated desc = bad key ***'
        )


async def test_a_secret_that_is_missing_is_named_and_the_driver_is_not_asked(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    put_volume(server, csi={"nodeStageSecretRef": {"namespace": "ns", "name": "gone"}})
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        with pytest.raises(VolumeNotReady, match="fetching NodeStageSecretRef ns/gone failed"):
            await world.prepare(claim_pod())
        assert driver.calls == ["NodeGetInfo"]


async def test_an_inline_volume_is_published_without_staging(tmp_path: Path, server: FakeAPIServer) -> None:
    # behaviours.md §23: "Inline ephemeral volumes: no staging, handle csi-<sha256 hex of pod UID followed by volume
    # name>, lifecycle mode Ephemeral."
    put_driver(server, volumeLifecycleModes=["Ephemeral"], podInfoOnMount=True, attachRequired=True)
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        path = await world.prepare(inline_pod(volumeAttributes={"size": "1"}, fsType="xfs", readOnly=True))
        asked = driver.last("NodePublishVolume")
        assert asked.volume_id.startswith("csi-")
        assert len(asked.volume_id) == 68
        assert (asked.staging_target_path, asked.readonly, asked.volume_capability.mount.fs_type) == ("", True, "xfs")
        # behaviours.md §23: "keys with podInfoOnMount: csi.storage.k8s.io/pod.name, pod.namespace, pod.uid,
        # serviceAccount.name, ephemeral"
        keys = "csi.storage.k8s.io/"
        assert dict(asked.volume_context) == {
            "size": "1",
            f"{keys}pod.name": "u1",
            f"{keys}pod.namespace": "default",
            f"{keys}pod.uid": "u1",
            f"{keys}serviceAccount.name": "sa",
            f"{keys}ephemeral": "true",
        }
        assert json.loads((Path(path).parent / "vol_data.json").read_text())["volumeLifecycleMode"] == "Ephemeral"
        assert world.in_use.names() == ()
        await world.tear_down(inline_pod())
        assert driver.calls == ["NodeGetInfo", "NodePublishVolume", "NodeUnpublishVolume"]


@pytest.mark.parametrize("modes", [None, ["Persistent"]])
async def test_a_driver_without_inline_volumes_is_not_asked_for_one(
    tmp_path: Path, server: FakeAPIServer, modes: list[str] | None
) -> None:
    if modes is None:
        server.remove("csidrivers", "", "d.example")
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        with pytest.raises(VolumeNotReady, match=r'volume mode "Ephemeral" not supported by driver d.example'):
            await world.prepare(inline_pod())
        assert driver.calls == ["NodeGetInfo"]


async def test_tokens_are_given_anew_at_each_republish(tmp_path: Path, server: FakeAPIServer) -> None:
    asked: list[dict[str, Any]] = []

    def grant(path: str, body: dict[str, Any]) -> dict[str, Any]:
        asked.append(body)
        ends = "2020-01-01T00:00:00Z"
        return body | {"status": {"token": f"secret-{len(asked)}", "expirationTimestamp": ends}}

    server.answer("POST", r"/serviceaccounts/sa/token$", grant)
    put_driver(server, tokenRequests=[{"audience": "vault", "expirationSeconds": 600}], requiresRepublish=True)
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        await world.prepare(claim_pod())
        key = "csi.storage.k8s.io/serviceAccount.tokens"
        given = json.loads(driver.last("NodePublishVolume").volume_context[key])
        assert given["vault"]["token"] == "secret-1"
        assert asked[0]["spec"]["boundObjectRef"]["uid"] == "u1"
        assert key not in driver.last("NodeStageVolume").volume_context
        await world.volumes.refresh(claim_pod())
        assert driver.calls == [*ALL[:3], "NodePublishVolume"]
        driver.failing["NodePublishVolume"] = (StatusCode.PERMISSION_DENIED, "no secret-2")
        # behaviours.md §23: "A failed republish (requiresRepublish) keeps the mounted directory."
        await world.volumes.refresh(claim_pod())
        assert len(world.mounted()) == 2
        reason, text = world.events[-1]
        assert reason == "FailedMount"
        assert "PermissionDenied" in text


@pytest.mark.parametrize(
    ("policy", "fs_type", "modes", "given"),
    [
        ("ReadWriteOnceWithFSType", "ext4", ["ReadWriteOnce"], True),
        ("ReadWriteOnceWithFSType", "", ["ReadWriteOnce"], False),
        ("ReadWriteOnceWithFSType", "ext4", ["ReadWriteMany"], False),
        ("File", "", ["ReadWriteMany"], True),
        ("None", "ext4", ["ReadWriteOnce"], False),
    ],
)
async def test_the_group_owns_a_volume_as_the_drivers_policy_says(
    tmp_path: Path, server: FakeAPIServer, policy: str, fs_type: str, modes: list[str], given: bool
) -> None:
    put_driver(server, fsGroupPolicy=policy)
    put_volume(server, csi={"fsType": fs_type}, accessModes=modes)
    async with csi_world(tmp_path, server) as world, driver_in(world):
        path = await world.prepare(claim_pod(securityContext={"fsGroup": 4242}))
        assert (os.stat(path).st_gid == 4242) is given


async def test_a_driver_that_takes_the_group_gets_it_and_the_agent_changes_nothing(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    put_driver(server, fsGroupPolicy="File")
    able = {STAGE, Capability.VOLUME_MOUNT_GROUP}
    async with csi_world(tmp_path, server) as world, driver_in(world, capabilities=able) as driver:
        path = await world.prepare(claim_pod(securityContext={"fsGroup": 4242}))
        for method in ("NodeStageVolume", "NodePublishVolume"):
            assert driver.last(method).volume_capability.mount.volume_mount_group == "4242"
        assert os.stat(path).st_gid != 4242


async def test_a_disk_without_file_system_is_handed_over_and_undone(tmp_path: Path, server: FakeAPIServer) -> None:
    # behaviours.md §23: "Block: staging <root>/plugins/kubernetes.io/csi/volumeDevices/staging/<pv>, publish
    # .../publish/<pv>/<pod uid>, data .../<pv>/data/vol_data.json, device link .../<pv>/dev/<pod uid>; pod link
    # <root>/pods/<uid>/volumeDevices/kubernetes.io~csi/<pv>."
    put_volume(server, volumeMode="Block")
    base = tmp_path / "plugins/kubernetes.io/csi/volumeDevices"
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        device = await world.prepare(claim_pod(block=True))
        assert device == f"{base}/publish/pv1/u1"
        staged, published = driver.last("NodeStageVolume"), driver.last("NodePublishVolume")
        assert staged.staging_target_path == published.staging_target_path == f"{base}/staging/pv1"
        assert staged.volume_capability.HasField("block")
        assert published.target_path == device
        link = tmp_path / "pods/u1/volumeDevices/kubernetes.io~csi/pv1"
        assert os.readlink(link) == device
        assert (base / "pv1/dev/u1").exists()
        assert world.mounted() == [f"{base}/pv1/dev/u1"]
        assert json.loads((base / "pv1/data/vol_data.json").read_text())["specVolID"] == "pv1"
        await world.tear_down(claim_pod(block=True))
        assert driver.calls == ALL
        assert world.mounted() == []
        assert not os.path.lexists(link)
        assert sorted(os.listdir(base)) == ["publish", "staging"]


async def test_a_final_error_of_publish_leaves_no_trace(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        driver.failing["NodePublishVolume"] = (StatusCode.INVALID_ARGUMENT, "no")
        with pytest.raises(VolumeNotReady, match=r"code = InvalidArgument desc = no"):
            await world.prepare(claim_pod())
        assert not (tmp_path / "pods/u1/volumes/kubernetes.io~csi/pv1").exists()
        await world.tear_down(claim_pod())
        assert driver.calls[-2:] == ["NodePublishVolume", "NodeUnstageVolume"]


async def test_a_final_error_of_stage_leaves_no_trace_and_nothing_to_undo(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        driver.failing["NodeStageVolume"] = (StatusCode.INTERNAL, "no")
        with pytest.raises(VolumeNotReady, match=r'^MountVolume.MountDevice failed for volume "pv1" : rpc error'):
            await world.prepare(claim_pod())
        assert list((tmp_path / "plugins/kubernetes.io/csi/d.example").iterdir()) == []
        await world.tear_down(claim_pod())
        assert driver.calls == ["NodeGetInfo", "NodeStageVolume"]


@pytest.mark.parametrize("method", ["NodeStageVolume", "NodePublishVolume"])
async def test_a_call_whose_end_is_not_known_is_undone_with_its_pod(
    tmp_path: Path, server: FakeAPIServer, method: str
) -> None:
    # behaviours.md §23: "leave the mount "uncertain" (unstage/unpublish is still called)"
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        driver.failing[method] = (StatusCode.DEADLINE_EXCEEDED, "slow")
        with pytest.raises(VolumeNotReady):
            await world.prepare(claim_pod())
        await world.tear_down(claim_pod())
        undone = ALL[3:] if method == "NodePublishVolume" else ["NodeUnstageVolume"]
        assert driver.calls[driver.calls.index(method) + 1 :] == undone


async def test_a_driver_that_is_away_between_tries_does_not_make_an_uncertain_volume_forgotten(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        driver.failing["NodeStageVolume"] = (StatusCode.DEADLINE_EXCEEDED, "slow")
        with pytest.raises(VolumeNotReady):
            await world.prepare(claim_pod())
        driver.failing["NodeGetCapabilities"] = (StatusCode.UNAVAILABLE, "down")
        with pytest.raises(VolumeNotReady):
            await world.prepare(claim_pod())
        driver.failing.clear()
        await world.tear_down(claim_pod())
        assert driver.calls[-1] == "NodeUnstageVolume"


async def test_a_hung_driver_is_a_named_wait_and_hurts_no_other_driver(tmp_path: Path, server: FakeAPIServer) -> None:
    put_volume(server, "pv2", claim="c2", csi={"driver": "e.example"})
    server.put(
        "csidrivers", {"metadata": {"name": "e.example"}, "spec": {"attachRequired": False, "fsGroupPolicy": "None"}}
    )
    async with csi_world(tmp_path, server) as world, driver_in(world) as hung, driver_in(world, "e.example"):
        hung.held.add("NodeStageVolume")
        waiting = asyncio.create_task(world.prepare(claim_pod("u1")))
        await world.until(lambda: "NodeStageVolume" in hung.calls)
        assert "CSI driver d.example: NodeStageVolume of volume pv1" in [wait.on for wait in world.record.live_waits()]
        await world.prepare(claim_pod("u2", claim="c2"))
        hung.go_on.set()
        await waiting


async def test_an_unregistered_driver_is_named(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world:
        with pytest.raises(VolumeNotReady) as caught:
            await world.prepare(claim_pod())
        assert caught.value.message == (
            'MountVolume.MountDevice failed for volume "pv1" : kubernetes.io/csi: attacher.MountDevice failed to '
            "create newCsiDriverClient: driver name d.example not found in the list of registered CSI drivers"
        )


async def test_a_killed_agent_leaves_nothing_that_the_next_does_not_undo(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as first, driver_in(first) as driver:
        await first.prepare(claim_pod())
    async with csi_world(tmp_path, server) as second:
        await driver.serve()
        await driver.register()
        await second.until(lambda: second.drivers.all())
        assert second.in_use.names() == ("kubernetes.io/csi/d.example^h-pv1",) or not second.objects.attaches(
            "d.example"
        )
        await second.tear_down(claim_pod())
        assert driver.calls[-2:] == ALL[3:]
        assert second.mounted() == []
        await driver.stop()


async def test_after_a_restart_volumes_are_made_certain_once(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as first, driver_in(first) as driver:
        await first.prepare(claim_pod())
    async with csi_world(tmp_path, server) as second:
        await driver.serve()
        await driver.register()
        await second.until(lambda: second.drivers.all())
        await second.volumes.refresh(claim_pod())
        await second.volumes.refresh(claim_pod())
        assert driver.calls == [*ALL[:3], "NodeGetInfo", *ALL[1:3]]
        await driver.stop()


async def test_after_a_restart_a_mounted_volume_serves_while_driver_and_api_server_are_away(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server) as first, driver_in(first):
        path = await first.prepare(claim_pod())
    async with csi_world(tmp_path, server) as second:
        assert await second.prepare(claim_pod()) == path
        assert "not found in the list of registered CSI drivers" in second.events[0][1]


async def test_what_was_staged_and_left_is_in_use_until_it_is_swept(
    tmp_path: Path, server: FakeAPIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_driver(server, attachRequired=True)
    attach(server)
    async with csi_world(tmp_path, server) as first, driver_in(first) as driver:
        await first.objects.get("d.example")
        await first.prepare(claim_pod())
        driver.failing["NodeUnstageVolume"] = (StatusCode.UNAVAILABLE, "later")
        with pytest.raises(VolumeNotReady, match=r"attacher.UnmountDevice failed: rpc error: code = Unavailable"):
            await first.tear_down(claim_pod())
        driver.failing.clear()
    async with csi_world(tmp_path, server) as second:
        await second.objects.get("d.example")
        assert second.in_use.names() == ("kubernetes.io/csi/d.example^h-pv1",)
        await driver.serve()
        await driver.register()
        await second.until(lambda: second.drivers.all())
        await second.staging.sweep()
        assert driver.calls[-1] == "NodeUnstageVolume"
        assert second.in_use.names() == ()
        assert second.mounted() == []
        await driver.stop()


async def test_a_lost_note_is_made_up_for_by_the_mount_table(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        path = Path(await world.prepare(claim_pod()))
        (path.parent / "vol_data.json").write_text("")
        await world.tear_down(claim_pod())
        assert driver.calls == ALL
        assert world.mounted() == []


async def test_data_is_never_removed_through_a_mount_that_the_driver_left(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        path = Path(await world.prepare(claim_pod()))
        (path / "precious").write_text("kept")
        driver.failing["NodeUnpublishVolume"] = (StatusCode.UNKNOWN, "busy")
        with pytest.raises(VolumeNotReady, match=r"Unmounter.TearDownAt failed: rpc error: code = Unknown desc = busy"):
            await world.tear_down(claim_pod())
        assert (path / "precious").read_text() == "kept"


async def test_a_pod_whose_mount_is_cancelled_is_undone(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        driver.held.add("NodePublishVolume")
        preparing = asyncio.create_task(world.prepare(claim_pod()))
        await world.until(lambda: "NodePublishVolume" in driver.calls)
        preparing.cancel()
        await asyncio.gather(preparing, return_exceptions=True)
        driver.held.clear()
        await world.tear_down(claim_pod())
        assert driver.calls == ALL
        assert world.mounted() == []


async def test_an_agent_whose_api_server_is_away_does_not_forget_a_volume(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        await world.prepare(claim_pod())
        server.fail_next(Unavailable, times=100)
        await world.volumes.refresh(claim_pod())
        await world.tear_down(claim_pod())
        assert driver.calls == ALL


async def test_directories_are_private_to_the_agent(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world):
        path = Path(await world.prepare(claim_pod()))
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o750
        assert stat.S_IMODE((path.parent / "vol_data.json").stat().st_mode) == 0o600


async def test_the_list_of_volumes_has_pods_mounts_sizes_and_drivers(tmp_path: Path, server: FakeAPIServer) -> None:
    async with csi_world(tmp_path, server) as world, driver_in(world) as driver:
        await asyncio.gather(world.prepare(claim_pod("u1")), world.prepare(claim_pod("u2")))
        found = await world.inventory()
        assert [(row.pod, row.uid, row.volume, row.driver, row.handle) for row in found.volumes] == [
            ("default/db", "u1", "pv1", "d.example", "h-pv1"),
            ("", "u2", "pv1", "d.example", "h-pv1"),
        ]
        assert all(row.mounted and row.capacity > row.used > 0 for row in found.volumes)
        assert [(row.handle, row.users, bool(row.mounted)) for row in found.staged] == [
            ("h-pv1", ("default/db", "u2"), True)
        ]
        assert [(row.name, row.endpoint) for row in found.drivers] == [("d.example", str(driver.socket))]


async def test_a_disk_without_file_system_is_in_the_list(tmp_path: Path, server: FakeAPIServer) -> None:
    put_volume(server, volumeMode="Block")
    async with csi_world(tmp_path, server) as world, driver_in(world):
        await world.prepare(claim_pod(block=True))
        found = await world.inventory()
        assert [(row.volume, row.device, row.driver) for row in found.volumes] == [("pv1", True, "d.example")]
        assert [row.users for row in found.staged] == [("default/db",)]


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("method", ALL[1:])
async def test_an_agent_killed_during_any_call_leaves_what_the_next_one_undoes(
    tmp_path: Path, server: FakeAPIServer, method: str, done: bool, block: bool
) -> None:
    """The driver may have done its work, or not: nothing is left in either case, and no data is lost."""
    if block:
        put_volume(server, volumeMode="Block")
    it = claim_pod(block=block)
    async with csi_world(tmp_path, server) as first, driver_in(first) as driver:
        held = driver.held_after if done else driver.held

        async def life() -> None:
            path = await first.prepare(it)
            if not block:
                Path(path, "precious").write_text("kept")
            await first.tear_down(it)

        held.add(method)
        living = asyncio.create_task(life())
        await first.until(lambda: method in (driver.finished if done else driver.calls))
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)
        held.clear()
        driver.go_on.set()
    async with csi_world(tmp_path, server) as second:
        await driver.serve()
        await driver.register()
        await second.until(lambda: second.drivers.all())
        await second.tear_down(it)
        await second.staging.sweep()
        assert second.mounted() == []
        assert (driver.staged, driver.published) == ({}, {})
        assert second.in_use.names() == ()
        assert not list((tmp_path / "pods/u1").glob("vol*/kubernetes.io~csi/*"))
        if not block and method in ALL[3:]:
            assert (tmp_path / "plugins/d.example/data/h-pv1/precious").read_text() == "kept"
        await driver.stop()


async def test_a_driver_that_comes_back_under_another_socket_undoes_what_its_older_self_did(
    tmp_path: Path, server: FakeAPIServer
) -> None:
    async with csi_world(tmp_path, server) as world:
        async with driver_in(world) as older:
            path = await world.prepare(claim_pod())
            Path(path, "precious").write_text("kept")
            data = older.folder / "data"
        await world.until(lambda: not world.drivers.all())
        with pytest.raises(VolumeNotReady, match="not found in the list"):
            await world.tear_down(claim_pod())
        assert world.mounted()
        assert Path(path, "precious").read_text() == "kept"
        newer = FakeCSIDriver(tmp_path / "newer", mounts=Mounts())
        newer.registry = older.registry
        await newer.serve()
        await newer.register("newer.sock")
        await world.until(lambda: newer.told)
        await world.tear_down(claim_pod())
        assert newer.calls == ["NodeGetInfo", "NodeUnpublishVolume", "NodeUnstageVolume"]
        assert world.mounted() == []
        assert (data / "h-pv1" / "precious").read_text() == "kept"
        await newer.stop()


async def test_a_volume_that_is_not_attached_in_time_says_what_the_attacher_said(
    tmp_path: Path, server: FakeAPIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachment, "WAIT_SECONDS", 0.1)
    put_driver(server, attachRequired=True)
    async with csi_world(tmp_path, server) as world, driver_in(world):
        with pytest.raises(VolumeNotReady, match=r"is not attached according to the node's status: .*GET error"):
            await world.prepare(claim_pod())
        name = attachment_name("h-pv1", "d.example", NODE)
        failed = {"attached": False, "attachError": {"message": "rpc error: code = ResourceExhausted desc = full"}}
        server.put("volumeattachments", {"metadata": {"name": name}, "status": failed})
        with pytest.raises(VolumeNotReady, match=r"node's status: rpc error: code = ResourceExhausted desc = full"):
            await world.prepare(claim_pod())
