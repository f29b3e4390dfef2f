"""The garbage collector over the fake runtime and the real observed model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import LoopClock
from glasslet.host.files.layout import LogLayout
from glasslet.record.events import Decided
from glasslet.record.store import Record
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeUnavailable
from glasslet.runtime.garbage import DeadContainerLimits, GarbageCollector, LogFolders
from glasslet.runtime.garbage.reporting import CollectionReporting
from glasslet.runtime.model import ContainerPhase, ObservedContainer
from glasslet.runtime.observed import ObservedPods
from glasslet.runtime.spec import ContainerSpec, SandboxSpec
from tests.fakes.programs import exits
from tests.fakes.runtime import BUSYBOX, FakeRuntime

pytestmark = pytest.mark.looptime

WEB = PodUID("uid-web")


class Workers:
    """What pod workers would say, and the logs that were removed."""

    def __init__(self) -> None:
        self.ready = True
        self.gone: set[PodUID] = set()
        self.ended: set[PodUID] = set()
        self.logs_removed: list[str] = []

    def sources_ready(self) -> bool:
        return self.ready

    def content_removable(self, uid: PodUID) -> bool:
        return uid in self.gone

    def runtime_removable(self, uid: PodUID) -> bool:
        return uid in self.ended

    async def remove_log(self, ref: PodRef, instance: ObservedContainer) -> None:
        self.logs_removed.append(instance.id)


class NoFigures:
    def relisted(self, seconds: float, interval: float | None) -> None: ...
    def last_seen(self, unix_seconds: float) -> None: ...
    def discarded(self, changes: int) -> None: ...


class Node:
    def __init__(self, tmp_path: Path, limits: DeadContainerLimits | None = None) -> None:
        self.runtime = FakeRuntime()
        self.workers = Workers()
        self.record = Record(clock=LoopClock())
        self.events: list[tuple[str, str, str]] = []
        clock = LoopClock()
        self.observed = ObservedPods(runtime=self.runtime, recorder=self.record, metrics=NoFigures(), clock=clock)
        (tmp_path / "pods").mkdir()
        (tmp_path / "containers").mkdir()
        self.collector = GarbageCollector(
            runtime=self.runtime,
            observed=self.observed,
            pods=self.workers,
            logs=self.workers,
            folders=LogFolders(LogLayout(pod_logs_dir=str(tmp_path / "pods"), links_dir=str(tmp_path / "containers"))),
            report=CollectionReporting(
                recorder=self.record, clock=clock, events=lambda *event: self.events.append(event)
            ),
            limits=limits,
        )

    async def sandbox(self, name: str = "web", attempt: int = 0) -> tuple[SandboxID, SandboxSpec]:
        labels = {
            "io.kubernetes.pod.uid": f"uid-{name}",
            "io.kubernetes.pod.name": name,
            "io.kubernetes.pod.namespace": "default",
        }
        spec = SandboxSpec(name=name, namespace="default", uid=f"uid-{name}", labels=labels, attempt=attempt)
        return await self.runtime.run_sandbox(spec), spec

    async def container(
        self, sandbox: SandboxID, spec: SandboxSpec, attempt: int = 0, *, ends: bool = True
    ) -> ContainerID:
        self.runtime.program("main", exits(1, after=0.001) if ends else exits(0, after=1e6))
        made = ContainerSpec(name="main", attempt=attempt, image=BUSYBOX, labels=spec.labels)
        container = await self.runtime.create_container(sandbox, made, spec)
        await self.runtime.start_container(container)
        await asyncio.sleep(0.01)
        return container

    async def crashing_pod(self, name: str = "web", deaths: int = 3) -> list[ContainerID]:
        sandbox, spec = await self.sandbox(name)
        return [await self.container(sandbox, spec, n) for n in range(deaths)]

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self.observed.run()), asyncio.create_task(self.collector.run())]
        try:
            await self.observed.synced.wait()
            await asyncio.sleep(1)
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def containers(self) -> list[str]:
        return sorted(self.runtime.containers)


async def test_the_last_dead_instance_is_kept_for_logs_and_status(tmp_path: Path) -> None:
    # behaviours.md §9: "The last instance of a container is kept for logs and status while the pod exists."
    node = Node(tmp_path)
    *old, last = await node.crashing_pod()
    async with node.working():
        assert node.containers() == [last]
        assert sorted(node.workers.logs_removed) == sorted(old)


async def test_what_was_removed_is_known_at_once(tmp_path: Path) -> None:
    node = Node(tmp_path)
    *_, last = await node.crashing_pod()
    async with node.working():
        pod = node.observed.get(WEB)
        assert pod is not None
        assert [c.id for c in pod.containers] == [last]


async def test_a_deleted_pod_loses_containers_and_sandbox_in_one_collection(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.crashing_pod()
    (sandbox,) = node.runtime.sandboxes
    await node.runtime.stop_sandbox(sandbox)
    node.workers.gone.add(WEB)
    async with node.working():
        assert not node.runtime.containers
        assert not node.runtime.sandboxes
        assert node.observed.get(WEB) is None


async def test_nothing_counts_as_deleted_before_all_sources_are_ready(tmp_path: Path) -> None:
    # behaviours.md §9: "Containers of deleted pods are removed fully, only when all sources are ready"
    node = Node(tmp_path)
    *_, last = await node.crashing_pod()
    (sandbox,) = node.runtime.sandboxes
    await node.runtime.stop_sandbox(sandbox)
    node.workers.gone.add(WEB)
    node.workers.ready = False
    async with node.working():
        assert node.containers() == [last]
        assert list(node.runtime.sandboxes) == [sandbox]
        node.workers.ready = True
        await asyncio.sleep(60)
        assert not node.runtime.containers


async def test_eviction_takes_also_what_ended_pods_left(tmp_path: Path) -> None:
    # behaviours.md §9: "eviction GC also removes those of pods that are terminated but still in the API."
    node = Node(tmp_path)
    await node.crashing_pod()
    node.workers.ended.add(WEB)
    async with node.working():
        assert len(node.runtime.containers) == 1
        await node.collector.collect(evicting=True)
        assert not node.runtime.containers


async def test_older_instances_go_right_after_a_death(tmp_path: Path) -> None:
    node = Node(tmp_path)
    sandbox, spec = await node.sandbox()
    first = await node.container(sandbox, spec, 0)
    async with node.working():
        assert node.containers() == [first]
        second = await node.container(sandbox, spec, 1)
        await asyncio.sleep(1)
        assert node.containers() == [second]


async def test_running_containers_are_never_touched(tmp_path: Path) -> None:
    node = Node(tmp_path, DeadContainerLimits(per_container=0, total=0))
    sandbox, spec = await node.sandbox()
    await node.container(sandbox, spec, 0)
    running = await node.container(sandbox, spec, 1, ends=False)
    node.workers.gone.add(WEB)
    async with node.working():
        assert node.containers() == [running]
        assert list(node.runtime.sandboxes) == [sandbox]


async def test_older_sandboxes_are_stopped_and_removed(tmp_path: Path) -> None:
    node = Node(tmp_path)
    old, _ = await node.sandbox(attempt=0)
    await node.runtime.stop_sandbox(old)
    await asyncio.sleep(1)
    new, _ = await node.sandbox(attempt=1)
    async with node.working():
        assert list(node.runtime.sandboxes) == [new]


async def test_a_container_in_an_unknown_state_is_stopped_before_it_goes(tmp_path: Path) -> None:
    node = Node(tmp_path)
    sandbox, spec = await node.sandbox()
    lost = await node.container(sandbox, spec, 0, ends=False)
    node.runtime.containers[lost].phase = ContainerPhase.UNKNOWN
    node.workers.gone.add(WEB)
    async with node.working():
        verbs = [call.verb for call in node.runtime.calls if call.subject == lost]
        assert verbs.index(Verb.STOP_CONTAINER) < verbs.index(Verb.REMOVE_CONTAINER)
        assert not node.runtime.containers


async def test_a_removal_that_hangs_does_not_keep_other_pods_from_being_cleaned(tmp_path: Path) -> None:
    node = Node(tmp_path)
    sick = await node.crashing_pod("sick")
    for n in range(10):
        await node.crashing_pod(f"well-{n}")
    hang = node.runtime.hang(Verb.REMOVE_CONTAINER, only=lambda subject: subject in sick)
    async with node.working():
        assert hang.waiting == 1
        assert len(node.runtime.containers) == 10 + len(sick)
        await asyncio.sleep(70)
        fresh = await node.crashing_pod("late")
        await asyncio.sleep(60)
        assert node.containers().count(fresh[-1]) == 1
        assert fresh[0] not in node.runtime.containers
        hang.release()
        await asyncio.sleep(1)
        assert [c for c in sick if c in node.runtime.containers] == sick[-1:]


async def test_a_removal_that_fails_is_tried_again_with_the_next_collection(tmp_path: Path) -> None:
    # behaviours.md §9: "Every 1 min and on every eviction need."
    node = Node(tmp_path)
    *_, last = await node.crashing_pod(deaths=2)
    node.runtime.fail(Verb.REMOVE_CONTAINER, RuntimeUnavailable("RemoveContainer", "busy"))
    async with node.working():
        assert len(node.runtime.containers) == 2
        await asyncio.sleep(60)
        assert node.containers() == [last]


async def test_removals_are_decisions_in_the_record_of_their_pod(tmp_path: Path) -> None:
    node = Node(tmp_path)
    first, _ = await node.crashing_pod(deaths=2)
    async with node.working():
        record = node.record.of(WEB)
        assert record is not None
        decided = [e for e in record.events if isinstance(e, Decided)]
        assert [(d.what, d.container) for d in decided] == [("remove dead container", "main")]
        assert ("id", first) in decided[0].inputs


async def test_log_folders_of_deleted_pods_and_dangling_links_are_removed(tmp_path: Path) -> None:
    # behaviours.md §9: "Log directories of pods not known are removed when sources are ready"
    node = Node(tmp_path)
    (tmp_path / "pods" / "default_old_uid-old").mkdir()
    (tmp_path / "pods" / "default_web_uid-web").mkdir()
    link = tmp_path / "containers" / "old_default_main-0123456789.log"
    link.symlink_to(tmp_path / "pods" / "default_old_uid-old" / "main" / "0.log")
    node.workers.gone.add(PodUID("uid-old"))
    node.workers.ready = False
    await node.collector.collect()
    assert (tmp_path / "pods" / "default_old_uid-old").exists()
    node.workers.ready = True
    await node.collector.collect()
    assert [p.name for p in (tmp_path / "pods").iterdir()] == ["default_web_uid-web"]
    assert not link.is_symlink()


async def test_a_collection_that_cannot_see_what_it_did_is_told_once_for_each_time(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with node.working():
        await node.crashing_pod(deaths=2)
        await asyncio.sleep(1)
        node.workers.gone.add(WEB)
        node.runtime.fail(Verb.LIST_CONTAINERS, RuntimeUnavailable("ListContainers", "hiccup"), only=lambda s: s == WEB)
        await asyncio.sleep(60)
        assert node.events == [("Warning", "ContainerGCFailed", "ListContainers: hiccup")]
        await asyncio.sleep(120)
        assert len(node.events) == 1
        assert node.containers() == []
