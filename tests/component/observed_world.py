"""ObservedPods over the fake runtime, for tests in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.concurrency.clock import LoopClock
from glasslet.record.store import Record
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.observed import ObservedPods, Periods
from glasslet.runtime.spec import ContainerSpec, SandboxSpec
from tests.fakes.background import in_background
from tests.fakes.runtime import BUSYBOX, FakeRuntime


@dataclass
class Figures:
    """What was measured."""

    relists: list[tuple[float, float | None]] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    lost: int = 0

    def relisted(self, seconds: float, interval: float | None) -> None:
        self.relists.append((seconds, interval))

    def last_seen(self, unix_seconds: float) -> None:
        self.seen.append(unix_seconds)

    def discarded(self, changes: int) -> None:
        self.lost += changes


@dataclass
class World:
    runtime: FakeRuntime
    observed: ObservedPods
    record: Record
    figures: Figures


@asynccontextmanager
async def world(
    runtime: FakeRuntime | None = None, *, periods: Periods | None = None, wait: bool = True
) -> AsyncIterator[World]:
    runtime = runtime or FakeRuntime()
    record, figures = Record(clock=LoopClock()), Figures()
    observed = ObservedPods(runtime=runtime, recorder=record, metrics=figures, clock=LoopClock(), periods=periods)
    async with in_background(observed.run):
        if wait:
            await observed.synced.wait()
        yield World(runtime, observed, record, figures)


def sandbox_spec(name: str) -> SandboxSpec:
    labels = {
        "io.kubernetes.pod.uid": f"uid-{name}",
        "io.kubernetes.pod.name": name,
        "io.kubernetes.pod.namespace": "default",
    }
    return SandboxSpec(name=name, namespace="default", uid=f"uid-{name}", labels=labels)


async def start_pod(runtime: FakeRuntime, name: str = "web") -> tuple[PodUID, SandboxID, ContainerID]:
    spec = sandbox_spec(name)
    sandbox = await runtime.run_sandbox(spec)
    labels = spec.labels | {"io.kubernetes.container.name": "main"}
    container = await runtime.create_container(sandbox, ContainerSpec(name="main", image=BUSYBOX, labels=labels), spec)
    await runtime.start_container(container)
    return PodUID(f"uid-{name}"), sandbox, container


def reads_of(runtime: FakeRuntime, uid: PodUID) -> int:
    return sum(1 for call in runtime.calls if call.verb is Verb.LIST_POD_SANDBOX and call.subject == uid)


def lists(runtime: FakeRuntime) -> int:
    return sum(1 for call in runtime.calls if call.verb is Verb.LIST_POD_SANDBOX and call.subject == "")
