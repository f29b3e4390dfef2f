"""iscsi volumes with programs in the place of iscsiadm(8) and mount(8), and the kernel's mounts: needs root."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.codec import convert
from glasslet.api.node import AttachedVolume, Node, NodeStatus
from glasslet.api.object import PodUID
from glasslet.api.persistent_volume import PersistentVolume
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.volume import Volume
from glasslet.host.files.layout import RootLayout
from glasslet.host.mounts.syscalls import Mounts
from glasslet.host.threads import HostThreads
from glasslet.volumes.attachment import LOOK_EVERY, ControllerAttachment, VolumesInUse
from glasslet.volumes.errors import VolumeNotReady
from glasslet.volumes.group_owner import GroupOwner
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.plugin import VolumeRequest
from glasslet.volumes.pod_binds import PodBinds
from glasslet.volumes.types.iscsi import ISCSIVolume
from tests.builders.podspec import pod_of
from tests.component.volume_world import Data
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")

IQN = "iqn.2026-01.org.example:disks"
NODE = f"-m node -p 10.0.0.1:3260 -T {IQN} -I default"
GLOBAL = f"plugins/kubernetes.io/iscsi/iface-default/10.0.0.1:3260-{IQN}-lun-0"


class OneDisk:
    """Every claim leads to the disk of LUN 0, as a block device."""

    async def resolve(self, pod: Pod, volume: Volume) -> VolumeRequest:
        iscsi = {"targetPortal": "10.0.0.1", "iqn": IQN, "lun": 0, "iscsiInterface": "default"}
        spec = {"volumeMode": "Block", "iscsi": iscsi}
        persistent = convert({"metadata": {"name": f"pv-{volume.name}"}, "spec": spec}, PersistentVolume)
        named = Volume(name=volume.name, iscsi=persistent.spec.iscsi)
        return VolumeRequest(pod=pod, volume=named, persistent=persistent)

    def forget(self, uid: str) -> None:
        """Keeps nothing."""


class Machine:
    """A node whose programs are scripts; `asked` are iscsiadm's arguments, a line for each call."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.kubelet = root / "kubelet"
        self.bin = root / "bin"
        self.bin.mkdir()
        (root / "dev/disk/by-path").mkdir(parents=True)
        real = shutil.which("mount")
        monkeypatch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")
        self.program("iscsiadm", f'echo "$*" >> {root}/asked')
        self.program("blkid", "echo TYPE=ext4")
        self.program("fsck", "exit 0")
        self.program("mount", f'echo "$*" >> {root}/mounts\nfor target; do :; done\n{real} -t tmpfs tmpfs "$target"')
        self.mounts = Mounts()
        self.data = Data({"node.session.auth.username": b"me", "node.session.auth.password": b"hunter2"})
        self.volumes = self.agent()

    def agent(self, attachment: ControllerAttachment | None = None) -> VolumeManager:
        layout, threads = RootLayout(str(self.kubelet)), HostThreads(recorder=WaitLog())

        def emit(*_: Any) -> None:
            return

        binds = PodBinds(
            root=layout,
            mounts=self.mounts,
            threads=threads,
            groups=GroupOwner(threads=threads, emit=emit),
            emit=emit,
        )
        plugin = ISCSIVolume(root=layout, mounts=self.mounts, threads=threads, binds=binds, objects=self.data)
        plugin.root_of_devices = str(self.root)
        return VolumeManager(
            root=layout,
            claims=OneDisk(),
            plugins={"iscsi": plugin},
            mounts=self.mounts,
            threads=threads,
            attachment=attachment,
        )

    def program(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def attached(self, lun: int = 0) -> None:
        (self.root / f"dev/disk/by-path/ip-10.0.0.1:3260-iscsi-{IQN}-lun-{lun}").touch()

    def asked(self) -> list[str]:
        return (self.root / "asked").read_text().splitlines()

    def mounted(self) -> list[str]:
        return sorted(os.path.relpath(e.path, self.kubelet) for e in self.mounts.table().at_or_below(str(self.kubelet)))


@pytest.fixture
async def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Machine]:
    made = Machine(Path(os.path.realpath(tmp_path)), monkeypatch)
    yield made
    for entry in made.mounts.table().at_or_below(str(made.root)):
        made.mounts.unmount(entry.path)


