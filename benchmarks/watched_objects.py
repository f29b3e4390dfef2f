"""The cost of very many ConfigMaps at a real kube-apiserver (etcd and kube-apiserver of tests/controlplane, kubectl).

    python -m benchmarks.watched_objects [--objects 2000] [--pods 10] [--unlimited]

Prints connections, file descriptors, RSS and CPU of this process once every object was read, and the seconds from a
change of each object until its pod is notified. `--unlimited`: one watch for each object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time

import uvloop
from tests.builders.podspec import pod_of
from tests.fakes.control_plane import ControlPlane
from tests.fakes.request_metrics import Uncounted

from benchmarks.machine import cpu_seconds, rss_megabytes
from glasslet.api.configdata import ConfigMap
from glasslet.api.meta import ObjectMeta
from glasslet.api.object import PodUID
from glasslet.concurrency.clock import SystemClock
from glasslet.kubeapi import paths
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.kubeconfig import load_kubeconfig
from glasslet.kubeapi.objects.pod_objects import Detection, PodObjects, build_pod_objects
from glasslet.kubeapi.objects.watch_places import WatchPlaces
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.record.store import Record


def client_of(kubeconfig: str, qps: float) -> HTTPAPIClient:
    """A client as the agent has it."""
    clock = SystemClock()
    return HTTPAPIClient(
        config=load_kubeconfig(kubeconfig),
        recorder=Record(),
        clock=clock,
        metrics=Uncounted(),
        limiter=RequestLimiter(qps=qps, burst=100, clock=clock),
        user_agent="benchmark",
    )


def sockets() -> int:
    """Open sockets of this process."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except OSError:
            continue
    return found


async def sync(store: PodObjects, names: list[str]) -> None:
    """Reads every object about once a minute, as the syncs of pods with volumes do."""
    while True:
        await asyncio.sleep(60)
        for name in names:
            await store.config_map("default", name)


async def measure(kubeconfig: str, objects: int, pods: int, places: WatchPlaces) -> dict[str, object]:
    """One run; the figures by name."""
    writer, client = client_of(kubeconfig, 0), client_of(kubeconfig, 50)
    names = [f"c{number:05}" for number in range(objects)]
    where = paths.namespaced("default", "configmaps")
    for start in range(0, objects, 50):
        made = [ConfigMap(metadata=ObjectMeta(name=name), data={"key": "1"}) for name in names[start : start + 50]]
        await asyncio.gather(*(writer.create(where, one, ConfigMap) for one in made))
    idle = sockets(), rss_megabytes(os.getpid())
    woken: asyncio.Queue[PodUID] = asyncio.Queue()
    store = build_pod_objects(
        Detection(strategy="Watch", sync_frequency=60.0, on_change=woken.put_nowait, places=places),
        client=client,
        recorder=Record(),
        clock=SystemClock(),
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(store.run())
        began, cpu = time.monotonic(), cpu_seconds(os.getpid())
        share = objects // pods
        for pod in range(pods):
            sources = [{"configMapRef": {"name": name}} for name in names[pod * share : (pod + 1) * share]]
            store.register(pod_of({"envFrom": sources}, meta={"uid": f"p{pod}", "name": f"p{pod}"}))
        for name in names:
            while True:
                try:
                    await store.config_map("default", name)
                    break
                except Exception:  # the first second of a watch was too short
                    await asyncio.sleep(0.2)
        read, read_cpu = time.monotonic() - began, cpu_seconds(os.getpid()) - cpu
        figures: dict[str, object] = {
            "seconds until all were read": round(read, 1),
            "CPU seconds for that": round(read_cpu, 2),
            "connections": sockets() - idle[0],
            "file descriptors": len(os.listdir("/proc/self/fd")),
            "RSS MB more": round(rss_megabytes(os.getpid()) - idle[1], 1),
        }
        cpu, began = cpu_seconds(os.getpid()), time.monotonic()
        await asyncio.sleep(30)
        figures["CPU % at rest"] = round(100 * (cpu_seconds(os.getpid()) - cpu) / (time.monotonic() - began), 2)
        syncs = group.create_task(sync(store, names))
        began = time.monotonic()
        for start in range(0, objects, 50):
            await asyncio.gather(
                *(
                    writer.patch(f"{where}/{name}", {"data": {"key": "2"}}, ConfigMap)
                    for name in names[start : start + 50]
                )
            )
        changed = time.monotonic() - began
        seen: list[float] = []
        while len(seen) < objects:
            await asyncio.wait_for(woken.get(), 900)
            seen.append(time.monotonic() - began - changed / 2)
        figures["seconds until seen: median"] = round(statistics.median(seen), 1)
        figures["seconds until seen: last"] = round(max(seen), 1)
        syncs.cancel()
        running.cancel()
    await client.close()
    await writer.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--pods", type=int, default=10)
    parser.add_argument("--unlimited", action="store_true")
    options = parser.parse_args()
    places = WatchPlaces(per_node=10**6, per_pod=10**6) if options.unlimited else WatchPlaces()
    plane = ControlPlane()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(json.dumps(runner.run(measure(plane.kubeconfig, options.objects, options.pods, places)), indent=1))
    finally:
        plane.stop()


if __name__ == "__main__":
    main()
