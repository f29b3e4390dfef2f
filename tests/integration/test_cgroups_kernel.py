"""Cgroups on the real kernel, without any runtime: values, processes that are left, the agent's own place."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from glasslet.api.pod_ref import pod_ref
from glasslet.host.cgroups.v1 import CgroupV1
from glasslet.host.threads import HostThreads
from glasslet.podspec.demand import pod_demand
from glasslet.record.stations import WaitKind
from glasslet.record.store import Record
from glasslet.resources.cgroup_manager import CgroupManager
from glasslet.resources.layout import CgroupLayout, parse_name
from glasslet.resources.own_cgroup import OwnCgroup
from glasslet.resources.pod_cgroups import PodCgroups
from glasslet.resources.pod_limits import PodRules
from tests.builders.podspec import pod_of
from tests.component.cgroup_world import Durations
from tests.fakes.cgroups import RealRoot, real_root

MI = 2**20


@pytest.fixture
def root() -> Iterator[RealRoot]:
    with real_root() as made:
        yield made


def pod_cgroups(root: RealRoot, record: Record | None = None) -> PodCgroups:
    record = record or Record()
    manager = CgroupManager(tree=root.tree, threads=HostThreads(recorder=record), recorder=record, metrics=Durations())
    return PodCgroups(
        manager=manager,
        layout=CgroupLayout(root=parse_name(root.path)),
        rules=PodRules(pids_limit=321),
        demand=pod_demand,
        recorder=record,
    )


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"])


def shell(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", script], stderr=subprocess.DEVNULL)


def output_of(program: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    ).stdout


GUARANTEED = pod_of(
    {"resources": {"requests": {"cpu": "250m", "memory": "32Mi"}, "limits": {"cpu": "250m", "memory": "32Mi"}}},
    meta={"uid": "u1"},
)


async def test_the_kernel_takes_the_values_as_they_are_written(root: RealRoot) -> None:
    await pod_cgroups(root).ensure(GUARANTEED)
    pod = "/kubepods/podu1"
    if isinstance(root.tree, CgroupV1):
        found = {
            "shares": root.read(pod, "cpu", "cpu.shares"),
            "period": root.read(pod, "cpu", "cpu.cfs_period_us"),
            "quota": root.read(pod, "cpu", "cpu.cfs_quota_us"),
            "memory": root.read(pod, "memory", "memory.limit_in_bytes"),
        }
        assert found == {"shares": "256", "period": "100000", "quota": "25000", "memory": str(32 * MI)}
    else:
        found = {file: root.read(pod, file.split(".")[0], file) for file in ("cpu.weight", "cpu.max", "memory.max")}
        assert found == {"cpu.weight": "10", "cpu.max": "25000 100000", "memory.max": str(32 * MI)}
    assert root.read(pod, "pids", "pids.max") == "321"


async def test_processes_that_are_left_are_killed_and_the_cgroup_goes(root: RealRoot) -> None:
    # behaviours.md §4: "pod cgroup removed (remaining processes killed, up to 5 tries)"
    record = Record()
    cgroups = pod_cgroups(root, record)
    path = await cgroups.ensure(GUARANTEED)
    with sleeper() as of_pod, sleeper() as below, sleeper() as elsewhere:
        root.tree.create(f"{path}/container")
        root.tree.move(of_pod.pid, path)
        root.tree.move(below.pid, f"{path}/container")
        await cgroups.remove(pod_ref(GUARANTEED))
        assert (of_pod.wait(60), below.wait(60)) == (-9, -9)
        assert elsewhere.poll() is None
        elsewhere.kill()
    assert root.tree.children(f"{root.path}/kubepods") == set()
    events = record.of(None)
    assert events is not None
    assert any(getattr(event, "kind", "") == WaitKind.EXIT for event in events.events)


async def test_frozen_processes_die_too(root: RealRoot) -> None:
    cgroups = pod_cgroups(root)
    path = await cgroups.ensure(GUARANTEED)
    root.tree.create(f"{path}/container")
    with sleeper() as frozen:
        root.tree.move(frozen.pid, f"{path}/container")
        _freeze(root, f"{path}/container")
        await cgroups.remove(pod_ref(GUARANTEED))
        assert frozen.wait(60) == -9
    assert root.tree.children(f"{root.path}/kubepods") == set()


async def test_removal_of_a_process_that_forks_all_the_time_ends(root: RealRoot) -> None:
    cgroups = pod_cgroups(root)
    path = await cgroups.ensure(GUARANTEED)
    script = f"echo $$ > {_procs(root, path)}; while :; do sleep 600 & sleep 0.001; done"
    with shell(script) as bomb:
        while not root.tree.processes(path):
            await asyncio.sleep(0.005)
        await cgroups.remove(pod_ref(GUARANTEED))
        assert bomb.wait(60) == -9
    assert root.tree.children(f"{root.path}/kubepods") == set()


MOVES_ITSELF = """
import asyncio, sys
from glasslet.host.cgroups.discovery import find_tree
from glasslet.host.threads import HostThreads
from glasslet.record.store import Record
from glasslet.resources.own_cgroup import OwnCgroup

async def main():
    scores = []
    threads = HostThreads(recorder=Record())
    own = OwnCgroup(
        tree=find_tree(), threads=threads, agent=sys.argv[1], set_oom_score=lambda: scores.append(1),
        on_host=lambda: True,
    )
    await own.keep()
    await own.keep()
    print(len(scores))
    print(open("/proc/self/cgroup").read())

asyncio.run(main())
"""


async def test_an_agent_moves_to_its_own_cgroup(root: RealRoot) -> None:
    # config-fields: "kubeletCgroups: Cgroup to put the kubelet itself in"
    place = f"{root.path}/agent"
    scores, *places = output_of(MOVES_ITSELF, place).split()
    assert scores == "2"
    assert {line.split(":", 2)[2] for line in places} == {place}


async def test_a_place_that_cannot_be_had_stops_nothing(root: RealRoot, caplog: pytest.LogCaptureFixture) -> None:
    own = OwnCgroup(
        tree=root.tree,
        threads=HostThreads(recorder=Record()),
        set_oom_score=lambda: None,
        agent=f"{root.path}/no\nname",
        on_host=lambda: True,
    )
    await own.keep()
    assert "processes not in their cgroup" in caplog.text


def _freeze(root: RealRoot, path: str) -> None:
    if isinstance(root.tree, CgroupV1):
        with open(f"/sys/fs/cgroup/freezer{path}/freezer.state", "w") as state:
            state.write("FROZEN")
    else:
        with open(f"/sys/fs/cgroup{path}/cgroup.freeze", "w") as state:
            state.write("1")


def _procs(root: RealRoot, path: str) -> str:
    base = "/sys/fs/cgroup/memory" if isinstance(root.tree, CgroupV1) else "/sys/fs/cgroup"
    return f"{base}{path}/cgroup.procs"