def using(uid: str = "uid-1", **source: Any) -> Pod:
    iscsi = {"targetPortal": "10.0.0.1", "iqn": IQN, "lun": 0, "iscsiInterface": "default"} | source
    return pod_of(
        {"volumeMounts": [{"name": "disk", "mountPath": "/d"}]},
        meta={"uid": uid},
        volumes=[{"name": "disk", "iscsi": iscsi}],
    )


def ref(uid: str = "uid-1") -> PodRef:
    return PodRef("default", "web", PodUID(uid))


def place(uid: str = "uid-1") -> str:
    return f"pods/{uid}/volumes/kubernetes.io~iscsi/disk"


async def test_a_disk_is_attached_once_for_all_pods_and_detached_after_the_last(node: Machine) -> None:
    # behaviours.md §22: "device unmount when the last pod left"
    node.attached()
    await node.volumes.prepare(using())
    await node.volumes.prepare(using("uid-2"))
    assert node.mounted() == [GLOBAL, place(), place("uid-2")]
    assert [line for line in node.asked() if "--login" in line] == [f"{NODE} --login"]
    device = f"{node.root}/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-{IQN}-lun-0"
    assert (node.root / "mounts").read_text() == f"-t ext4 -o defaults {device} {node.kubelet / GLOBAL}\n"
    await node.agent().tear_down(ref())
    assert not [line for line in node.asked() if "--logout" in line]
    await node.agent().tear_down(ref("uid-2"))
    assert [line for line in node.asked() if "--logout" in line] == [
        f"-m node -p 10.0.0.1:3260 -T {IQN} --logout -I default"
    ]
    assert node.mounted() == []
    assert not (node.kubelet / GLOBAL).exists()


async def test_the_session_stays_while_another_disk_of_the_target_is_used(node: Machine) -> None:
    node.attached(0)
    node.attached(1)
    await node.volumes.prepare(using())
    await node.volumes.prepare(using("uid-2", lun=1))
    await node.volumes.tear_down(ref())
    assert not [line for line in node.asked() if "--logout" in line]
    await node.volumes.tear_down(ref("uid-2"))
    assert len([line for line in node.asked() if "--logout" in line]) == 1


async def test_a_login_that_fails_is_told_in_the_words_of_the_program(node: Machine) -> None:
    node.program("iscsiadm", 'case "$*" in *--login*) echo "could not log in"; exit 8;; esac')
    with pytest.raises(VolumeNotReady) as caught:
        await node.volumes.prepare(using())
    assert caught.value.message == (
        'MountVolume.WaitForAttach failed for volume "disk" : failed to get any path for iscsi disk, last err seen:\n'
        "iscsi: failed to attach disk: Error: could not log in\n (exit status 8)"
    )


async def test_a_node_without_the_program_says_so(node: Machine) -> None:
    (node.bin / "iscsiadm").unlink()
    with pytest.raises(VolumeNotReady, match=r'exec: "iscsiadm": executable file not found in \$PATH'):
        await node.volumes.prepare(using())


async def test_secrets_go_to_the_program_and_into_no_message(node: Machine) -> None:
    node.program("iscsiadm", f'echo "$*" >> {node.root}/asked\ncase "$*" in *password*) exit 1;; esac')
    secret: dict[str, Any] = {"chapAuthSession": True, "secretRef": {"name": "data"}}
    with pytest.raises(VolumeNotReady) as caught:
        await node.volumes.prepare(using(**secret))
    assert f"{NODE} -o update -n node.session.auth.password -v hunter2" in node.asked()
    assert "node.session.auth.password: exit status 1" in caught.value.message
    assert "hunter2" not in caught.value.message


