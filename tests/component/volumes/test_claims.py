"""Claims and the volumes behind them, against an API server in memory and mounts of the kernel: needs root."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.exchange.volume import MountedVolume, SubPath
from glasslet.host.files.layout import RootLayout
from glasslet.host.mounts.syscalls import Mounts
from glasslet.host.threads import HostThreads
from glasslet.kubeapi.errors import Unavailable
from glasslet.volumes.claim_notes import ClaimNotes
from glasslet.volumes.claims import Claims
from glasslet.volumes.errors import VolumeNotReady
from glasslet.volumes.group_owner import GroupOwner
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.pod_binds import PodBinds
from glasslet.volumes.types.host_path import HostPath
from glasslet.volumes.types.local import LocalVolume
from tests.builders.podspec import pod_of
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.waits import WaitLog
from tests.skips import on_purpose

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")

PREFIX = (
    "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], "
    "failed to process volumes=[data]: "
)


class Node:
    """A node with one claim, `c`, bound to the volume `pv-1`; `told` are the events."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.server = FakeAPIServer()
        self.mounts = Mounts()
        self.told: list[tuple[str, str]] = []
        self.labels = {"kubernetes.io/hostname": "here"}
        self.disk = root / "disk"
        self.disk.mkdir()
        self.volumes = self.agent()
        self.put_claim({})
        self.put_volume({"local": {"path": str(self.disk)}})

    def agent(self) -> VolumeManager:
        """Another agent on the same machine."""
        layout, threads = RootLayout(str(self.root / "kubelet")), HostThreads(recorder=WaitLog())

        def emit(pod: PodRef, kind: str, reason: str, text: str) -> None:
            self.told.append((reason, text))

        binds = PodBinds(
            root=layout,
            mounts=self.mounts,
            threads=threads,
            groups=GroupOwner(threads=threads, emit=emit),
            emit=emit,
        )
        return VolumeManager(
            root=layout,
            plugins={
                "hostPath": HostPath(threads=threads),
                "local": LocalVolume(root=layout, mounts=self.mounts, threads=threads, binds=binds),
            },
            claims=Claims(
                client=self.server,
                notes=ClaimNotes(root=layout, threads=threads),
                node="here",
                labels=lambda: self.labels,
            ),
            mounts=self.mounts,
            threads=threads,
        )

    def put_claim(self, change: dict[str, Any], name: str = "c") -> None:
        claim: dict[str, Any] = {
            "metadata": {"name": name, "namespace": "default", "uid": f"{name}-uid"},
            "spec": {"volumeName": "pv-1"},
            "status": {"phase": "Bound"},
        }
        for part, values in change.items():
            claim[part] = claim[part] | values
        self.server.put("persistentvolumeclaims", claim)

    def put_volume(self, spec: dict[str, Any], **meta: Any) -> None:
        bound = {"claimRef": {"namespace": "default", "name": "c", "uid": "c-uid"}}
        self.server.put("persistentvolumes", {"metadata": {"name": "pv-1"} | meta, "spec": bound | spec})

    async def failure(self, pod: Pod) -> str:
        with pytest.raises(VolumeNotReady) as caught:
            await self.volumes.prepare(pod)
        return caught.value.message

    def mounted(self) -> list[str]:
        below = str(self.root / "kubelet")
        return [os.path.relpath(entry.path, below) for entry in self.mounts.table().at_or_below(below)]


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node(Path(os.path.realpath(tmp_path)))
    yield made
    for entry in made.mounts.table().at_or_below(str(made.root)):
        made.mounts.unmount(entry.path)


def claiming(uid: str = "uid-1", *, claim: dict[str, Any] | None = None, **spec: Any) -> Pod:
    source = claim or {"persistentVolumeClaim": {"claimName": "c"}}
    return pod_of(
        {"volumeMounts": [{"name": "data", "mountPath": "/d"}]},
        meta={"uid": uid, "name": "web"},
        volumes=[{"name": "data", **source}],
        **spec,
    )


def ref(uid: str = "uid-1") -> PodRef:
    return PodRef("default", "web", PodUID(uid))


PLACE = "pods/uid-1/volumes/kubernetes.io~local-volume/pv-1"


async def test_a_local_volume_is_shown_to_its_pods_and_outlives_them(node: Node) -> None:
    found = (await node.volumes.prepare(claiming()))["data"]
    assert found.path == str(node.root / "kubelet" / PLACE)
    assert node.volumes.claimed("uid-1") == {"data": found.path}
    Path(found.path, "file").write_text("kept")
    await node.volumes.prepare(claiming("uid-2"))
    assert len(node.mounted()) == 2
    await node.agent().tear_down(ref())
    await node.agent().tear_down(ref("uid-2"))
    assert node.mounted() == []
    assert (node.disk / "file").read_text() == "kept"
    assert not Path(found.path).exists()


async def test_a_restarted_agent_finds_it_mounted(node: Node) -> None:
    await node.volumes.prepare(claiming())
    await node.agent().prepare(claiming())
    assert node.mounted() == [PLACE]


