"""The whole agent with cgroups of its own, on a real containerd: values in the files, restarts, and nothing left."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from glasslet.host.cgroups.discovery import max_tasks
from glasslet.host.cgroups.kernel_amounts import cpu_shares, cpu_weight
from glasslet.host.machine import read_machine
from tests.fakes.agent import FOR_EVER, Agent, Rows, agent_on, busybox_pod
from tests.fakes.cgroups import RealRoot, real_root
from tests.fakes.containerd import PrivateContainerd

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(300)]

MI = 2**20
PIDS = 321
V1 = {
    "cpu": ("cpu", "cpu.shares"),
    "quota": ("cpu", "cpu.cfs_quota_us"),
    "memory": ("memory", "memory.limit_in_bytes"),
    "pids": ("pids", "pids.max"),
}
V2 = {
    "cpu": ("cpu", "cpu.weight"),
    "quota": ("cpu", "cpu.max"),
    "memory": ("memory", "memory.max"),
    "pids": ("pids", "pids.max"),
}
NO_LIMIT = {"quota": "-1", "memory": "9223372036854771712"}


@pytest.fixture
def root() -> Iterator[RealRoot]:
    with real_root() as made:
        yield made


@pytest.fixture
def agent(containerd: PrivateContainerd, root: RealRoot) -> Iterator[Agent]:
    with tempfile.TemporaryDirectory(prefix="glt") as folder, agent_on(containerd, Path(folder), **held(root)) as one:
        yield one


def held(root: RealRoot) -> dict[str, Any]:
    """Settings of an agent that holds its pods in cgroups."""
    return {
        "cgroupRoot": root.path,
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": ["pods"],
        "podPidsLimit": PIDS,
        "kubeReserved": {"memory": "64Mi", "cpu": "100m", "pid": "100"},
        "systemReserved": {"memory": "36Mi"},
        "syncFrequency": "1s",
    }


def with_resources(name: str, requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    manifest = busybox_pod(name)
    manifest["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": limits}
    return manifest


def value(root: RealRoot, name: str, what: str) -> str:
    """A value in the form of version 1."""
    found = root.read(name, *(V1 if root.tree.version == 1 else V2)[what])
    if root.tree.version == 2 and found.startswith("max"):
        return NO_LIMIT[what]
    return found.split()[0]


def container_values(root: RealRoot, pod: str) -> tuple[int, ...]:
    """(shares, quota, bytes) of the pod's only container, which asks for no less than the sandbox beside it."""
    children = root.tree.children(root.path + pod)
    assert len(children) == 2
    whats = ("cpu", "quota", "memory")
    found = [tuple(int(value(root, f"{pod}/{child}", what)) for what in whats) for child in children]
    sandbox, main = sorted(found, key=lambda values: (values[0], values[1] >= 0))
    assert sandbox == (2, -1, int(NO_LIMIT["memory"]))
    return main


def share(root: RealRoot, shares: int) -> str:
    return str(shares if root.tree.version == 1 else cpu_weight(shares))


def place(root: RealRoot, rows: Rows, name: str) -> str:
    """Where a pod's cgroup is, below the root."""
    uid = rows[name]["uid"]
    return f"{root.pods()[uid]}/pod{uid}"


def all_ready(*names: str) -> Callable[[Rows], bool]:
    return lambda rows: all(rows.get(name, {}).get("ready") == 1 for name in names)


