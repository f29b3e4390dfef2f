"""What is reserved, and what runs out of memory, on the real kernel: reserved cgroups hold what is in them, and a kill
is known by its pod and container."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.host.cgroups.discovery import max_tasks
from glasslet.host.cgroups.tree import Setting
from glasslet.host.cgroups.v1 import CgroupV1
from glasslet.host.machine import read_machine
from glasslet.host.threads import HostThreads
from glasslet.node.oom_watch import OomWatch
from glasslet.record.store import Record
from glasslet.resources.cgroup_manager import CgroupManager
from glasslet.resources.layout import CgroupLayout, parse_name
from glasslet.resources.node_cgroups import NodeCgroups
from glasslet.resources.node_rules import node_rules
from glasslet.resources.node_share import read_node_share
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod
from tests.component.cgroup_world import Durations
from tests.fakes.background import in_background
from tests.fakes.cgroups import RealRoot, real_root

MI = 2**20
ID = "5ca1ab1e" * 8
OTHER_ID = "deadbeef" * 8
TAKES = """
import os, sys
with open(sys.argv[1], "w") as group:
    group.write(str(os.getpid()))
child = os.fork()
if not child:
    with open(sys.argv[2], "w") as group:
        group.write(str(os.getpid()))
    taken = bytearray(200 << 20)
    taken[::4096] = b"x" * len(taken[::4096])
    os._exit(0)
_, status = os.waitpid(child, 0)
print(os.WTERMSIG(status), flush=True)
"""
"""A process in one cgroup, whose child takes 200 MiB in another."""
FORKS = """
import os, sys
with open(sys.argv[1], "w") as group:
    group.write(str(os.getpid()))
made = 0
try:
    while made < 100:
        if not os.fork():
            sys.stdin.read()
            os._exit(0)
        made += 1
except BlockingIOError:
    pass
print(made, flush=True)
"""


@pytest.fixture
def root() -> Iterator[RealRoot]:
    with real_root() as made:
        yield made


def path(root: RealRoot, controller: str, name: str) -> str:
    base = root.tree.mounts[controller] if isinstance(root.tree, CgroupV1) else "/sys/fs/cgroup"
    return f"{base}{root.path}{name}/cgroup.procs"


def output_of(program: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, input="", timeout=60
    ).stdout.strip()


def node_cgroups(root: RealRoot, events: list[tuple[str, ...]], **configuration: object) -> NodeCgroups:
    settings = KubeletConfiguration(
        cgroup_root=root.path,
        system_reserved_cgroup=f"{root.path}/system",
        kube_reserved_cgroup=f"{root.path}/kube",
        **configuration,  # type: ignore[arg-type]
    )
    record = Record()
    layout = CgroupLayout(root=parse_name(root.path))
    share = read_node_share(settings, read_machine(), "/")
    return NodeCgroups(
        manager=CgroupManager(
            tree=root.tree, threads=HostThreads(recorder=record), recorder=record, metrics=Durations()
        ),
        rules=node_rules(settings, layout, share, cpus="", memory_qos=False),
        classes=None,
        events=lambda *words: events.append(words),
        recorder=record,
    )


async def test_reserved_cgroups_get_their_reservation_and_pods_what_is_left(root: RealRoot) -> None:
    for name in ("/system", "/kube", "/kubepods"):
        root.tree.create(root.path + name)
    events: list[tuple[str, ...]] = []
    node = node_cgroups(
        root,
        events,
        enforce_node_allocatable=["pods", "system-reserved", "kube-reserved"],
        system_reserved={"cpu": "500m", "memory": "64Mi", "pid": "40"},
        kube_reserved={"cpu": "250m", "memory": "32Mi", "pid": "30"},
    )
    await node.start()
    await node.run()
    assert [words[1] for words in events] == ["NodeAllocatableEnforced"] * 3
    tasks = max_tasks()
    assert tasks is not None
    assert root.read("/kubepods", "pids", "pids.max") == str(tasks - 70)
    assert [root.read(name, "pids", "pids.max") for name in ("/system", "/kube")] == ["40", "30"]
    if isinstance(root.tree, CgroupV1):
        found = {name: root.read(name, "memory", "memory.limit_in_bytes") for name in ("/system", "/kube")}
        assert found == {"/system": str(64 * MI), "/kube": str(32 * MI)}
        assert [root.read(name, "cpu", "cpu.shares") for name in ("/system", "/kube")] == ["512", "256"]
        memory = read_machine().memory_capacity
        left = int(root.read("/kubepods", "memory", "memory.limit_in_bytes"))
        assert memory - 96 * MI - 4096 < left <= memory - 96 * MI


async def test_daemons_cannot_take_more_than_their_reservation(root: RealRoot) -> None:
    root.tree.create(f"{root.path}/system")
    node = node_cgroups(
        root,
        [],
        enforce_node_allocatable=["system-reserved"],
        system_reserved={"cpu": "500m", "memory": "64Mi", "pid": "10"},
    )
    await node.start()
    made = int(await asyncio.to_thread(output_of, FORKS, path(root, "pids", "/system")))
    assert made == 9
    procs = path(root, "memory", "/system")
    assert await asyncio.to_thread(output_of, TAKES, procs, procs) == "9"


async def test_compressible_reservations_leave_memory_and_processes_alone(root: RealRoot) -> None:
    root.tree.create(f"{root.path}/kube")
    before = root.read("/kube", "pids", "pids.max")
    node = node_cgroups(
        root,
        [],
        enforce_node_allocatable=["kube-reserved-compressible"],
        kube_reserved={"cpu": "250m", "memory": "32Mi", "pid": "30"},
    )
    await node.start()
    assert root.read("/kube", "pids", "pids.max") == before
    if isinstance(root.tree, CgroupV1):
        assert root.read("/kube", "cpu", "cpu.shares") == "256"


def observed(container_id: str, name: str) -> ObservedPod:
    container = ObservedContainer(
        id=ContainerID(container_id),
        name="main",
        attempt=0,
        phase=ContainerPhase.RUNNING,
        sandbox_id=SandboxID("s"),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return ObservedPod(uid=PodUID(f"uid-{name}"), name=name, namespace="shop", containers=(container,))


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not happened():
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("inside", ["", "/app", f"/{OTHER_ID}"])
async def test_the_kill_of_a_child_process_is_known_by_its_pod_and_container(root: RealRoot, inside: str) -> None:
    """`inside`: a cgroup that the container made for its child, also with the id of another pod's container."""
    if not isinstance(root.tree, CgroupV1):
        pytest.skip("OOM KILLS OF THE REAL KERNEL NOT TESTED: limits are written for version 1 here")
    container = f"/kubepods/poduid-web/{ID}"
    root.tree.create(root.path + container + inside)
    limit = Setting("memory", "memory.limit_in_bytes", str(40 * MI))
    root.tree.write(root.path + container, [limit])
    events: list[tuple[str, str, str]] = []
    watch = OomWatch(
        pods=lambda: [observed(OTHER_ID, "other"), observed(ID, "web")],
        node_events=lambda *words: None,
        pod_events=lambda pod, kind, reason, message: events.append((str(pod), reason, message)),
        recorder=Record(),
    )
    async with in_background(watch.run):
        await asyncio.sleep(0.1)
        main, child = path(root, "memory", container), path(root, "memory", container + inside)
        assert await asyncio.to_thread(output_of, TAKES, main, child) == "9"
        await until(lambda: events)
    ((pod, reason, message),) = events
    assert (pod, reason) == ("shop/web", "OOMKilling")
    assert message.startswith("The kernel killed process python3")
    assert message.endswith("of container main: the container reached its memory limit")