async def test_a_volume_that_a_reboot_unmounted_is_mounted_again(node: Node) -> None:
    await node.volumes.prepare(claiming())
    node.mounts.unmount(str(node.root / "kubelet" / PLACE))
    await node.agent().prepare(claiming())
    assert node.mounted() == [PLACE]


async def test_options_and_read_only_claims_reach_the_mount(node: Node) -> None:
    node.put_volume({"local": {"path": str(node.disk)}, "mountOptions": ["noexec", "nosuid"]})
    reading = {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}}
    found = (await node.volumes.prepare(claiming(claim=reading)))["data"]
    assert found.read_only
    flags = os.statvfs(found.path).f_flag
    assert flags & os.ST_RDONLY
    assert flags & os.ST_NOEXEC
    assert flags & os.ST_NOSUID
    assert not os.statvfs(node.disk).f_flag & os.ST_NOEXEC


async def test_the_first_pod_gives_it_its_group_and_another_is_told_of_a_different_one(node: Node) -> None:
    await node.volumes.prepare(claiming(securityContext={"fsGroup": 4711}))
    assert (node.disk.stat().st_gid, stat.S_IMODE(node.disk.stat().st_mode) & 0o2770) == (4711, 0o2770)
    await node.volumes.prepare(claiming("uid-2", securityContext={"fsGroup": 4712}))
    assert node.disk.stat().st_gid == 4711
    assert node.told == [
        (
            "AlreadyMountedVolume",
            "The requested fsGroup is 4712, but the volume pv-1 has GID 4711. The volume may not be shareable.",
        )
    ]


async def test_the_group_that_a_volume_names_goes_to_its_processes(node: Node) -> None:
    node.put_volume({"local": {"path": str(node.disk)}}, annotations={"pv.beta.kubernetes.io/gid": "1234"})
    assert (await node.volumes.prepare(claiming()))["data"].supplemental_group == 1234


async def test_parts_of_it_are_called_after_the_volume(node: Node) -> None:
    volumes = await node.volumes.prepare(claiming())
    wanted = (SubPath(index=0, volume="data", path="a"),)
    bound = await node.volumes.bind_sub_paths(ref(), "main", volumes, wanted)
    assert bound == {0: str(node.root / "kubelet/pods/uid-1/volume-subpaths/pv-1/main/0")}
    await node.volumes.tear_down(ref())
    assert node.mounted() == []
    assert (node.disk / "a").is_dir()


async def test_a_host_path_behind_a_claim_is_the_nodes_own(node: Node) -> None:
    node.put_volume({"hostPath": {"path": str(node.disk), "type": "Directory"}})
    found = await node.volumes.prepare(claiming())
    assert found["data"] == MountedVolume(name="data", path=str(node.disk), directory="pv-1")


ELSEWHERE = {
    "nodeAffinity": {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["there"]}]}
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ELSEWHERE, 'MountVolume.NodeAffinity check failed for volume "pv-1" : no matching NodeSelectorTerms'),
        (
            {"local": {"path": "/does/not/exist"}},
            'MountVolume.NewMounter initialization failed for volume "pv-1" : path "/does/not/exist" does not exist',
        ),
        (
            {"local": {"path": "/dev/null"}},
            (
                'MountVolume.NewMounter initialization failed for volume "pv-1" : only directory and block device are '
                "supported"
            ),
        ),
        (
            {"local": {"path": "/etc/../etc"}},
            "MountVolume.SetUp failed for volume \"pv-1\" : invalid path: /etc/../etc must not contain '..'",
        ),
        (
            {"local": None, "hostPath": {"path": "/etc"}, "mountOptions": ["ro"]},
            (
                'MountVolume.MountOptionSupport check failed for volume "pv-1" : '
                "mount options are not supported for this volume type"
            ),
        ),
        (
            {"local": None, "csi": {"driver": "disk.example.org", "volumeHandle": "h"}},
            (
                'MountVolume.MountDevice failed for volume "pv-1" : kubernetes.io/csi: attacher.MountDevice failed '
                "to create newCsiDriverClient: driver name disk.example.org not found "
                "in the list of registered CSI drivers"
            ),
        ),
        (
            {"local": None, "awsElasticBlockStore": {"volumeID": "vol-1"}},
            (
                'MountVolume.MountDevice failed for volume "pv-1" : kubernetes.io/csi: attacher.MountDevice failed '
                "to create newCsiDriverClient: driver name ebs.csi.aws.com not found "
                "in the list of registered CSI drivers "
                "(awsElasticBlockStore has no in-tree plugin since its migration to CSI)"
            ),
        ),
        (
            {"local": None, "rbd": {"image": "i"}},
            (
                'MountVolume.FindPluginBySpec failed for volume "pv-1" : no volume plugin matched '
                "(rbd was removed from Kubernetes)"
            ),
        ),
        (
            {"claimRef": None},
            PREFIX + "error processing PVC default/c: found PV object pv-1 but it has a nil "
            "pv.Spec.ClaimRef indicating it is not yet bound to the claim",
        ),
        (
            {"claimRef": {"uid": "other"}},
            PREFIX + "error processing PVC default/c: found PV object pv-1 but its "
            "pv.Spec.ClaimRef.UID other does not point to claim.UID c-uid",
        ),
        ({"volumeMode": "Block"}, PREFIX + "volume data has volumeMode Block, but is specified in volumeMounts"),
    ],
)
async def test_a_volume_that_is_not_for_this_pod_or_node_is_told(
    node: Node, spec: dict[str, Any], message: str
) -> None:
    node.put_volume({"local": {"path": str(node.disk)}} | spec)
    assert await node.failure(claiming()) == message
    assert node.mounted() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": {"phase": "Pending"}}, "PVC is not bound"),
        ({"spec": {"volumeName": ""}}, "PVC has empty pvc.Spec.VolumeName"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}}, "PVC is being deleted"),
        (
            {"spec": {"volumeName": "pv-2"}},
            'failed to fetch PV pv-2 from API server: persistentvolumes "pv-2" not found',
        ),
    ],
)
async def test_a_claim_that_leads_nowhere_is_told(node: Node, change: dict[str, Any], message: str) -> None:
    node.put_claim(change)
    assert await node.failure(claiming()) == f"{PREFIX}error processing PVC default/c: {message}"


