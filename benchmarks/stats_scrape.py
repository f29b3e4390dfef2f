"""The CPU cost of one scrape of statistics, with N pods on this machine's real control groups.

Makes N pods' groups below a root of its own (pod, sandbox and container each, one sleeping process in the latter two),
asks `NodeStatistics` for each answer in turn, and removes everything again. Each answer twice: with containers that all
slept since the last time, and with containers that all did something. Needs root.

    python benchmarks/stats_scrape.py [--pods 110] [--rounds 20]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import SystemClock
from glasslet.host.cgroups.discovery import find_tree
from glasslet.host.cgroups.figures_v1 import FiguresV1
from glasslet.host.cgroups.figures_v2 import FiguresV2
from glasslet.host.cgroups.tree import CgroupTree
from glasslet.host.files.layout import LogLayout, RootLayout
from glasslet.host.machine import read_machine
from glasslet.host.threads import HostThreads
from glasslet.record.store import Record
from glasslet.runtime.model import (
    ContainerPhase,
    FilesystemUsage,
    ObservedContainer,
    ObservedPod,
    ObservedSandbox,
    RuntimeDisks,
)
from glasslet.runtime.usage import ContainerUsage
from glasslet.stats.collector import NodeCollector
from glasslet.stats.disks.storage import PodFolders, Storage
from glasslet.stats.disks.volume_usage import VolumeUsage, volume_places
from glasslet.stats.node_figures import BlockDevices, Sockets
from glasslet.stats.node_stats import NodeStatistics
from glasslet.stats.pages.cadvisor_page import MachineLabels
from glasslet.stats.pages.summary import SummaryNode
from glasslet.stats.targets import SystemGroups

NOW = datetime.now(UTC)


class Pods:
    """Implements `collector.PodViews`."""

    def __init__(self, top: str, count: int) -> None:
        self.top = top
        self._observed = [self._pod(number) for number in range(count)]
        self._pods = [Pod(metadata=ObjectMeta(name=p.name, namespace="bench", uid=p.uid)) for p in self._observed]

    def observed(self) -> Sequence[ObservedPod]:
        return self._observed

    def pods(self) -> Sequence[Pod]:
        return self._pods

    def pod_cgroup(self, pod: Pod) -> str:
        return f"{self.top}/besteffort/pod{pod.metadata.uid}"

    def groups(self) -> Iterator[str]:
        for pod in self._observed:
            yield f"{self.top}/besteffort/pod{pod.uid}/{pod.sandboxes[0].id}"
            yield f"{self.top}/besteffort/pod{pod.uid}/{pod.containers[0].id}"

    @staticmethod
    def _pod(number: int) -> ObservedPod:
        sandbox, container = SandboxID(f"{number:064x}"), ContainerID(f"{number + 100_000:064x}")
        return ObservedPod(
            uid=PodUID(f"00000000-0000-0000-0000-{number:012d}"),
            name=f"web-{number}",
            namespace="bench",
            sandboxes=(ObservedSandbox(id=sandbox, attempt=0, ready=True, created_at=NOW),),
            containers=(
                ObservedContainer(
                    id=container,
                    name="main",
                    attempt=0,
                    phase=ContainerPhase.RUNNING,
                    sandbox_id=sandbox,
                    created_at=NOW,
                    started_at=NOW,
                    image="registry.example/bench/web:1",
                ),
            ),
        )


class Runtime:
    """A runtime that answers at once: its own cost is not the agent's."""

    def __init__(self, pods: Pods) -> None:
        layer = FilesystemUsage(mountpoint="/", used_bytes=4096, inodes_used=2, timestamp=NOW)
        self._usages = tuple(
            ContainerUsage(id=c.id, name=c.name, writable_layer=layer) for p in pods.observed() for c in p.containers
        )

    async def list_container_stats(self) -> tuple[ContainerUsage, ...]:
        return self._usages

    async def disks(self) -> RuntimeDisks:
        return RuntimeDisks(
            images=(FilesystemUsage(mountpoint="/", used_bytes=1 << 30, inodes_used=1000, timestamp=NOW),)
        )


