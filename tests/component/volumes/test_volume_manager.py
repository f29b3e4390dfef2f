"""Volumes of pods on a real directory tree, with mounts in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.exchange.volume import MountedVolume, SubPath
from glasslet.host.files.layout import RootLayout
from glasslet.host.threads import HostCallStuck
from glasslet.podspec.pod_level import pod_memory_limit
from glasslet.volumes.errors import VolumeNotReady
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.plugin import VolumePlugin, VolumeRequest
from glasslet.volumes.types.empty_dir import EmptyDir
from glasslet.volumes.types.host_path import HostPath
from glasslet.volumes.volume_counts import HERE, WANTED, VolumeCounts
from tests.builders.podspec import pod_of
from tests.fakes.claims import NO_CLAIMS
from tests.fakes.inline_threads import InlineThreads
from tests.fakes.mounts import FakeMounts

REF = PodRef("default", "web", PodUID("uid-1"))
EMPTY_DIRS = "pods/uid-1/volumes/kubernetes.io~empty-dir"
NOTES = "pods/uid-1/plugins/kubernetes.io~empty-dir"


class StuckPlugin:
    """A volume type whose server does not answer."""

    name = "example.org/stuck"
    local = False

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        raise HostCallStuck("volume net: stat /mnt", 123)

    async def tear_down(self, uid: str, volume: str) -> None:
        raise HostCallStuck(f"volume {volume}: umount /mnt", 123)


class Node:
    """One agent's volumes. `restarted` is another agent on the same machine."""

    def __init__(self, root: Path, mounts: FakeMounts | None = None) -> None:
        self.root = root
        self.mounts = mounts or FakeMounts()
        layout, threads = RootLayout(str(root)), InlineThreads()
        empty_dir = EmptyDir(
            root=layout,
            mounts=self.mounts,
            threads=threads,
            pod_memory_limit=pod_memory_limit,
            allocatable_memory=lambda: 1 << 30,
        )
        plugins: dict[str, VolumePlugin] = {
            "emptyDir": empty_dir,
            "hostPath": HostPath(threads=threads),
            "nfs": StuckPlugin(),
        }
        self.account = VolumeCounts()
        self.volumes = VolumeManager(
            root=layout,
            claims=NO_CLAIMS,
            plugins=plugins,
            mounts=self.mounts,
            threads=threads,
            account=self.account,
        )

    def restarted(self) -> Node:
        return Node(self.root, self.mounts)

    async def prepare(self, pod: Pod) -> Mapping[str, MountedVolume]:
        return await self.volumes.prepare(pod)

    async def failure(self, pod: Pod) -> str:
        with pytest.raises(VolumeNotReady) as caught:
            await self.volumes.prepare(pod)
        return caught.value.message


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(Path(os.path.realpath(tmp_path)))


def pod_with(*volumes: dict[str, Any], **spec: Any) -> Pod:
    """A pod whose container mounts all of them."""
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    return pod_of({"volumeMounts": mounts} | spec.pop("container", {}), volumes=list(volumes), **spec)


