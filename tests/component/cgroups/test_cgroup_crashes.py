"""An agent killed at every step of making, resizing and removing cgroups: the next goes on from what the kernel has."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.host.cgroups.tree import CgroupTree, KernelFiles, hybrid_mount
from glasslet.host.cgroups.v1 import CgroupV1
from glasslet.host.cgroups.v2 import CgroupV2
from glasslet.host.mounts.table import read_mount_table
from glasslet.podspec.demand import pod_demand
from glasslet.record.store import Record
from glasslet.resources.cgroup_manager import CgroupManager
from glasslet.resources.layout import CgroupLayout, parse_name
from glasslet.resources.node_cgroups import NodeCgroups
from glasslet.resources.node_rules import NodeRules
from glasslet.resources.orphan_cgroups import OrphanCgroups
from glasslet.resources.pod_cgroups import PodCgroups
from glasslet.resources.pod_limits import PodRules
from glasslet.resources.qos_cgroups import QoSCgroups
from glasslet.resources.qos_limits import QoSRules
from tests.builders.podspec import pod_of
from tests.component.cgroup_world import Durations, KnownPods
from tests.component.volume_world import Killed, SteppingThreads, Steps
from tests.fakes.cgroups import FoldersV1, FoldersV2, real_root

MI = 2**20
PIDS = 321


def guaranteed(uid: str, cpu: str, memory: str) -> Pod:
    both = {"cpu": cpu, "memory": memory}
    return pod_of({"resources": {"requests": both, "limits": both}}, meta={"uid": uid})


SMALL, LARGE = guaranteed("u1", "100m", "32Mi"), guaranteed("u1", "300m", "64Mi")
OTHER = pod_of({"resources": {"requests": {"cpu": "500m"}}}, meta={"uid": "u2"})
PLACE, OTHER_PLACE = "/kubepods/podu1", "/kubepods/burstable/podu2"


class Machine:
    """What outlives an agent. `root` is the cgroupRoot; `real` whether processes can be in the cgroups."""

    def __init__(self, tree: CgroupTree, stepping: Callable[[KernelFiles], CgroupTree], root: str, *, real: bool):
        self.tree = tree
        self.stepping = stepping
        self.root = root
        self.real = real
        self.kernel = KernelFiles()

    def processes(self, *places: str) -> list[subprocess.Popen[bytes]]:
        """One in each pod."""
        made = [subprocess.Popen(["sleep", "600"]) for _ in places] if self.real else []
        for process, place in zip(made, places, strict=False):
            self.tree.move(process.pid, self.root + place)
        return made

    def left(self) -> set[str]:
        """Cgroups of pods, of any class."""
        classes = ("/kubepods", "/kubepods/burstable", "/kubepods/besteffort")
        found = {name for place in classes for name in self.tree.children(self.root.rstrip("/") + place)}
        return found - {"burstable", "besteffort"}


class Agent:
    """What makes and removes cgroups, a step after each thing that it has the kernel do."""

    def __init__(self, machine: Machine, steps: Steps, pods: list[Pod]) -> None:
        record, layout = Record(), CgroupLayout(root=parse_name(machine.root))
        tree = machine.stepping(stepping_kernel(machine.kernel, steps))
        manager = CgroupManager(tree=tree, threads=SteppingThreads(steps), recorder=record, metrics=Durations())
        classes = QoSCgroups(
            manager=manager,
            layout=layout,
            rules=QoSRules(),
            pods=lambda: [pod_demand(pod) for pod in pods],
            recorder=record,
        )
        rules = NodeRules(
            layout=layout, root=layout.root, limits=CgroupLimits(cpu_shares=2048, memory=4096 * MI, pids=999)
        )
        self.node = NodeCgroups(
            manager=manager, rules=rules, classes=classes, events=lambda *words: None, recorder=record
        )
        self.pods = PodCgroups(
            manager=manager, layout=layout, rules=PodRules(pids_limit=PIDS), demand=pod_demand, recorder=record
        )


def stepping_kernel(kernel: KernelFiles, steps: Steps) -> KernelFiles:
    def make(path: str) -> None:
        kernel.make(path)
        steps.step()

    def remove(path: str) -> None:
        kernel.remove(path)
        steps.step()

    def write(path: str, value: str) -> None:
        kernel.write(path, value)
        steps.step()

    return KernelFiles(make=make, remove=remove, write=write)


async def live(machine: Machine, steps: Steps, reached: list[str]) -> None:
    """Two pods come, one is resized and goes. `reached` tells how far it got."""
    agent = Agent(machine, steps, [SMALL, OTHER])
    await agent.node.start()
    await agent.pods.ensure(SMALL)
    await agent.pods.ensure(OTHER)
    reached.append("made")
    await agent.pods.widen(SMALL, LARGE)
    await agent.pods.adjust(LARGE)
    reached.append("resized")
    await agent.pods.remove(pod_ref(LARGE))


def assert_values(machine: Machine, pod: Pod) -> None:
    """Those of the pod that is resized, beside the other's."""

    def value(place: str, controller: str, v1: str, v2: str) -> str:
        file = v1 if machine.tree.version == 1 else v2
        return machine.tree.read(machine.root.rstrip("/") + place, controller, file)

    milli, memory = (100, 32) if pod is SMALL else (300, 64)
    quota = str(milli * 100) if machine.tree.version == 1 else f"{milli * 100} 100000"
    assert value(PLACE, "cpu", "cpu.cfs_quota_us", "cpu.max") == quota
    assert value(PLACE, "memory", "memory.limit_in_bytes", "memory.max") == str(memory * MI)
    assert value(PLACE, "pids", "pids.max", "pids.max") == str(PIDS)
    assert value(OTHER_PLACE, "cpu", "cpu.shares", "cpu.weight") == ("512" if machine.tree.version == 1 else "20")