async def test_what_a_killed_agent_left_attached_is_detached_with_its_pod(node: Machine) -> None:
    node.attached()
    node.program("mount", "exit 1")
    with pytest.raises(VolumeNotReady, match="MountDevice failed"):
        await node.volumes.prepare(using())
    await node.agent().tear_down(ref())
    (node.kubelet / place()).parent.mkdir(parents=True, exist_ok=True)
    (node.kubelet / place()).mkdir(exist_ok=True)
    await node.agent().tear_down(ref())
    assert [line for line in node.asked() if "--logout" in line]
    assert not (node.kubelet / GLOBAL).exists()


@pytest.mark.parametrize(
    "change",
    [
        {"iqn": "--help"},
        {"targetPortal": "-x:1"},
        {"iscsiInterface": "-y"},
        # In another pod's volume a link with the name of the device may lead to a disk of the node.
        {"portals": ["x/../../../../var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/v/x"]},
    ],
)
async def test_what_would_be_an_option_or_another_path_is_refused(node: Machine, change: dict[str, Any]) -> None:
    with pytest.raises(VolumeNotReady, match=r"NewMounter initialization failed .* is not valid"):
        await node.volumes.prepare(using(**change))
    assert not (node.root / "asked").exists()


BLOCK = f"plugins/kubernetes.io/iscsi/volumeDevices/iface-default/10.0.0.1:3260-{IQN}-lun-0"
UNIQUE = f"kubernetes.io/iscsi/10.0.0.1:{IQN}:0"


