"""The CPU cost of making and removing a pod's cgroup, beside the kernel's own cost for the same files.

    python -m benchmarks.pod_cgroups [--pods 200] [--rounds 5]

Needs root. Everything happens in a cgroup of its own, which is gone afterwards.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import uvloop
from tests.builders.podspec import pod_of
from tests.fakes.cgroups import RealRoot, real_root

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.host.cgroups.limits import settings
from glasslet.host.cgroups.v1 import CgroupV1
from glasslet.host.threads import HostThreads
from glasslet.podspec.demand import pod_demand
from glasslet.record.store import Record
from glasslet.resources.cgroup_manager import CgroupManager
from glasslet.resources.layout import CgroupLayout, parse_name
from glasslet.resources.pod_cgroups import PodCgroups
from glasslet.resources.pod_limits import PodRules, limits_of_pod

RULES = PodRules(pids_limit=1000)


class NoFigures:
    """Metrics that are discarded."""

    def operation(self, kind: str, seconds: float) -> None:
        return


def build(root: RealRoot) -> PodCgroups:
    """Builds the cgroup manager as the agent does."""
    record = Record()
    manager = CgroupManager(tree=root.tree, threads=HostThreads(recorder=record), recorder=record, metrics=NoFigures())
    layout = CgroupLayout(root=parse_name(root.path))
    return PodCgroups(manager=manager, layout=layout, rules=RULES, demand=pod_demand, recorder=record)


async def ours(cgroups: PodCgroups, pods: list[Pod]) -> float:
    """Milliseconds of CPU per pod, kernel included."""
    begin = time.process_time()
    for pod in pods:
        await cgroups.ensure(pod)
    for pod in pods:
        await cgroups.remove(pod_ref(pod))
    return (time.process_time() - begin) / len(pods) * 1000


def by_hand(root: RealRoot, pods: list[Pod]) -> float:
    """Writes the same files by plain system calls, with contents prepared before."""
    version = root.tree.version
    mounts = root.tree.mounts if isinstance(root.tree, CgroupV1) else {}
    needed = ("cpu", "cpuacct", "cpuset", "memory", "systemd", "pids")
    trees = list(dict.fromkeys(mounts[name] for name in needed if name in mounts)) or ["/sys/fs/cgroup"]
    work = []
    for pod in pods:
        path = f"{root.path}/kubepods/burstable/pod{pod.metadata.uid}"
        written = [
            (f"{mounts.get(one.controller, trees[0])}{path}/{one.file}", one.value.encode())
            for one in settings(limits_of_pod(pod_demand(pod), RULES), version=version)
        ]
        work.append(([tree + path for tree in trees], written))
    begin = time.process_time()
    for folders, written in work:
        for folder in folders:
            os.mkdir(folder)
        for file, value in written:
            handle = os.open(file, os.O_WRONLY)
            os.write(handle, value)
            os.close(handle)
    for folders, _ in work:
        for folder in folders:
            os.rmdir(folder)
    return (time.process_time() - begin) / len(pods) * 1000


async def measure(pods: int, rounds: int) -> None:
    """Measures in alternating rounds, so that both meet the same load."""
    resources = {"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}}
    many = [pod_of({"resources": resources}, meta={"uid": f"u{number}"}) for number in range(pods)]
    with real_root() as root:
        root.tree.create(f"{root.path}/kubepods/burstable")
        cgroups = build(root)
        kernel, agent = [], []
        for _ in range(rounds):
            kernel.append(by_hand(root, many))
            agent.append(await ours(cgroups, many))
    print(f"kernel alone  {statistics.median(kernel):.3f} ms of CPU per pod (made, filled, removed)")
    print(f"glasslet      {statistics.median(agent):.3f} ms")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    uvloop.run(measure(given.pods, given.rounds))


if __name__ == "__main__":
    main()