async def killed_and_taken_up(machine: Machine, at: int, *, by_the_source: bool) -> bool:
    """Two agents one after the other, the first killed before that step; whether it came so far. The second still has
    the resized pod from its source, or only sees what is left of it."""
    steps, reached = Steps(at), list[str]()
    with suppress(Killed):
        await live(machine, steps, reached)
    wanted = LARGE if "made" in reached else SMALL
    agent = Agent(machine, Steps(), [wanted, OTHER])
    await agent.node.start()
    await agent.pods.ensure(OTHER)
    running = machine.processes(OTHER_PLACE)
    if by_the_source:
        await agent.pods.ensure(wanted)
        assert_values(machine, wanted)
        running += machine.processes(PLACE)
        await agent.pods.remove(pod_ref(wanted))
    else:
        known = KnownPods()
        known.living = {"u2"}
        await OrphanCgroups(cgroups=agent.pods, pods=known).tidy()
    assert machine.left() == {"podu2"}
    assert [process.poll() for process in running[:1]] == [None] * len(running[:1]), "the other pod runs on"
    await agent.pods.remove(pod_ref(OTHER))
    assert machine.left() == set()
    assert [process.wait(60) for process in running] == [-9] * len(running)
    return steps.dead


def fake(folder: Path, version: int) -> Machine:
    if version == 1:
        one = FoldersV1(folder)
        machine = Machine(
            one.tree,
            lambda kernel: CgroupV1(mounts={name: str(folder / name) for name in one.tree.mounts}, kernel=kernel),
            "/",
            real=False,
        )
        machine.kernel = one.kernel
    else:
        two = FoldersV2(folder)
        machine = Machine(two.tree, lambda kernel: CgroupV2(root=str(folder), kernel=kernel), "/", real=False)
        machine.kernel = two.kernel
    return machine


@pytest.fixture
def on_the_kernel() -> Iterator[Machine]:
    with real_root() as root:
        tree = root.tree

        def stepping(kernel: KernelFiles) -> CgroupTree:
            if isinstance(tree, CgroupV1):
                return CgroupV1(mounts=tree.mounts, hybrid=hybrid_mount(read_mount_table()), kernel=kernel)
            return CgroupV2(kernel=kernel)

        yield Machine(tree, stepping, root.path, real=True)


@pytest.mark.parametrize("by_the_source", [True, False], ids=["wanted", "orphaned"])
@pytest.mark.parametrize("version", [1, 2])
async def test_an_agent_killed_at_any_step_leaves_nothing_that_the_next_one_cannot_take_up(
    tmp_path: Path, version: int, by_the_source: bool
) -> None:
    at = 0
    while await killed_and_taken_up(fake(new_folder(tmp_path, at), version), at, by_the_source=by_the_source):
        at += 1
    assert at > 40


def new_folder(above: Path, number: int) -> Path:
    folder = above / str(number)
    folder.mkdir()
    return folder


@pytest.mark.parametrize("by_the_source", [True, False], ids=["wanted", "orphaned"])
async def test_the_kernels_own_cgroups_are_taken_up_at_any_step_too(
    on_the_kernel: Machine, by_the_source: bool
) -> None:
    """Every third step, and with processes: those of a pod that goes die, those of the other do not."""
    at = 0
    while await killed_and_taken_up(on_the_kernel, at, by_the_source=by_the_source):
        at += 3
    assert at > 15