def as_block(uid: str = "uid-1", *names: str) -> Pod:
    """A pod that gets disks as they are."""
    names = names or ("raw",)
    return pod_of(
        {"volumeDevices": [{"name": name, "devicePath": f"/dev/{name}"} for name in names]},
        meta={"uid": uid},
        volumes=[{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names],
    )


async def test_a_block_volume_is_never_formatted_checked_or_mounted(node: Machine) -> None:
    node.attached()
    # The disk is empty, as far as blkid can see.
    for program, end in (("blkid", 2), ("mkfs.ext4", 0), ("fsck", 0), ("mount", 0)):
        node.program(program, f'echo "{program} $*" >> {node.root}/touched\nexit {end}')
    found = (await node.volumes.prepare(as_block()))["raw"]
    assert found.device == f"{node.root}/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-{IQN}-lun-0"
    assert found.path == ""
    assert not (node.root / "touched").exists()
    assert node.mounted() == []
    await node.volumes.tear_down(ref())
    assert not (node.root / "touched").exists()


async def test_a_block_volume_is_detached_after_the_last_pod_also_by_a_new_agent(node: Machine) -> None:
    node.attached()
    await node.volumes.prepare(as_block())
    await node.volumes.prepare(as_block())
    await node.volumes.prepare(as_block("uid-2", "raw"))
    link = node.kubelet / "pods/uid-1/volumeDevices/kubernetes.io~iscsi/pv-raw"
    assert os.path.basename(os.readlink(link)) == f"ip-10.0.0.1:3260-iscsi-{IQN}-lun-0"
    await node.agent().tear_down(ref())
    assert not os.path.lexists(link)
    assert not [line for line in node.asked() if "--logout" in line]
    await node.agent().tear_down(ref("uid-2"))
    assert [line for line in node.asked() if "--logout" in line] == [
        f"-m node -p 10.0.0.1:3260 -T {IQN} --logout -I default"
    ]
    assert not (node.kubelet / BLOCK).exists()


async def test_a_block_volume_of_the_go_kubelet_is_taken_over(node: Machine) -> None:
    node.attached()
    device = f"{node.root}/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-{IQN}-lun-0"
    note = {"Portals": ["10.0.0.1:3260"], "Iqn": IQN, "Lun": "0", "Iface": "default", "InitIface": "default"}
    (node.kubelet / BLOCK).mkdir(parents=True)
    (node.kubelet / BLOCK / "iscsi.json").write_text(json.dumps(note))
    (node.kubelet / BLOCK / "uid-1").touch()
    node.mounts.bind(device, str(node.kubelet / BLOCK / "uid-1"))
    links = node.kubelet / "pods/uid-1/volumeDevices/kubernetes.io~iscsi"
    links.mkdir(parents=True)
    (links / "pv-raw").symlink_to(device)
    await node.volumes.tear_down(ref())
    assert node.mounted() == []
    assert not (node.kubelet / BLOCK).exists()
    assert [line for line in node.asked() if "--logout" in line]


def as_the_api_server_has_it(*, in_use: tuple[str, ...] = (), attached: tuple[str, ...] = ()) -> Node:
    disks = tuple(AttachedVolume(name=name) for name in attached)
    return Node(status=NodeStatus(volumes_in_use=in_use, volumes_attached=disks))


async def test_a_disk_is_mounted_once_it_is_attached_and_stays_in_use_until_it_is_off(node: Machine) -> None:
    # behaviours.md §22: "detach by the controller when not in volumesInUse"
    node.attached()
    in_use = VolumesInUse(root=RootLayout(str(node.kubelet)), attaches=lambda driver: True)
    seen = [as_the_api_server_has_it()]
    changed = asyncio.Event()
    attachment = ControllerAttachment(in_use=in_use, node=lambda: seen[-1], changed=changed.set, recorder=WaitLog())
    agent = node.agent(attachment)
    preparing = asyncio.create_task(agent.prepare(using()))
    await changed.wait()
    assert in_use.names() == (UNIQUE,)
    # Another node has it: it is reported, and not attached here.
    seen.append(as_the_api_server_has_it(in_use=(UNIQUE,)))
    await asyncio.sleep(2 * LOOK_EVERY)
    assert not (node.root / "asked").exists()
    seen.append(as_the_api_server_has_it(in_use=(UNIQUE,), attached=(UNIQUE,)))
    assert (await preparing)["disk"].path
    # A new agent knows by what is on disk, before its pods are prepared. The note says the port.
    restarted = VolumesInUse(root=RootLayout(str(node.kubelet)), attaches=lambda driver: True)
    assert restarted.names() == (UNIQUE.replace("10.0.0.1:", "10.0.0.1:3260:"), UNIQUE)
    await agent.tear_down(ref())
    assert in_use.names() == ()
    assert restarted.names() == ()


@pytest.mark.looptime
async def test_a_disk_that_is_attached_elsewhere_is_not_mounted(node: Machine) -> None:
    attachment = ControllerAttachment(
        in_use=VolumesInUse(root=RootLayout(str(node.kubelet)), attaches=lambda driver: True),
        node=lambda: as_the_api_server_has_it(in_use=(UNIQUE,)),
        changed=lambda: None,
        recorder=WaitLog(),
    )
    with pytest.raises(VolumeNotReady) as caught:
        await node.agent(attachment).prepare(using())
    assert caught.value.message == (
        "Unable to attach or mount volumes: unmounted volumes=[disk], unattached volumes=[disk], failed to process "
        f"volumes=[]: volume {UNIQUE} is not attached according to the node's status"
    )
    assert not (node.root / "asked").exists()


async def test_a_pod_that_has_its_disk_keeps_it_while_the_api_server_does_not_answer(node: Machine) -> None:
    node.attached()
    await node.volumes.prepare(using())
    await node.volumes.prepare(as_block())
    in_use = VolumesInUse(root=RootLayout(str(node.kubelet)), attaches=lambda driver: True)
    restarted = node.agent(ControllerAttachment(in_use=in_use, node=Node, changed=lambda: None, recorder=WaitLog()))
    async with asyncio.timeout(30):
        assert (await restarted.prepare(using()))["disk"].path
        assert (await restarted.prepare(as_block()))["raw"].device
    assert UNIQUE in (in_use.names() or ())


def test_volumes_of_drivers_that_another_kubelet_left_are_in_use(tmp_path: Path) -> None:
    folder = tmp_path / "plugins/kubernetes.io/csi/disk.example/0123"
    (folder / "globalmount").mkdir(parents=True)
    (folder / "vol_data.json").write_text('{"driverName":"disk.example","volumeHandle":"h1"}\n')
    root = RootLayout(str(tmp_path))
    assert VolumesInUse(root=root, attaches=lambda driver: True).names() == ("kubernetes.io/csi/disk.example^h1",)
    assert VolumesInUse(root=root, attaches=lambda driver: False).names() == ()
