"""The observed model on a real containerd: what happens is seen from events, and costs few reads."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.concurrency.clock import SystemClock
from glasslet.record.store import Record
from glasslet.runtime.cri.connection import CRIConnection, connect
from glasslet.runtime.model import ContainerPhase, ObservedPod
from glasslet.runtime.observed import ObservedPods, Periods, RuntimeConditions
from glasslet.runtime.protocols import RuntimeHint
from glasslet.runtime.spec import ContainerSpec, SandboxSpec
from tests.fakes.containerd import BUSYBOX, PrivateContainerd

pytestmark = pytest.mark.containerd

RUNS = ("/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done")


class Figures:
    def operation(self, *_: object) -> None: ...
    def relisted(self, seconds: float, interval: float | None) -> None: ...
    def last_seen(self, unix_seconds: float) -> None: ...
    def discarded(self, changes: int) -> None: ...


class CountingReads:
    """The real runtime; notes reads of single pods, and how far its hints have come."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self.reads: list[PodUID] = []
        self.subscribed = asyncio.Event()
        self.listed_since = asyncio.Event()
        """A list that began after the stream of hints says that it is open is answered: no other one follows."""
        self.told = asyncio.Event()
        """A hint of something that happened came: the stream is surely open."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    async def read_pod(self, uid: PodUID) -> ObservedPod | None:
        self.reads.append(uid)
        pod: ObservedPod | None = await self._runtime.read_pod(uid)
        return pod

    async def list_pods(self) -> tuple[ObservedPod, ...]:
        is_later = self.subscribed.is_set()
        pods: tuple[ObservedPod, ...] = await self._runtime.list_pods()
        if is_later:
            self.listed_since.set()
        return pods

    async def hints(self, wanted: Callable[[RuntimeHint], bool] = bool) -> AsyncIterator[RuntimeHint]:
        async with contextlib.aclosing(self._runtime.hints(wanted)) as stream:
            async for hint in stream:
                (self.told if hint.id is not None else self.subscribed).set()
                yield hint


class Node:
    def __init__(self, connection: CRIConnection, daemon: PrivateContainerd, folder: Path) -> None:
        self.daemon = daemon
        self.folder = folder
        self.runtime = CountingReads(connection.runtime)
        self.record = Record()
        # No full list comes to the help of a hint that was missed.
        self.observed = ObservedPods(
            runtime=self.runtime,
            recorder=self.record,
            metrics=Figures(),
            clock=SystemClock(),
            periods=Periods(relist=3600.0),
        )
        self.changed = asyncio.Event()
        self.observed.subscribe(lambda uid, old, new: self.changed.set())

    async def start_pod(self, name: str) -> tuple[PodUID, SandboxID, ContainerID]:
        labels = {
            "io.kubernetes.pod.uid": f"uid-{name}",
            "io.kubernetes.pod.name": name,
            "io.kubernetes.pod.namespace": "default",
        }
        logs = self.folder / name
        logs.mkdir()
        spec = SandboxSpec(
            name=name, namespace="default", uid=f"uid-{name}", hostname=name, labels=labels, log_directory=str(logs)
        )
        made = ContainerSpec(name="main", image=BUSYBOX, command=RUNS, labels=labels, log_path="main/0.log")
        with self.observed.changing(PodUID(spec.uid)):
            sandbox = await self.runtime.run_sandbox(spec)
            await self.observed.refresh(PodUID(spec.uid))
        with self.observed.changing(PodUID(spec.uid)):
            container = await self.runtime.create_container(sandbox, made, spec)
            await self.runtime.start_container(container)
            await self.observed.refresh(PodUID(spec.uid))
        return PodUID(spec.uid), sandbox, container

    async def hears(self) -> None:
        """Until all is known and what happens from now on is heard of: pods are made until one is told of."""
        async with asyncio.timeout(120):
            await self.observed.synced.wait()
            await self.runtime.listed_since.wait()
            for number in itertools.count():
                await self.start_pod(f"first-{number}")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.runtime.told.wait(), 5)
                    return

    async def until(self, uid: PodUID, is_so: Callable[[ObservedPod | None], bool]) -> None:
        """Until the snapshot is so."""
        async with asyncio.timeout(60):
            while not is_so(self.observed.get(uid)):
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture
async def node(containerd: PrivateContainerd, tmp_path: Path) -> AsyncIterator[Node]:
    record = Record()
    connection = await connect(containerd.endpoint, recorder=record, metrics=Figures())
    node = Node(connection, containerd, tmp_path)
    task = asyncio.create_task(node.observed.run())
    try:
        await node.hears()
        yield node
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.to_thread(containerd.remove_all_pods)
        await connection.close()


def exited(pod: ObservedPod | None) -> bool:
    return pod is not None and bool(pod.containers) and pod.containers[0].phase is ContainerPhase.EXITED


async def test_a_killed_container_is_seen_from_the_event(node: Node) -> None:
    uid, _, container = await node.start_pod("killed")
    await asyncio.sleep(0.3)
    node.daemon.kill_task(container)
    await node.until(uid, exited)
    pod = node.observed.get(uid)
    assert pod is not None
    assert pod.containers[0].exit_code == 137


async def test_echoes_of_own_calls_cost_no_reads(node: Node) -> None:
    uid, _, _ = await node.start_pod("echo")
    await asyncio.sleep(1.5)  # echoes come some tenths of a second later
    assert node.runtime.reads.count(uid) == 2


async def test_a_pod_that_somebody_else_removes_is_forgotten(node: Node) -> None:
    uid, sandbox, _ = await node.start_pod("removed")
    await node.runtime.stop_sandbox(sandbox)
    await node.runtime.remove_sandbox(sandbox)
    await node.until(uid, lambda pod: pod is None)


async def test_the_address_of_a_stopped_sandbox_stays_known(node: Node) -> None:
    uid, sandbox, _ = await node.start_pod("stopped")
    before = node.observed.get(uid)
    assert before is not None
    assert before.sandboxes[0].ips
    await node.runtime.stop_sandbox(sandbox)
    await node.until(uid, lambda pod: pod is not None and not pod.sandboxes[0].ready)
    after = node.observed.get(uid)
    assert after is not None
    assert after.sandboxes[0].ips == before.sandboxes[0].ips


async def test_containerd_is_ready_and_so_is_its_network(node: Node) -> None:
    conditions = RuntimeConditions(runtime=node.runtime, recorder=node.record, clock=SystemClock())
    await conditions.poll()
    assert (conditions.runtime_error(), conditions.network_error()) == (None, None)