def node_stats(pods: Pods, tree: FiguresV1 | FiguresV2, folder: Path) -> NodeStatistics:
    """Builds NodeStatistics as `assembly.stats` does."""
    record, clock = Record(), SystemClock()
    threads = HostThreads(recorder=record)
    runtime, system = Runtime(pods), SystemGroups(pods=pods.top)
    root = RootLayout(str(folder))
    places = partial(volume_places, root=root, claimed=lambda _: {})
    return NodeStatistics(
        collector=NodeCollector(views=pods, tree=tree, system=system, threads=threads, clock=clock, recorder=record),
        disks=Storage(
            runtime=runtime,
            images=runtime,
            folders=PodFolders(root, LogLayout(pod_logs_dir=f"{folder}/logs")),
            threads=threads,
            clock=clock,
            recorder=record,
        ),
        volumes=VolumeUsage(places=places, period=60, threads=threads, clock=clock),
        node=SummaryNode(name="bench", memory=1 << 32, system=system),
        machine=MachineLabels(machine=read_machine(), topology=Sockets(), device=BlockDevices().name),
        threads=threads,
    )


@contextmanager
def groups_of(pods: Pods, tree: CgroupTree) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Makes the control groups with a process in each; a container's process runs briefly when it receives a byte."""
    sleepers = []
    try:
        for group in pods.groups():
            tree.create(group)
            sleeper = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            sleepers.append(sleeper)
            tree.move(sleeper.pid, group)
        yield sleepers[1::2]
    finally:
        for sleeper in sleepers:
            os.kill(sleeper.pid, signal.SIGKILL)
            sleeper.wait()
        for _ in range(100):
            if tree.remove(pods.top.rpartition("/")[0]):
                break
            time.sleep(0.05)


def wake(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Makes every process run briefly."""
    for process in processes:
        assert process.stdin is not None
        os.write(process.stdin.fileno(), b".")


async def measure(
    name: str, ask: Callable[[], object], rounds: int, running: Sequence[subprocess.Popen[bytes]] = ()
) -> None:
    """CPU and wall time of one answer. `running`: called between two answers."""
    cpu, wall, size = [], [], 0
    for _ in range(rounds):
        wake(running)
        await asyncio.sleep(1.1)  # past the age that a reading is good for
        began, before = time.perf_counter(), time.process_time()
        body = await ask()  # type: ignore[misc]
        cpu.append((time.process_time() - before) * 1000)
        wall.append((time.perf_counter() - began) * 1000)
        size = len(body)
    before = time.process_time()
    zlib.compress(body, 1)
    packing = (time.process_time() - before) * 1000
    state = "awake" if running else "asleep"
    print(
        f"{name:32} {state:6} CPU min {min(cpu):6.1f} ms  median {statistics.median(cpu):6.1f} ms"
        f"  wall {statistics.median(wall):6.1f} ms  {size / 1000:8.1f} kB  gzip {packing:5.1f} ms"
    )


async def main(pods: Pods, folder: Path, rounds: int, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Measures every answer in turn."""
    version = find_tree().version
    stats = node_stats(pods, FiguresV2("/sys/fs/cgroup") if version == 2 else FiguresV1("/sys/fs/cgroup"), folder)
    print(f"{len(pods.observed())} pods, cgroup v{version}, Python {sys.version.split()[0]}, {os.cpu_count()} CPUs")
    answers = {
        "/metrics/resource": stats.resource_metrics,
        "/stats/summary, CPU and memory": lambda: stats.summary_json(only_cpu_and_memory=True),
        "/stats/summary": stats.summary_json,
        "/metrics/cadvisor": stats.cadvisor_metrics,
    }
    for name, ask in answers.items():
        await measure(name, ask, rounds)
        await measure(name, ask, rounds, processes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=110)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    bench = Pods(f"/glasslet-bench-{os.getpid()}/kubepods", arguments.pods)
    here = Path(f"/tmp/glasslet-bench-{os.getpid()}")
    here.mkdir()
    try:
        with groups_of(bench, find_tree()) as inhabitants:
            asyncio.run(main(bench, here, arguments.rounds, inhabitants))
    finally:
        here.rmdir()
