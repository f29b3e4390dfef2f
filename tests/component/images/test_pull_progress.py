"""Pulls in bytes, from the runtime's content store to rows, events and the record. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from glasslet.api.container import Container
from glasslet.api.meta import ObjectMeta
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import LoopClock
from glasslet.concurrency.services import running
from glasslet.record.events import ChangeObserved
from glasslet.record.store import Record
from glasslet.runtime.images import ImageManager, PullPolicy
from glasslet.runtime.images.progress import Layer
from glasslet.runtime.images.progress_watch import PullView, PullWatch
from tests.fakes.content import FakeContent
from tests.fakes.programs import Pull
from tests.fakes.runtime import FakeRuntime

pytestmark = pytest.mark.looptime

MIB = 1 << 20
JOB, OTHER = "registry.example.com/acme/job:7", "registry.example.com/acme/other:1"


class Node:
    """An image manager with a content store that a test fills."""

    def __init__(self, *, implemented: bool = True, parallel: int = 1) -> None:
        self.content = FakeContent(implemented=implemented)
        self.runtime = FakeRuntime()
        self.record = Record(clock=LoopClock())
        self.events: list[tuple[str, str, str]] = []
        self.watch = PullWatch(content=self.content, recorder=self.record, events=self._event, clock=LoopClock())
        self.manager = ImageManager(
            images=self.runtime,
            recorder=self.record,
            events=self._event,
            clock=LoopClock(),
            watch=self.watch,
            policy=PullPolicy(serialize_image_pulls=parallel == 1, max_parallel_image_pulls=parallel),
        )

    def _event(self, pod: PodRef, kind: str, reason: str, message: str, _: str) -> None:
        if reason.startswith("Pull") and reason not in {"Pulling", "Pulled"}:
            self.events.append((pod.name, reason, message))

    async def ensure(self, image: str, pod: str = "web") -> None:
        container = Container(name="main", image=image)
        meta = ObjectMeta(name=pod, namespace="default", uid=f"uid-{pod}")
        await self.manager.ensure(Pod(metadata=meta, spec=PodSpec(containers=(container,))), container, sandbox=None)

    def view(self, pod: str = "web") -> PullView | None:
        return self.manager.pulls(PodUID(f"uid-{pod}")).get("main")

    def figures(self, pod: str = "web") -> tuple[int, int] | None:
        view = self.view(pod)
        return (view.progress.done, view.progress.total) if view is not None and view.progress is not None else None

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        async with running({"progress": self.watch.run}):
            yield

    @asynccontextmanager
    async def pulling(self, *pulls: tuple[str, str], takes: float = 1000) -> AsyncIterator[None]:
        """Pods that pull an image each meanwhile: (image, pod)."""
        for image, _ in pulls:
            self.runtime.pulls[image] = Pull(takes=takes)
        async with self.watching(), asyncio.TaskGroup() as group:
            tasks = []
            for image, pod in pulls:
                tasks.append(group.create_task(self.ensure(image, pod)))
                await asyncio.sleep(0)
            yield
            for task in tasks:
                task.cancel()


async def test_the_bytes_of_a_pull_are_those_of_its_image_s_layers() -> None:
    node = Node()
    node.content.images["registry.example.com/acme/job"] = (Layer("sha256:a", 10 * MIB), Layer("sha256:b", 5 * MIB))
    node.content.arriving = {"sha256:a": (2 * MIB, 10 * MIB), "sha256:stranger": (7, 9)}
    node.content.there = {"sha256:b"}
    async with node.pulling((JOB, "web")):
        await asyncio.sleep(2)
        assert node.figures() == (7 * MIB, 15 * MIB)


async def test_a_layer_that_came_whole_between_two_questions_counts() -> None:
    node = Node()
    node.content.images["registry.example.com/acme/job"] = (Layer("sha256:a", 10 * MIB), Layer("sha256:b", 5 * MIB))
    node.content.arriving = {"sha256:a": (0, 10 * MIB)}
    async with node.pulling((JOB, "web")):
        await asyncio.sleep(2)
        assert node.figures() == (0, 15 * MIB)
        node.content.arriving, node.content.there = {}, {"sha256:a"}
        await asyncio.sleep(3)
        assert node.figures() == (10 * MIB, 15 * MIB)


async def test_two_pulls_at_a_time_each_have_their_own_bytes() -> None:
    node = Node(parallel=2)
    node.content.images["registry.example.com/acme/job"] = (Layer("sha256:a", 10),)
    node.content.images["registry.example.com/acme/other"] = (Layer("sha256:b", 20),)
    node.content.arriving = {"sha256:a": (1, 10), "sha256:b": (2, 20)}
    async with node.pulling((JOB, "web"), (OTHER, "db")):
        await asyncio.sleep(2)
        assert (node.figures("web"), node.figures("db")) == ((1, 10), (2, 20))


async def test_the_only_pull_owns_what_comes_in_while_its_manifest_is_not_found() -> None:
    node = Node()
    node.content.arriving = {"sha256:a": (3, 10)}
    async with node.pulling((JOB, "web")):
        await asyncio.sleep(2)
        assert node.figures() == (3, 10)


async def test_of_two_pulls_without_manifests_none_claims_bytes() -> None:
    node = Node(parallel=2)
    node.content.arriving = {"sha256:a": (3, 10)}
    async with node.pulling((JOB, "web"), (OTHER, "db")):
        await asyncio.sleep(2)
        assert (node.figures("web"), node.figures("db")) == (None, None)


async def test_all_who_wait_for_one_pull_see_its_bytes() -> None:
    node = Node()
    node.content.arriving = {"sha256:a": (3, 10)}
    async with node.pulling((JOB, "web"), (JOB, "db")):
        await asyncio.sleep(2)
        assert (node.figures("web"), node.figures("db")) == ((3, 10), (3, 10))


async def test_a_queued_pull_says_how_many_come_first() -> None:
    node = Node()
    async with node.pulling((JOB, "web"), (OTHER, "db"), ("busybox:1", "third")):
        await asyncio.sleep(2)
        places = [view.queued_behind for pod in ("web", "db", "third") if (view := node.view(pod)) is not None]
        assert places == [None, 1, 2]


async def test_a_runtime_that_is_no_containerd_is_named_as_the_reason_why_there_are_no_bytes() -> None:
    node = Node(implemented=False)
    async with node.pulling((JOB, "web")):
        await asyncio.sleep(2)
        assert node.view() == PullView(image=JOB, unreported=True)


async def test_the_runtime_is_asked_only_while_a_pull_runs_and_never_about_a_short_one() -> None:
    node = Node()
    node.runtime.pulls[JOB] = Pull(takes=0.9)
    async with node.watching():
        await asyncio.sleep(100)
        await node.ensure(JOB)
        await asyncio.sleep(100)
        assert node.content.asked == 0
        node.runtime.pulls[OTHER] = Pull(takes=10)
        await node.ensure(OTHER)
        asked = node.content.asked
        assert 4 <= asked <= 6
        await asyncio.sleep(100)
        assert node.content.asked == asked
    assert node.view() is None


async def test_events_come_now_and_then_and_more_and_more_seldom() -> None:
    node = Node()
    node.content.arriving = {"sha256:a": (0, 1000 * MIB)}
    steps = iter(range(10**6))
    node.content.before_answer = lambda: node.content.arriving.update({"sha256:a": (next(steps) * MIB, 1000 * MIB)})
    async with node.pulling((JOB, "web")):
        await asyncio.sleep(460)
        assert [reason for _, reason, _ in node.events] == ["PullProgress"] * 4
        assert node.events[0] == (
            "web",
            "PullProgress",
            f'The pull of image "{JOB}" has run for 31 s: 15 MiB of 1000 MiB, 512 KiB/s',
        )


async def test_a_stall_is_one_event_and_stays_in_the_record() -> None:
    node = Node()
    node.content.arriving = {"sha256:a": (4 * MIB, 10 * MIB)}
    async with node.pulling((JOB, "web")):
        await asyncio.sleep(200)
        view = node.view()
        assert view is not None
        assert view.progress is not None
        assert view.progress.stalled == pytest.approx(199)
        stalls = [message for _, reason, message in node.events if reason == "PullStalled"]
        assert stalls == [f'The pull of image "{JOB}" has got no byte for 30 s: 4 MiB of 10 MiB']
        record = node.record.of("uid-web")
        assert record is not None
        changes = [event for event in record.events if isinstance(event, ChangeObserved)]
        assert [(event.old, event.new) for event in changes] == [("begun", "4 MiB of 10 MiB, stalled for 30 s")]