DISK = {"name": "data", "emptyDir": {}}
MEMORY = {"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}


async def test_a_pod_without_volumes_has_none(node: Node) -> None:
    assert await node.prepare(pod_of()) == {}


async def test_an_empty_dir_is_an_open_directory_of_its_pod(node: Node) -> None:
    # behaviours.md §22: "emptyDir: directory 0777 in pods/<uid>/volumes/kubernetes.io~empty-dir/<name>"
    found = await node.prepare(pod_with(DISK))
    path = node.root / EMPTY_DIRS / "data"
    assert found == {"data": MountedVolume(name="data", path=str(path), selinux_relabel=True)}
    assert path.stat().st_mode & 0o7777 == 0o777
    # behaviours.md §22: "Ready markers: empty file `ready` in pods/<uid>/plugins/kubernetes.io~empty-dir/<volume>/"
    assert (node.root / NOTES / "data" / "ready").read_bytes() == b""


async def test_volumes_are_counted_as_wanted_and_as_here(node: Node) -> None:
    disk, net = "kubernetes.io/empty-dir", "example.org/stuck"
    await node.failure(pod_with(DISK, {"name": "net", "nfs": {"server": "nowhere", "path": "/"}}))
    assert node.account.counts() == {(disk, WANTED): 1, (disk, HERE): 1, (net, WANTED): 1}
    await node.volumes.tear_down(REF)
    assert node.account.counts() == {}


async def test_data_of_an_empty_dir_outlives_the_agent(node: Node) -> None:
    # behaviours.md §22: "At restart volumes are reconstructed from the pods directory."
    pod = pod_with(DISK)
    path = Path((await node.prepare(pod))["data"].path)
    (path / "file").write_text("x")
    path.chmod(0o700)
    await node.restarted().prepare(pod)
    assert (path / "file").read_text() == "x"
    assert path.stat().st_mode & 0o777 == 0o700


async def test_a_directory_that_somebody_removed_is_made_again(node: Node) -> None:
    pod = pod_with(DISK)
    path = Path((await node.prepare(pod))["data"].path)
    path.rmdir()
    await node.prepare(pod)
    assert path.is_dir()


async def test_a_volume_that_no_container_uses_is_not_made(node: Node) -> None:
    assert await node.prepare(pod_of(volumes=[DISK])) == {}
    assert not (node.root / EMPTY_DIRS).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to any group")
async def test_an_empty_dir_belongs_to_the_pods_group(node: Node) -> None:
    # behaviours.md §22: "emptyDir, secret, configMap, projected, downwardAPI are always done in full."
    found = await node.prepare(pod_with(DISK, MEMORY, securityContext={"fsGroup": 4711}))
    for volume in found.values():
        stat = os.stat(volume.path)
        assert (stat.st_gid, stat.st_mode & 0o7777) == (4711, 0o2777)


async def test_memory_is_mounted_once_with_its_size(node: Node) -> None:
    pod = pod_with(MEMORY)
    for agent in (node, node, node.restarted()):
        path = (await agent.prepare(pod))["mem"].path
        assert [(e.path, e.fs_type, e.option("size")) for e in node.mounts.table().entries] == [
            (path, "tmpfs", str(16 << 20))
        ]


async def test_memory_is_no_more_than_the_pod_may_have(node: Node) -> None:
    limited = {"resources": {"limits": {"memory": "8Mi"}}}
    await node.prepare(pod_with(MEMORY, container=limited))
    assert node.mounts.table().entries[0].option("size") == str(8 << 20)


async def test_memory_that_was_unmounted_is_mounted_again(node: Node) -> None:
    pod = pod_with(MEMORY)
    path = (await node.prepare(pod))["mem"].path
    node.mounts.unmount(path)
    await node.restarted().prepare(pod)
    assert node.mounts.table().at(path) is not None


async def test_huge_pages_are_mounted_in_the_size_asked_for(node: Node) -> None:
    # behaviours.md §22: "HugePages medium = hugetlbfs with pagesize="
    asking = {"resources": {"requests": {"hugepages-2Mi": "4Mi"}}}
    await node.prepare(pod_with({"name": "big", "emptyDir": {"medium": "HugePages"}}, container=asking))
    assert [(e.fs_type, e.option("pagesize")) for e in node.mounts.table().entries] == [("hugetlbfs", "2Mi")]


async def test_an_unknown_medium_is_named(node: Node) -> None:
    message = await node.failure(pod_with({"name": "v", "emptyDir": {"medium": "Paper"}}))
    assert message == 'MountVolume.SetUp failed for volume "v" : unknown storage medium "Paper"'


async def test_a_failed_set_up_is_told_in_upstreams_words(node: Node) -> None:
    pod = pod_with({"name": "v", "hostPath": {"path": "/does/not/exist", "type": "Directory"}})
    assert await node.failure(pod) == (
        'MountVolume.SetUp failed for volume "v" : hostPath type check failed: /does/not/exist is not a directory'
    )


async def test_a_type_that_is_not_built_in_is_named_with_those_that_are(node: Node) -> None:
    assert await node.failure(pod_with({"name": "v", "configMap": {"name": "c"}})) == (
        'MountVolume.FindPluginBySpec failed for volume "v" : no volume plugin matched (configMap is not served here; '
        "served: emptyDir, hostPath, nfs)"
    )


async def test_a_hung_volume_is_told_and_the_others_are_tried(node: Node) -> None:
    # behaviours.md §22: "wait for pod volumes 2 min 3 s (polled each 300 ms)"
    hung = {"name": "net", "nfs": {"server": "s", "path": "/p"}}
    assert await node.failure(pod_with(hung, DISK)) == (
        "Unable to attach or mount volumes: unmounted volumes=[net], unattached volumes=[], "
        "failed to process volumes=[]: volume net: stat /mnt: no answer within 123 s"
    )
    assert (node.root / EMPTY_DIRS / "data").is_dir()


async def test_a_volume_cannot_leave_its_pod_by_name(node: Node) -> None:
    message = await node.failure(pod_with({"name": "../../../evil", "emptyDir": {}}))
    assert "cannot be a file name" in message
    assert not (node.root / "pods").exists()


async def test_tear_down_removes_data_mounts_and_marks(node: Node) -> None:
    found = await node.prepare(pod_with(DISK, MEMORY))
    for volume in found.values():
        (Path(volume.path) / "deep").mkdir()
    await node.restarted().volumes.tear_down(REF)
    assert node.mounts.table().entries == ()
    assert not (node.root / EMPTY_DIRS / "data").exists()
    assert os.listdir(node.root / NOTES) == os.listdir(node.root / EMPTY_DIRS) == []


async def test_tear_down_of_nothing_and_again_is_fine(node: Node) -> None:
    await node.volumes.tear_down(REF)
    await node.prepare(pod_with(DISK))
    await node.volumes.tear_down(REF)
    await node.volumes.tear_down(REF)


async def test_tear_down_leaves_the_nodes_own_files(node: Node) -> None:
    (node.root / "own").mkdir()
    (node.root / "own" / "file").write_text("x")
    await node.prepare(pod_with({"name": "v", "hostPath": {"path": str(node.root / "own"), "type": "Directory"}}))
    await node.volumes.tear_down(REF)
    assert (node.root / "own" / "file").read_text() == "x"


async def test_a_mount_inside_a_volume_stops_its_removal(node: Node) -> None:
    path = Path((await node.prepare(pod_with(DISK)))["data"].path)
    (path / "mounted").mkdir()
    (path / "kept").write_text("x")
    node.mounts.mount_tmpfs(str(path / "mounted"))
    with pytest.raises(VolumeNotReady, match=r"mounted volumes=\[data\]: .*still mounted: .*/data/mounted"):
        await node.volumes.tear_down(REF)
    assert (path / "kept").exists()
    node.mounts.unmount(str(path / "mounted"))
    await node.volumes.tear_down(REF)
    assert not path.exists()


async def test_what_is_busy_is_named_and_the_rest_goes(node: Node) -> None:
    found = await node.prepare(pod_with(DISK, MEMORY))
    node.mounts.busy.add(found["mem"].path)
    with pytest.raises(VolumeNotReady) as caught:
        await node.volumes.tear_down(REF)
    assert caught.value.message == f"mounted volumes=[mem]: {found['mem'].path}: Device or resource busy"
    assert not Path(found["data"].path).exists()


async def test_a_half_removed_volume_is_not_taken_for_ready(node: Node) -> None:
    pod = pod_with(MEMORY)
    path = (await node.prepare(pod))["mem"].path
    node.mounts.busy.add(path)
    with pytest.raises(VolumeNotReady):
        await node.volumes.tear_down(REF)
    assert not (node.root / NOTES / "mem").exists()


@pytest.mark.parametrize("inside", [None, "file"])
async def test_a_volume_of_an_unknown_type_goes_only_if_it_is_empty(node: Node, inside: str | None) -> None:
    # behaviours.md §22: "removed only with empty directories (rmdir); remaining content or mounts are left and logged"
    path = node.root / "pods/uid-1/volumes/example.org~odd/v"
    path.mkdir(parents=True)
    if inside is None:
        await node.volumes.tear_down(REF)
        assert not path.exists()
        return
    (path / inside).write_text("x")
    with pytest.raises(VolumeNotReady, match=r'volume "v" of type example\.org~odd holds data'):
        await node.volumes.tear_down(REF)
    assert (path / inside).exists()


async def test_a_hung_unmount_is_told(node: Node) -> None:
    (node.root / "pods/uid-1/volumes/example.org~stuck/net").mkdir(parents=True)
    with pytest.raises(VolumeNotReady) as caught:
        await node.volumes.tear_down(REF)
    assert caught.value.message == "mounted volumes=[net]: volume net: umount /mnt: no answer within 123 s"


async def test_parts_of_volumes_are_bound_below_the_pod(node: Node) -> None:
    # behaviours.md §22: "subPath: bind mount in pods/<uid>/volume-subpaths/<volume>/<container>/<index>"
    volumes = await node.prepare(pod_with(DISK))
    wanted = (SubPath(index=2, volume="data", path="a/b"),)
    target = str(node.root / "pods/uid-1/volume-subpaths/data/main/2")
    assert await node.volumes.bind_sub_paths(REF, "main", volumes, wanted) == {2: target}
    assert (Path(volumes["data"].path) / "a" / "b").is_dir()
    assert node.mounts.table().at(target) is not None


async def test_a_part_that_leads_out_is_left_out_and_logged(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    volumes = await node.prepare(pod_with(DISK))
    (Path(volumes["data"].path) / "out").symlink_to("/etc")
    wanted = (SubPath(index=0, volume="data", path="out"), SubPath(index=1, volume="data", path="in"))
    assert list(await node.volumes.bind_sub_paths(REF, "main", volumes, wanted)) == [1]
    assert [record.message for record in caplog.records] == ["subPath could not be prepared"]


async def test_tear_down_takes_parts_off_before_their_volume(node: Node) -> None:
    volumes = await node.prepare(pod_with(DISK))
    (Path(volumes["data"].path) / "file").write_text("x")
    wanted = (SubPath(index=0, volume="data", path="file"), SubPath(index=1, volume="data", path="dir"))
    bound = await node.volumes.bind_sub_paths(REF, "main", volumes, wanted)
    node.mounts.busy.add(bound[0])
    with pytest.raises(VolumeNotReady, match=r"mounted volumes=\[data\]"):
        await node.restarted().volumes.tear_down(REF)
    assert (Path(volumes["data"].path) / "file").read_text() == "x"
    node.mounts.busy.clear()
    await node.restarted().volumes.tear_down(REF)
    assert node.mounts.table().entries == ()
    assert not (node.root / "pods/uid-1/volume-subpaths/data").exists()


class AllPhases:
    """A volume type with every phase; `passed` lists those that were run."""

    name = "example.org/all"
    local = True

    def __init__(self) -> None:
        self.passed: list[str] = []

    async def attachment(self, request: VolumeRequest) -> str:
        return f"example.org/{request.name}"

    async def why_not_attached(self, request: VolumeRequest) -> str:
        return ""

    async def release(self, uid: str) -> None:
        self.passed.append(f"release {uid}")

    async def stage(self, request: VolumeRequest) -> None:
        self.passed.append("stage")

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        self.passed.append("set up")
        return MountedVolume(name=request.volume.name, path="/v")

    async def expand(self, request: VolumeRequest, mounted: MountedVolume) -> None:
        self.passed.append(f"expand {mounted.path}")

    async def tear_down(self, uid: str, volume: str) -> None:
        self.passed.append("tear down")

    async def wait(self, uid: str, name: str, *, here: bool) -> None:
        """The controller, too."""
        self.passed.append(f"attach {name}")

    def forget(self, uid: str) -> None:
        self.passed.append(f"forget {uid}")


async def test_a_type_has_the_phases_that_it_implements_in_their_order(tmp_path: Path) -> None:
    every = AllPhases()
    volumes = VolumeManager(
        root=RootLayout(str(tmp_path)),
        claims=NO_CLAIMS,
        plugins={"nfs": every},
        mounts=FakeMounts(),
        threads=InlineThreads(),
        attachment=every,
    )
    await volumes.prepare(pod_with({"name": "v", "nfs": {"server": "s", "path": "/"}}))
    assert every.passed == ["attach example.org/v", "stage", "set up", "expand /v"]
    await volumes.tear_down(REF)
    assert every.passed[-2:] == ["release uid-1", "forget uid-1"]
