"""The scenarios of a round, run against each of the two kubelets, and their figures."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import BUSYBOX, PAUSE, PrivateContainerd

from benchmarks.cluster_client import DELETED, FAILED, PODS, READY, ClusterClient, Watch, running
from benchmarks.comparison import Row
from benchmarks.machine import cpu_seconds, rss_megabytes, wake_ups

LINE = "x" * 99


@dataclass(frozen=True)
class Extent:
    """Sizes of the scenarios. `rest`: seconds measured at rest; `settle`: seconds before that; `log`: megabytes."""

    single: int = 10
    restarts: int = 5
    execs: int = 10
    log: int = 50
    burst: int = 110
    rest_pods: tuple[int, ...] = (0, 30, 110)
    rest: float = 20.0
    settle: float = 8.0


def rows(extent: Extent) -> list[Row]:
    """The lines of the table."""
    at_rest = [
        Row(f"{key}-{pods}", f"at rest, {pods} pods: {what}", unit, digits)
        for key, what, unit, digits in (
            ("cpu", "CPU", "% of a core", 2),
            ("wake", "threads that wake up", "a second", 1),
            ("rss", "memory", "MB", 0),
        )
        for pods in extent.rest_pods
    ]
    return [
        Row("startup", "process started -> node Ready", "ms"),
        Row("single", "one pod, create -> Ready", "ms"),
        Row("delete", "one pod, delete -> DELETED", "ms"),
        Row("restart", "container killed -> running again", "ms"),
        Row("status", "container killed -> Failed in the status", "ms"),
        Row("exec", "`exec true`", "ms"),
        Row("log", f"`logs` of {extent.log} MB", "MB/s", 0, more_is_better=True),
        Row("log-cpu", "CPU for 100 MB of logs", "s", 2),
        Row("burst", f"{extent.burst} pods at once, all Ready", "s", 2),
        Row("burst-cpu", f"CPU for these {extent.burst}", "s", 2),
        Row("burst-delete", f"{extent.burst} pods deleted at once, all gone", "s", 2),
        Row("burst-delete-cpu", f"CPU for these {extent.burst}", "s", 2),
        *at_rest,
    ]


SCENARIOS = ("startup", "rest", "single", "restart", "status", "exec", "log", "burst")
"""Scenario names on the command line. A burst also leads to the highest number of pods at rest."""


def pod(name: str, *command: str, restart: str = "Always") -> dict[str, Any]:
    """One container: pause, or busybox with a command."""
    container: dict[str, Any] = {"name": "c", "image": BUSYBOX if command else PAUSE, "imagePullPolicy": "IfNotPresent"}
    if command:
        container["command"] = list(command)
    spec = {
        "nodeName": NODE,
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "dnsPolicy": "Default",
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


class Scenarios:
    """One kubelet's round. `figures`: samples by row; `failures`: what did not work, in words."""

    def __init__(self, *, client: ClusterClient, agent: Agent, runtime: PrivateContainerd, extent: Extent) -> None:
        self.figures: dict[str, list[float]] = defaultdict(list)
        self.failures: list[str] = []
        self._client, self._agent, self._runtime, self._extent = client, agent, runtime, extent
        self._pods = Watch()
        self._pauses = random.Random(1)

    async def run(self, wanted: Sequence[str]) -> None:
        """Runs the chosen scenarios. A failure is noted; the next scenario starts from an empty node."""
        nodes = await self._client.watch("/api/v1/nodes")
        self._pods = await self._client.watch(PODS)
        began = time.monotonic()
        self._agent.start()
        self._add("startup", (await nodes.all_of([NODE], READY, 120))[0] - began, 1000)
        await self._warm_up()
        for name in SCENARIOS[1:]:
            if name in wanted or (name == "burst" and "rest" in wanted):
                try:
                    await getattr(self, f"_{name}")(wanted)
                except (TimeoutError, AssertionError, OSError) as failure:
                    self.failures.append(f"{name}: {failure}")
                    await self._clear()
        if "startup" not in wanted:
            del self.figures["startup"]

    async def _warm_up(self) -> None:
        """Runs a first pod, which pays for one-time work."""
        await self._up(["warm"])
        await self._down(["warm"])

    async def _rest(self, _: Sequence[str]) -> None:
        for number in self._extent.rest_pods:
            if number != self._extent.burst:
                names = [f"rest-{i}" for i in range(number)]
                await self._up(names)
                await self._at_rest(number)
                await self._down(names)

    async def _single(self, _: Sequence[str]) -> None:
        for i in range(self._extent.single):
            await self._pause()
            self._add("single", (await self._up([f"single-{i}"]))[1], 1000)
            await self._pause()
            self._add("delete", (await self._down([f"single-{i}"]))[1], 1000)

    async def _restart(self, _: Sequence[str]) -> None:
        names = [f"restart-{i}" for i in range(self._extent.restarts)]
        await self._up(names)
        await self._killed(names, "restart", running(1))
        await self._down(names)

    async def _status(self, _: Sequence[str]) -> None:
        names = [f"status-{i}" for i in range(self._extent.restarts)]
        await self._up(names, restart="Never")
        await self._killed(names, "status", FAILED)
        await self._down(names)

    async def _exec(self, _: Sequence[str]) -> None:
        await self._up(["exec"], "sleep", "100000")
        await self._client.exec_true("exec")
        for _number in range(self._extent.execs):
            self._add("exec", await self._client.exec_true("exec"), 1000)
        await self._down(["exec"])

    async def _log(self, _: Sequence[str]) -> None:
        size = self._extent.log * 1_000_000
        await self._up(["log"], "sh", "-c", f"yes {LINE} | head -c {size}; sleep 100000")
        async with asyncio.timeout(120):
            written = before = 0
            while written < size or written > before:
                await asyncio.sleep(1)
                before, written = written, sum(f.stat().st_size for f in self._agent.logs.glob("*_log_*/c/0.log"))
        with self._cpu("log-cpu", 100 / self._extent.log):
            got, seconds = await self._client.read_log("log")
        assert got == size, f"{got} bytes of {size}"
        self._add("log", got / seconds, 1e-6)
        await self._down(["log"])

    async def _burst(self, wanted: Sequence[str]) -> None:
        names = [f"burst-{i}" for i in range(self._extent.burst)]
        await asyncio.sleep(2)
        with self._cpu("burst-cpu"):
            self._add("burst", (await self._up(names))[1])
        if "rest" in wanted and self._extent.burst in self._extent.rest_pods:
            await self._at_rest(self._extent.burst)
        with self._cpu("burst-delete-cpu"):
            self._add("burst-delete", (await self._down(names))[1])

    async def _up(self, names: Sequence[str], *command: str, restart: str = "Always") -> tuple[float, float]:
        """Creates pods and waits until all are Ready. Returns the start time and the seconds to the last."""
        began = await self._client.in_parallel(
            lambda name: self._client.create(pod(name, *command, restart=restart)), names
        )
        ready = await self._pods.all_of(names, READY)
        return _span(began, ready)

    async def _down(self, names: Sequence[str]) -> tuple[float, float]:
        """Deletes the pods; returns as `_up`."""
        began = await self._client.in_parallel(self._client.delete, names)
        return _span(began, await self._pods.all_of(names, DELETED))

    async def _killed(self, names: Sequence[str], key: str, then: str) -> None:
        """Kills the containers' processes one after the other; waits for the fact each time."""
        await asyncio.sleep(2)
        pids = self._runtime.pids()
        for name in names:
            await self._pause()
            container = self._pods.objects[name].status.container_statuses[0].container_id.partition("//")[2]
            began = time.monotonic()
            os.kill(pids[container], signal.SIGKILL)
            self._add(key, (await self._pods.all_of([name], then, 60))[0] - began, 1000)

    async def _at_rest(self, pods: int) -> None:
        await asyncio.sleep(self._extent.settle)
        pid, seconds = self._agent.pid, self._extent.rest
        cpu, woken = cpu_seconds(pid), wake_ups(pid)
        await asyncio.sleep(seconds)
        self._add(f"cpu-{pods}", cpu_seconds(pid) - cpu, 100 / seconds)
        self._add(f"wake-{pods}", wake_ups(pid) - woken, 1 / seconds)
        self._add(f"rss-{pods}", rss_megabytes(pid))

    async def _clear(self) -> None:
        """Deletes all pods after a failure."""
        names = list(self._pods.objects)
        await self._client.in_parallel(lambda name: self._client.delete(name, "?gracePeriodSeconds=0"), names)
        await self._pods.all_of(names, DELETED, 120)

    async def _pause(self) -> None:
        """Pauses for a random time, to avoid running in step with a kubelet's timers."""
        await asyncio.sleep(self._pauses.uniform(0.2, 1.2))

    def _add(self, key: str, sample: float, factor: float = 1) -> None:
        self.figures[key].append(sample * factor)

    @contextmanager
    def _cpu(self, key: str, factor: float = 1) -> Iterator[None]:
        """CPU of the kubelet while the body runs."""
        before = cpu_seconds(self._agent.pid)
        yield
        self._add(key, cpu_seconds(self._agent.pid) - before, factor)


def _span(began: Sequence[float], ended: Sequence[float]) -> tuple[float, float]:
    first = min(began, default=0.0)
    return first, max(ended, default=first) - first
