"""Pods with a volume of a CSI driver: from created to Ready, beside the Go kubelet, one at a time and many at once.

    python -m benchmarks.volume_start [--rounds 3] [--single 5] [--burst 30]

Needs what `benchmarks.vs_go_kubelet` needs. The volumes are attached by the real attach/detach controller, and marked
as attached here as soon as it asks; the driver is that of the tests, which binds a directory. In each round both
kubelets have an empty node and a fresh folder, and who is first changes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.e2e.conftest import forget_loopback_address
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd, import_test_images
from tests.fakes.control_plane import ControlPlane

from benchmarks.cluster_client import DELETED, PODS, READY, ClusterClient, Watch
from benchmarks.comparison import Round, Row, table
from benchmarks.contender import VERSION, contender, go_kubelet
from benchmarks.machine import cpu_seconds, machine
from benchmarks.scenarios import pod

DRIVER = "d.example"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
REPOSITORY = Path(__file__).resolve().parents[1]


def rows(burst: int) -> list[Row]:
    """The lines of the table."""
    return [
        Row("single", "one pod with a volume, create -> Ready", "ms"),
        Row("delete", "one pod with a volume, delete -> DELETED", "ms"),
        Row("burst", f"{burst} pods with a volume each, all Ready", "s", 2),
        Row("burst-cpu", f"CPU for these {burst}", "s", 2),
        Row("burst-delete", f"these {burst} deleted at once, all gone", "s", 2),
    ]


def pod_with_volume(name: str, claim: str) -> dict[str, Any]:
    """As in the other benchmarks, and a volume."""
    made = pod(name)
    made["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return made


def objects(volumes: int) -> list[dict[str, Any]]:
    """The CSIDriver, and bound volumes v0, v1, ..."""
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}}
    found: list[dict[str, Any]] = [{**kind, "spec": {"attachRequired": True}}]
    for name in (f"v{number}" for number in range(volumes)):
        spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        of = {"namespace": "default", "name": name}
        source = {"driver": DRIVER, "volumeHandle": name}
        volume = spec | {"capacity": {"storage": "1Gi"}, "csi": source, "claimRef": of}
        claim = spec | {"volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
        meta = {"name": name}
        found += [
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": volume},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim},
        ]
    return found


class VolumeStarts:
    """One kubelet's part of a round."""

    def __init__(self, client: ClusterClient, agent: Agent, *, single: int, burst: int) -> None:
        self.figures: dict[str, list[float]] = defaultdict(list)
        self._client, self._agent, self._single, self._burst = client, agent, single, burst
        self._pods = self._attachments = Watch()

    async def run(self) -> None:
        """All of it."""
        nodes = await self._client.watch("/api/v1/nodes")
        self._pods = await self._client.watch(PODS)
        self._attachments = await self._client.watch(ATTACHMENTS)
        self._agent.start()
        await nodes.all_of([NODE], READY, 120)
        with driver(self._agent):
            path = "/apis/storage.k8s.io/v1/csinodes"
            nodes_of_drivers = ""
            while DRIVER not in nodes_of_drivers:
                await asyncio.sleep(0.1)
                nodes_of_drivers = (await self._client.request("GET", path)).decode()
            async with self._attaching():
                await self._measure()

    async def _measure(self) -> None:
        await self._up(["warm"])
        await self._down(["warm"])
        for number in range(self._single):
            name = f"single-{number}"
            self.figures["single"].append(await self._up([name]) * 1000)
            self.figures["delete"].append(await self._down([name]) * 1000)
        names = [f"burst-{number}" for number in range(self._burst)]
        before = cpu_seconds(self._agent.pid)
        self.figures["burst"].append(await self._up(names))
        self.figures["burst-cpu"].append(cpu_seconds(self._agent.pid) - before)
        self.figures["burst-delete"].append(await self._down(names))

    async def _up(self, names: Sequence[str]) -> float:
        volumes = {name: f"v{number}" for number, name in enumerate(names)}
        began = await self._client.in_parallel(
            lambda name: self._client.create(pod_with_volume(name, volumes[name])), names
        )
        return float(max(await self._pods.all_of(names, READY)) - min(began))

    async def _down(self, names: Sequence[str]) -> float:
        began = await self._client.in_parallel(self._client.delete, names)
        took = float(max(await self._pods.all_of(names, DELETED)) - min(began))
        await until(lambda: not self._attachments.objects)
        await asyncio.sleep(1)
        return took

    @contextlib.asynccontextmanager
    async def _attaching(self) -> AsyncIterator[None]:
        """Volumes are attached as soon as the controller asks."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._attach_all())
            yield
            task.cancel()

    async def _attach_all(self) -> None:
        done: set[str] = set()
        while True:
            wanted = set(self._attachments.objects)
            for name in wanted - done:
                found = json.loads(await self._client.request("GET", f"{ATTACHMENTS}/{name}"))
                body = {**found, "status": {"attached": True}}
                await self._client.request("PUT", f"{ATTACHMENTS}/{name}/status", body)
            done = wanted
            await asyncio.sleep(0.005)


async def until(happens: Callable[[], bool]) -> None:
    """Waits for a fact, two minutes at most."""
    end = time.monotonic() + 120
    while not happens():
        if time.monotonic() > end:
            raise TimeoutError("did not happen in two minutes")
        await asyncio.sleep(0.1)


@contextlib.contextmanager
def driver(agent: Agent) -> Iterator[None]:
    """A driver of the node, as a process."""
    log = agent.folder / "calls"
    words = [sys.executable, "-m", "tests.fakes.csi_driver", "--root", str(agent.root), "--node", NODE]
    process = subprocess.Popen([*words, "--name", DRIVER, "--log", str(log)], cwd=REPOSITORY)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def one(folder: Path, plane: ControlPlane, runtime: PrivateContainerd, program: tuple[str, ...], asked: Any) -> Any:
    """Runs one kubelet's part of a round; its figures."""

    async def run(agent: Agent) -> dict[str, list[float]]:
        async with ClusterClient(plane.kubeconfig) as client:
            starts = VolumeStarts(client, agent, single=asked.single, burst=asked.burst)
            await starts.run()
            return dict(starts.figures)

    with contender(folder, plane, runtime, program) as agent:
        figures = asyncio.run(run(agent))
    plane.kubectl("delete", "csinode", "--all", check=False)
    shown = {key: [round(sample, 2) for sample in samples] for key, samples in figures.items()}
    print(f"  {folder.name}: {json.dumps(shown)}", file=sys.stderr, flush=True)
    return figures


def main() -> None:
    """Runs the benchmark and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--single", type=int, default=5, help="single pods a round")
    parser.add_argument("--burst", type=int, default=30, help="pods at once")
    asked = parser.parse_args()
    go = (str(go_kubelet()),)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # so that everything is cleared up
    folder = Path(tempfile.mkdtemp(prefix="glb-"))
    runtime = PrivateContainerd(folder / "ctd")
    done: list[Round] = []
    try:
        runtime.start()
        import_test_images(runtime)
        plane = ControlPlane(node=NODE)
        try:
            plane.wait_for_default_service_account()
            plane.apply(*objects(asked.burst))
            for number in range(asked.rounds):
                print(f"round {number + 1}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
                parts = [("k", go), ("g", ())]
                found = {
                    name: one(folder / name, plane, runtime, program, asked)
                    for name, program in (parts if number % 2 == 0 else reversed(parts))
                }
                done.append(Round(go=found["k"], ours=found["g"]))
        finally:
            plane.stop()
            forget_loopback_address()
    finally:
        runtime.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{datetime.now(UTC).date()}: Go kubelet {VERSION}, {machine()}, {asked.rounds} rounds\n")
    print(table(rows(asked.burst), done))


if __name__ == "__main__":
    main()