async def test_a_claim_that_is_protected_may_be_used_while_it_is_deleted(node: Node) -> None:
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}
    node.put_claim({"metadata": ending})
    await node.volumes.prepare(claiming())


async def test_a_missing_claim_and_a_silent_server_are_told(node: Node) -> None:
    other = claiming(claim={"persistentVolumeClaim": {"claimName": "gone"}})
    start = "error processing PVC default/gone: failed to fetch PVC from API server: "
    assert await node.failure(other) == f'{PREFIX}{start}persistentvolumeclaims "gone" not found'
    node.server.fail_next(Unavailable, verb="GET", path="persistentvolumeclaims", times=1)
    assert (await node.failure(other)).startswith(f"{PREFIX}{start}")


async def test_a_volume_of_one_pod_at_a_time_is_free_when_that_pod_is_gone(node: Node) -> None:
    node.put_volume({"local": {"path": str(node.disk)}, "accessModes": ["ReadWriteOncePod"]})
    await node.volumes.prepare(claiming())
    assert await node.failure(claiming("uid-2")) == (
        'MountVolume.SetUp failed for volume "pv-1" : volume uses the ReadWriteOncePod access mode and is already in '
        "use by another pod"
    )
    await node.volumes.tear_down(ref())
    await node.volumes.prepare(claiming("uid-2"))


async def test_while_nobody_can_be_asked_a_pod_goes_on_with_the_volume_it_had(node: Node) -> None:
    await node.volumes.prepare(claiming())
    node.server.down = True
    assert (await node.agent().prepare(claiming()))["data"].directory == "pv-1"
    with pytest.raises(VolumeNotReady, match="failed to fetch PVC from API server"):
        await node.agent().prepare(claiming("uid-2"))


async def test_a_damaged_note_counts_as_none(node: Node) -> None:
    await node.volumes.prepare(claiming())
    note = node.root / "kubelet/pods/uid-1/plugins/glasslet~claims/data/volume.json"
    note.write_text("{")
    node.server.down = True
    with pytest.raises(VolumeNotReady, match="failed to fetch PVC from API server"):
        await node.agent().prepare(claiming())
    node.server.down = False
    await node.agent().prepare(claiming())


async def test_a_disk_is_handed_over_as_it_is(node: Node) -> None:
    node.put_volume({"local": {"path": "/dev/loop0"}, "volumeMode": "Block"})
    device = {"volumeDevices": [{"name": "data", "devicePath": "/dev/xvda"}]}
    pod = pod_of(device, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}])
    if not Path("/dev/loop0").is_block_device():
        pytest.skip(on_purpose("no loop device on this machine"))
    assert (await node.volumes.prepare(pod))["data"].device == "/dev/loop0"
    assert node.mounted() == []


EPHEMERAL: dict[str, Any] = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


async def test_an_ephemeral_volume_is_the_claim_made_for_its_pod(node: Node) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-1", "controller": True}
    node.put_claim({"metadata": {"ownerReferences": [owner]}}, name="web-data")
    node.put_volume({"local": {"path": str(node.disk)}, "claimRef": {"uid": "web-data-uid"}})
    assert (await node.volumes.prepare(claiming(claim=EPHEMERAL)))["data"].directory == "pv-1"


async def test_a_claim_of_somebody_else_is_no_ephemeral_volume(node: Node) -> None:
    node.put_claim({}, name="web-data")
    assert await node.failure(claiming(claim=EPHEMERAL)) == (
        f"{PREFIX}PVC default/web-data was not created for pod default/web (pod is not owner)"
    )