async def until(happened: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "did not happen"
        await asyncio.sleep(0.02)


async def test_every_class_has_its_values_in_the_files_of_the_kernel(agent: Agent, root: RealRoot) -> None:
    # behaviours.md §16: "Pod cgroup, Guaranteed: shares, quota, memory. Burstable: shares = sum of requests; quota or
    # memory only if every container (incl. init) has that limit or the pod level has it. BestEffort: shares 2. pids.max
    # from podPidsLimit > 0"
    both = {"cpu": "100m", "memory": "32Mi"}
    agent.put(with_resources("guaranteed", both, both))
    agent.put(with_resources("limited", {"cpu": "50m"}, {"cpu": "200m", "memory": "48Mi"}))
    agent.put(with_resources("unlimited", {"cpu": "150m", "memory": "16Mi"}, {}))
    agent.put(busybox_pod("besteffort"))
    names = ("guaranteed", "limited", "unlimited", "besteffort")
    rows = await agent.wait_for(all_ready(*names))
    found = {
        name: tuple(value(root, place(root, rows, name), what) for what in ("cpu", "quota", "memory", "pids"))
        for name in names
    }
    unlimited = (NO_LIMIT["quota"], NO_LIMIT["memory"], str(PIDS))
    assert found == {
        "guaranteed": (share(root, 102), "10000", str(32 * MI), str(PIDS)),
        "limited": (share(root, 51), "20000", str(48 * MI), str(PIDS)),
        "unlimited": (share(root, 153), *unlimited),
        "besteffort": (share(root, 2), *unlimited),
    }
    assert {name: place(root, rows, name).rpartition("/")[0] for name in names} == {
        "guaranteed": "/kubepods",
        "limited": "/kubepods/burstable",
        "unlimited": "/kubepods/burstable",
        "besteffort": "/kubepods/besteffort",
    }
    # behaviours.md §16: "Containers get shares over CRI; newer runtimes use another curve."
    if root.tree.version == 1:
        assert {name: container_values(root, place(root, rows, name)) for name in names} == {
            "guaranteed": (102, 10_000, 32 * MI),
            "limited": (51, 20_000, 48 * MI),
            "unlimited": (153, -1, int(NO_LIMIT["memory"])),
            "besteffort": (2, -1, int(NO_LIMIT["memory"])),
        }
    # behaviours.md §16: "QoS level: Burstable shares = sum of its pods' requests (at least 2), BestEffort 2"
    await until(lambda: value(root, "/kubepods/burstable", "cpu") == share(root, 204))
    assert value(root, "/kubepods/besteffort", "cpu") == share(root, 2)


async def test_all_pods_together_have_what_is_not_reserved(agent: Agent, root: RealRoot) -> None:
    # behaviours.md §16: "kubepods: shares, memory limit, pids and hugetlb from capacity - kubeReserved - systemReserved
    # when `pods` is enforced"
    await agent.wait_until_ready()
    machine = read_machine()
    page = 4096
    assert value(root, "/kubepods", "cpu") == share(root, cpu_shares(machine.cpu_count * 1000 - 100))
    assert value(root, "/kubepods", "memory") == str((machine.memory_capacity - 100 * MI) // page * page)
    assert value(root, "/kubepods", "pids") == str(max_tasks() - 100)


async def test_processes_of_containers_are_below_their_pod(agent: Agent, root: RealRoot) -> None:
    agent.put(busybox_pod("web"))
    rows = await agent.wait_for(all_ready("web"))
    pod = place(root, rows, "web")
    assert root.tree.own_processes(root.path + pod) == set()
    assert len(root.tree.processes(root.path + pod)) >= 2


async def test_a_pod_that_ends_takes_what_is_left_of_it_along(agent: Agent, root: RealRoot) -> None:
    # behaviours.md §4: "pod cgroup removed (remaining processes killed, up to 5 tries)"
    agent.put(busybox_pod("web"))
    rows = await agent.wait_for(all_ready("web"))
    left = stray(root, place(root, rows, "web"))
    agent.remove("web")
    await agent.wait_for(lambda rows: not rows)
    await until(lambda: not root.pods())
    assert left.wait(60) == -9


async def test_many_pods_leave_nothing_in_any_tree(agent: Agent, root: RealRoot) -> None:
    names = [f"pod-{number}" for number in range(8)]
    for name in names:
        agent.put(busybox_pod(name))
    await agent.wait_for(all_ready(*names))
    for name in names:
        agent.remove(name)
    await agent.wait_for(lambda rows: not rows)
    await until(lambda: not root.pods())
    assert root.tree.children(f"{root.path}/kubepods") == {"burstable", "besteffort"}
    assert root.tree.children(f"{root.path}/kubepods/besteffort") == set()


async def test_an_agent_that_dies_again_and_again_leaves_every_pod_with_its_limits(
    agent: Agent, root: RealRoot
) -> None:
    """Killed at random moments of roll-outs and of removals; what was half made is made whole."""
    chance = random.Random(5)
    both = {"cpu": "20m", "memory": "24Mi"}
    names = [f"pod-{number}" for number in range(6)]
    for name in names:
        agent.put(with_resources(name, both, both))
        await asyncio.sleep(chance.uniform(0.2, 1.2))
        agent.kill()
        agent.start()
    rows = await agent.wait_for(all_ready(*names), seconds=120)
    for name in names:
        pod = place(root, rows, name)
        assert value(root, pod, "memory") == str(24 * MI)
        assert value(root, pod, "quota") == "2000"
        assert value(root, pod, "pids") == str(PIDS)
    for name in names:
        agent.remove(name)
        await asyncio.sleep(chance.uniform(0.0, 0.4))
        agent.kill()
        agent.start()
    await until(lambda: not root.pods())
    await until(lambda: not root.tree.processes(root.path))


async def test_the_cgroup_of_a_pod_that_ended_unseen_is_removed(agent: Agent, root: RealRoot) -> None:
    """Nobody knows the pod any more: neither a source nor the runtime."""
    await agent.wait_until_ready()
    with standing_still(agent):
        root.tree.create(f"{root.path}/kubepods/besteffort/pod0f1e2d3c")
        left = stray(root, "/kubepods/besteffort/pod0f1e2d3c")
    await until(lambda: not root.pods())
    assert left.wait(60) == -9


async def test_a_running_pod_whose_cgroup_is_gone_is_set_up_anew(agent: Agent, root: RealRoot) -> None:
    # behaviours.md §1: "If the pod cgroup is missing while containers run, the pod is killed first and then set up anew
    # (no new cgroup for restartPolicy Never)."
    agent.put(busybox_pod("web"))
    agent.put(busybox_pod("once", f"echo once; {FOR_EVER}", restartPolicy="Never"))
    rows = await agent.wait_for(all_ready("web", "once"))
    with standing_still(agent):
        for name in ("web", "once"):
            pod = place(root, rows, name)
            for pid in root.tree.processes(root.path + pod):
                root.tree.move(pid, root.path)
            assert root.tree.remove(root.path + pod)
    rows = await agent.wait_for(
        lambda rows: rows["web"].get("ready") == 1 and rows["web"]["uid"] in root.pods() and ended(rows["once"])
    )
    assert rows["once"]["uid"] not in root.pods()
    await until(lambda: len(root.tree.processes(root.path + place(root, rows, "web"))) >= 2)


def ended(row: dict[str, Any]) -> bool:
    return row["phase"] in ("Failed", "Succeeded")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cgroupRoot": "/glt-is-not-there"}, 'invalid configuration: cgroup ["glt-is-not-there"] has some missing'),
        (
            {"enforceNodeAllocatable": ["pods", "system-reserved"], "systemReservedCgroup": "/glt-is-not-there"},
            'Failed to enforce System Reserved Cgroup Limits on "/glt-is-not-there"',
        ),
        (
            {"kubeReserved": {"memory": "1Gi"}, "evictionHard": {"memory.available": "99%"}},
            'invalid Node Allocatable configuration. Resource "memory" has a reservation of',
        ),
    ],
)
async def test_a_start_that_cannot_hold_pods_fails_with_one_clear_line(
    containerd: PrivateContainerd, root: RealRoot, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    with agent_on(containerd, tmp_path, **(held(root) | changed)) as agent:
        await until(lambda: agent.exit_code() is not None)
        assert agent.exit_code() == 1
        assert said in agent.log.read_text()


async def test_without_cgroups_of_ours_pods_are_where_the_runtime_puts_them(
    containerd: PrivateContainerd, root: RealRoot, tmp_path: Path
) -> None:
    with agent_on(containerd, tmp_path) as agent:
        agent.put(busybox_pod("web"))
        await agent.wait_for(all_ready("web"))
        assert root.tree.children(root.path) == set()


@contextmanager
def standing_still(agent: Agent) -> Iterator[None]:
    """The agent sees what the body does as one step."""
    os.kill(agent.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(agent.pid, signal.SIGCONT)


def stray(root: RealRoot, name: str) -> subprocess.Popen[bytes]:
    """A process that sits in a pod's cgroup and is nobody's."""
    process = subprocess.Popen(["sleep", "600"])
    root.tree.move(process.pid, root.path + name)
    return process
