"""When the node is read, by whom, and what is left when a part of it does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod import Pod
from glasslet.api.volume import (
    ConfigMapVolumeSource,
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
    Volume,
)
from glasslet.concurrency.clock import LoopClock
from glasslet.host.cgroups.figures import CgroupFigures, Part
from glasslet.host.cgroups.figures_v2 import FiguresV2
from glasslet.host.files.layout import LogLayout, RootLayout
from glasslet.host.machine import Machine
from glasslet.host.mounts.project_quota import ProjectUse
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeUnavailable
from glasslet.runtime.model import FilesystemUsage, ObservedPod, RuntimeDisks
from glasslet.runtime.usage import ContainerUsage
from glasslet.stats.cgroups.cpu_rates import WINDOW
from glasslet.stats.collector import MAX_AGE, NodeCollector
from glasslet.stats.disks.storage import MAX_AGE as DISKS_MAX_AGE
from glasslet.stats.disks.storage import PodFolders, Storage
from glasslet.stats.disks.volume_usage import Counted, VolumePlace, VolumeUsage, volume_places
from glasslet.stats.node_figures import Sockets
from glasslet.stats.node_stats import NodeStatistics
from glasslet.stats.pages.cadvisor_page import MachineLabels
from glasslet.stats.pages.summary import StatsUnavailable, SummaryNode
from glasslet.stats.targets import SystemGroups, choose_targets, groups_above
from tests.builders.cgroup_tree import write_v2
from tests.builders.observed import exited_container, observed_container, observed_pod, observed_sandbox
from tests.builders.pod import pod
from tests.builders.reading import figures
from tests.fakes.inline_threads import InlineThreads
from tests.fakes.waits import WaitLog

pytestmark = pytest.mark.looptime
UID = PodUID("uid-1")
GROUP = "/kubepods/poduid-1"


@dataclass
class Views:
    """The pods of a node."""

    seen: list[ObservedPod] = field(default_factory=lambda: [observed_pod(observed_container())])
    wanted: list[Pod] = field(default_factory=lambda: [pod(uid=UID)])

    def observed(self) -> Sequence[ObservedPod]:
        return self.seen

    def pods(self) -> Sequence[Pod]:
        return self.wanted

    def pod_cgroup(self, pod: Pod) -> str:
        return f"/kubepods/pod{pod.metadata.uid}"


class Tree:
    """Groups that all use half of a CPU, in the loop's time; counts readings."""

    def __init__(self) -> None:
        self.reads: list[str] = []
        self.looks: list[str] = []
        self.gone: set[str] = set()

    def exists(self, group: str) -> bool:
        return group not in self.gone and not group.endswith(".scope") and "/crio-" not in group

    def read(self, group: str, parts: Part) -> CgroupFigures | None:
        self.reads.append(group)
        if group in self.gone:
            return None
        now = self._now()
        return figures(now // 2, taken_at=now)

    def look_at_cpu(self, group: str) -> tuple[int, int] | None:
        self.looks.append(group)
        return None if group in self.gone else (self._now(), self._now() // 2)

    def processes(self, group: str) -> list[bytes]:
        return []

    def made_at(self, group: str) -> float | None:
        return None

    @staticmethod
    def _now() -> int:
        return int(asyncio.get_running_loop().time() * 1_000_000_000)


@dataclass
class Runtime:
    """CRI statistics."""

    down: bool = False
    asked: int = 0

    async def list_container_stats(self) -> tuple[ContainerUsage, ...]:
        self.asked += 1
        if self.down:
            raise RuntimeUnavailable(Verb.LIST_CONTAINER_STATS, "connection refused")
        layer = FilesystemUsage(mountpoint="/", used_bytes=1, inodes_used=1)
        return (ContainerUsage(id=ContainerID("main-0"), writable_layer=layer),)

    async def disks(self) -> RuntimeDisks:
        if self.down:
            raise RuntimeUnavailable(Verb.IMAGE_FS_INFO, "connection refused")
        return RuntimeDisks(images=(FilesystemUsage(mountpoint="/", used_bytes=5, inodes_used=1),))


class Node:
    """Everything together, over fakes."""

    def __init__(self, folder: Path) -> None:
        self.views, self.tree, self.runtime, self.threads = Views(), Tree(), Runtime(), InlineThreads()
        self.waits, self.clock = WaitLog(), LoopClock()
        self.root, self.logs = RootLayout(str(folder)), LogLayout(pod_logs_dir=str(folder / "logs"))
        self.system = SystemGroups(pods="/kubepods")
        self.collector = NodeCollector(
            views=self.views,
            tree=self.tree,
            system=self.system,
            threads=self.threads,
            clock=self.clock,
            recorder=self.waits,
        )
        self.disks = Storage(
            runtime=self.runtime,
            images=self.runtime,
            folders=PodFolders(self.root, self.logs),
            threads=self.threads,
            clock=self.clock,
            recorder=self.waits,
        )
        self.volumes = self.volume_usage(60.0)
        self.stats = NodeStatistics(
            collector=self.collector,
            disks=self.disks,
            volumes=self.volumes,
            node=SummaryNode(name="node-1", memory=1000, system=self.system),
            machine=MachineLabels(machine=Machine(), topology=Sockets(), device=lambda _: ""),
            threads=self.threads,
        )

    def volume_usage(self, period: float, counted: Counted | None = None) -> VolumeUsage:
        return VolumeUsage(
            counted=counted,
            places=lambda of: volume_places(of, self.root, lambda uid: {}),
            period=period,
            threads=self.threads,
            clock=self.clock,
        )


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


# -- what is read --------------------------------------------------------------------------------------------------


def test_of_several_sandboxes_a_ready_one_counts() -> None:
    # behaviours.md §32: "only running containers of the ready sandbox (else the newest)"
    old, new = observed_sandbox(0), observed_sandbox(1, ready=False)
    here = observed_container()
    there = observed_container("side", sandbox_id=new.id)
    dead = exited_container("init")
    (target,) = choose_targets([observed_pod(here, there, dead, sandboxes=(new, old))], {}, lambda _: "/x")
    assert (target.sandbox, target.containers, target.cgroup) == (old, (here,), "")

    both_dead = (new, observed_sandbox(0, ready=False))
    (target,) = choose_targets([observed_pod(here, there, sandboxes=both_dead)], {}, lambda _: "")
    assert target.containers == (there,)


def test_a_pod_without_sandbox_is_not_read() -> None:
    assert choose_targets([observed_pod(observed_container(), sandboxes=())], {}, lambda _: "") == ()


def test_groups_between_the_top_and_the_pods_are_read_too() -> None:
    pods = [pod(uid="a"), pod(uid="b"), pod(uid="c")]
    paths = {"a": "/kubepods/besteffort/poda", "b": "/kubepods/podb", "c": "/elsewhere/podc"}
    targets = choose_targets(
        [observed_pod(uid=one.metadata.uid) for one in pods],
        {PodUID(one.metadata.uid): one for one in pods},
        lambda one: paths[one.metadata.uid],
    )
    assert groups_above(targets, "/kubepods") == ["/kubepods", "/kubepods/besteffort"]
    assert groups_above(targets, "") == []


async def test_only_the_container_groups_of_a_pod_hold_processes(tmp_path: Path) -> None:
    for group in ("/", "/kubepods", GROUP, f"{GROUP}/main-0", f"{GROUP}/sandbox-0"):
        write_v2(tmp_path, group)
    collector = NodeCollector(
        views=Views(),
        tree=FiguresV2(str(tmp_path)),
        system=SystemGroups(pods="/kubepods"),
        threads=InlineThreads(),
        clock=LoopClock(),
        recorder=WaitLog(),
    )

    reading = await collector.read(Part.PROCESSES | Part.DETAILS)

    (web,) = reading.pods
    assert web.figures is not None
    assert web.figures.processes is None
    assert web.containers[0].figures is not None
    assert web.containers[0].figures.processes == 2
    assert web.containers[0].handles is not None
    assert web.sandbox is not None
    assert web.sandbox.details is None


# -- when it is read -----------------------------------------------------------------------------------------------


async def test_nothing_is_read_until_somebody_asks(node: Node) -> None:
    await asyncio.sleep(3600)
    assert (node.tree.reads, node.threads.calls, node.runtime.asked) == ([], [], 0)


async def test_who_asks_at_the_same_time_shares_one_reading(node: Node) -> None:
    await asyncio.gather(*(node.collector.read(Part.NOTHING_MORE) for _ in range(5)))
    assert node.tree.reads.count("/") == 1


async def test_a_reading_is_good_for_a_moment(node: Node) -> None:
    await node.collector.read(Part.NOTHING_MORE)
    await asyncio.sleep(MAX_AGE / 2)
    await node.collector.read(Part.NOTHING_MORE)
    assert node.tree.reads.count("/") == 1
    await asyncio.sleep(MAX_AGE)
    await node.collector.read(Part.NOTHING_MORE)
    assert node.tree.reads.count("/") == 2


async def test_a_reading_with_less_than_asked_for_is_made_again(node: Node) -> None:
    await node.collector.read(Part.PRESSURE | Part.NETWORK)
    await node.collector.read(Part.PRESSURE)
    assert node.tree.reads.count("/") == 1
    await node.collector.read(Part.DETAILS)
    assert node.tree.reads.count("/") == 2


async def test_the_first_who_asks_gets_cpu_use_from_a_second_short_look(node: Node) -> None:
    await node.collector.read(Part.NOTHING_MORE, rates=True)
    assert node.collector.rates.rate(f"{GROUP}/main-0") == 500_000_000
    assert sorted(node.tree.looks) == ["/", "/kubepods", GROUP, f"{GROUP}/main-0"]


async def test_later_ones_get_it_from_the_reading_before(node: Node) -> None:
    await node.collector.read(Part.NOTHING_MORE)
    await asyncio.sleep(15)
    await node.collector.read(Part.NOTHING_MORE, rates=True)
    assert node.collector.rates.rate("/") == 500_000_000
    assert node.tree.looks == []


async def test_a_reading_before_that_is_too_old_needs_the_short_look_again(node: Node) -> None:
    await node.collector.read(Part.NOTHING_MORE)
    await asyncio.sleep(WINDOW / 1e9 + 1)
    await node.collector.read(Part.NOTHING_MORE, rates=True)
    assert len(node.tree.looks) == 4
    assert node.collector.rates.rate("/") == 500_000_000


async def test_metrics_need_no_second_look(node: Node) -> None:
    assert b"resource_scrape_error 0" in await node.stats.resource_metrics()
    assert b"container_scrape_error 0" in await node.stats.cadvisor_metrics()
    assert node.tree.looks == []


async def test_a_fresh_summary_is_not_older_than_the_question(node: Node) -> None:
    await node.stats.summary()
    await node.stats.summary(fresh=True)
    assert (node.tree.reads.count("/"), node.runtime.asked) == (2, 2)


async def test_the_runtime_is_asked_for_layers_every_ten_seconds_at_most(node: Node) -> None:
    for _ in range(4):
        await node.stats.summary()
        await asyncio.sleep(DISKS_MAX_AGE / 3)
    assert node.runtime.asked == 2


# -- what fails ----------------------------------------------------------------------------------------------------


async def test_a_runtime_that_is_away_takes_only_its_own_figures_along(node: Node) -> None:
    node.runtime.down = True
    summary = await node.stats.summary()
    (web,) = summary.pods
    assert web.containers[0].cpu is not None
    assert web.containers[0].rootfs is None
    assert summary.node.runtime is not None
    assert summary.node.runtime.image_fs is None
    assert summary.node.fs is not None


async def test_a_pod_that_vanishes_meanwhile_leaves_the_others(node: Node) -> None:
    node.views.seen.append(observed_pod(observed_container("b"), uid=PodUID("uid-2"), name="b"))
    node.tree.gone |= {f"{GROUP}/main-0", GROUP, "/k8s.io/main-0"}
    summary = await node.stats.summary()
    gone, other = summary.pods
    assert gone.containers[0].cpu is None
    assert other.containers[0].name == "b"


async def test_hung_control_groups_are_told_to_who_asks(node: Node) -> None:
    node.threads.stuck.add("figures of control groups")
    with pytest.raises(StatsUnavailable, match="figures of control groups"):
        await node.stats.summary_json()
    with pytest.raises(StatsUnavailable):
        await node.stats.cadvisor_metrics()
    assert b"resource_scrape_error 1" in await node.stats.resource_metrics()


@pytest.mark.parametrize("stuck", ["file system of", "sizes of container logs"])
async def test_a_hung_disk_leaves_cpu_and_memory(node: Node, stuck: str) -> None:
    node.threads.stuck.add(stuck)
    (web,) = (await node.stats.summary()).pods
    assert web.containers[0].cpu is not None
    assert web.containers[0].logs is None


async def test_a_pod_that_cannot_be_a_folder_has_no_sizes_but_others_do(node: Node, tmp_path: Path) -> None:
    node.views.seen.insert(0, observed_pod(observed_container("b"), uid=PodUID("../b"), name="b"))
    logs = tmp_path / "logs" / "default_web_uid-1" / "main"
    logs.mkdir(parents=True)
    (logs / "0.log").write_bytes(b"x" * 4096)
    bad, web = (await node.stats.summary()).pods
    assert bad.containers[0].logs is None
    assert web.containers[0].logs is not None
    assert web.containers[0].logs.inodes_used == 1


# -- volumes -------------------------------------------------------------------------------------------------------


def test_volumes_with_the_nodes_own_data_are_walked() -> None:
    of = pod(
        uid=UID,
        volumes=(
            Volume(name="tmp", empty_dir=EmptyDirVolumeSource()),
            Volume(name="conf", config_map=ConfigMapVolumeSource(name="c")),
            Volume(name="share", nfs=NFSVolumeSource(server="s", path="/")),
            Volume(name="host", host_path=HostPathVolumeSource(path="/etc")),
        ),
    )
    base = "/root/pods/uid-1/volumes"
    assert volume_places(of, RootLayout("/root"), lambda uid: {UID: {"claimed": f"{base}/x/pv-1"}}[PodUID(uid)]) == [
        VolumePlace("claimed", f"{base}/x/pv-1", False),
        VolumePlace("tmp", f"{base}/kubernetes.io~empty-dir/tmp", True),
        VolumePlace("conf", f"{base}/kubernetes.io~configmap/conf", True),
        VolumePlace("share", f"{base}/kubernetes.io~nfs/share", False),
    ]


def with_volume(node: Node, tmp_path: Path) -> Path:
    """Gives the pod an emptyDir."""
    node.views.wanted = [pod(uid=UID, volumes=(Volume(name="tmp", empty_dir=EmptyDirVolumeSource()),))]
    folder = tmp_path / "pods" / UID / "volumes" / "kubernetes.io~empty-dir" / "tmp"
    folder.mkdir(parents=True)
    return folder


async def inodes(node: Node, volumes: VolumeUsage | None = None) -> int | None:
    """What is told of the emptyDir."""
    pods = {PodUID(one.metadata.uid): one for one in node.views.wanted}
    targets = choose_targets(node.views.seen, pods, lambda _: "")
    found = (await (volumes or node.volumes).read(targets)).get(UID, {}).get("tmp")
    return found.used.inodes if found is not None else None


async def test_volumes_are_measured_again_after_one_to_two_periods(node: Node, tmp_path: Path) -> None:
    # behaviours.md §32: "Volume stats are refreshed per pod each volumeStatsAggPeriod to twice that (jitter 1.0)"
    folder = with_volume(node, tmp_path)
    assert await inodes(node) == 1
    (folder / "file").touch()
    await asyncio.sleep(59)
    assert await inodes(node) == 1
    await asyncio.sleep(62)
    assert await inodes(node) == 2


async def test_a_volume_that_its_file_system_counts_is_not_walked(node: Node, tmp_path: Path) -> None:
    folder = with_volume(node, tmp_path)
    (folder / "file").touch()
    assert await inodes(node, node.volume_usage(60.0, lambda path: ProjectUse(bytes=4096, inodes=77))) == 77
    assert await inodes(node, node.volume_usage(60.0, lambda path: None)) == 2


async def test_a_period_of_zero_measures_nothing(node: Node, tmp_path: Path) -> None:
    # behaviours.md §32: "a value <= 0 switches them off"
    with_volume(node, tmp_path)
    assert await inodes(node, node.volume_usage(0)) is None
    assert node.threads.calls == []


async def test_a_volume_that_hangs_keeps_its_old_figures(node: Node, tmp_path: Path) -> None:
    folder = with_volume(node, tmp_path)
    await inodes(node)
    (folder / "file").touch()
    node.threads.stuck.add("sizes of volumes of default/web")
    await asyncio.sleep(121)
    assert await inodes(node) == 1
    node.threads.stuck.clear()
    await asyncio.sleep(121)
    assert await inodes(node) == 2


async def test_volumes_of_pods_that_are_gone_are_forgotten(node: Node, tmp_path: Path) -> None:
    with_volume(node, tmp_path)
    await inodes(node)
    assert await node.volumes.read([]) == {}


async def test_a_volume_that_is_not_mounted_has_no_figures(node: Node) -> None:
    node.views.wanted = [pod(uid=UID, volumes=(Volume(name="tmp", empty_dir=EmptyDirVolumeSource()),))]
    assert await inodes(node) is None
