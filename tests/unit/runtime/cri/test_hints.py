"""When a hint is due: at once, later, or once the runtime's own answers show it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection

import pytest
from google.protobuf.message import Message

from glasslet.runtime.cri._generated import containerd_events_pb2
from glasslet.runtime.cri._generated import containerd_task_events_pb2 as events_pb2
from glasslet.runtime.cri.containerd_events import BOOKS_WRITTEN, due_of_envelope
from glasslet.runtime.cri.hints import (
    LATE_SUBSCRIPTION_TAKES,
    SETTLING_LIMIT,
    SUBSCRIPTION_TAKES,
    Due,
    scheduled_hints,
)
from glasslet.runtime.errors import RuntimeUnavailable
from glasslet.runtime.protocols import RuntimeHint


def envelope(topic: str, event: Message) -> containerd_events_pb2.Envelope:
    found = containerd_events_pb2.Envelope(namespace="k8s.io", topic=topic)
    found.event.value = event.SerializeToString()
    return found


async def happening(*events: tuple[float, Due], then: float = 1000) -> AsyncGenerator[Due, None]:
    """Events after so many seconds each; then silence, then the end."""
    for after, due in events:
        await asyncio.sleep(after)
        yield due
    await asyncio.sleep(then)


async def settled_at_once(subjects: Collection[str]) -> Collection[str]:
    return subjects


def everything(_: RuntimeHint) -> bool:
    return True


async def heard(stream: AsyncIterator[RuntimeHint], count: int) -> list[tuple[float, str]]:
    """The first hints: when, and of what kind."""
    found = []
    async for hint in stream:
        found.append((round(asyncio.get_running_loop().time(), 3), hint.kind))
        if len(found) == count:
            break
    await stream.aclose()  # type: ignore[attr-defined]
    return found


STOPPED = RuntimeHint(id="c1", kind="container_stopped")


@pytest.mark.looptime
async def test_the_first_hint_says_that_anything_may_have_changed() -> None:
    stream = scheduled_hints(happening(), lambda due: due, settled_at_once, everything)

    hint = await anext(stream)

    assert (hint.id, hint.uid) == (None, None)
    assert asyncio.get_running_loop().time() == pytest.approx(SUBSCRIPTION_TAKES)
    await stream.aclose()  # type: ignore[attr-defined]


@pytest.mark.looptime
async def test_anything_may_have_changed_before_a_busy_runtime_subscribed_its_reader() -> None:
    stream = scheduled_hints(happening(), lambda due: due, settled_at_once, everything)

    await anext(stream)
    hint = await anext(stream)

    assert (hint.id, hint.uid) == (None, None)
    assert asyncio.get_running_loop().time() == pytest.approx(LATE_SUBSCRIPTION_TAKES)
    await stream.aclose()  # type: ignore[attr-defined]


@pytest.mark.looptime
async def test_an_event_is_hinted_when_it_is_due() -> None:
    events = happening((1, Due(STOPPED, after=0.5)))

    found = await heard(scheduled_hints(events, lambda due: due, settled_at_once, everything), 2)

    assert found[1] == (1.5, "container_stopped")


@pytest.mark.looptime
async def test_a_death_is_hinted_once_the_runtime_knows_of_it() -> None:
    loop = asyncio.get_running_loop()

    async def settled(subjects: Collection[str]) -> Collection[str]:
        assert subjects == ["c1"]
        return subjects if loop.time() > 1.1 else ()

    events = happening((1, Due(STOPPED, must_settle=True)))

    found = await heard(scheduled_hints(events, lambda due: due, settled, everything), 2)

    assert 1.1 < found[1][0] < 1.2


@pytest.mark.looptime
async def test_a_death_that_never_settles_is_hinted_at_last() -> None:
    async def never(_: Collection[str]) -> Collection[str]:
        return ()

    events = happening((1, Due(STOPPED, must_settle=True)))

    found = await heard(scheduled_hints(events, lambda due: due, never, everything), 2)

    assert 1 + SETTLING_LIMIT <= found[1][0] < 1.1 + SETTLING_LIMIT


@pytest.mark.looptime
async def test_other_events_go_on_while_one_settles() -> None:
    async def never(_: Collection[str]) -> Collection[str]:
        return ()

    other = RuntimeHint(id="c2", kind="container_started")
    events = happening((1, Due(STOPPED, must_settle=True)), (0.5, Due(other)))

    found = await heard(scheduled_hints(events, lambda due: due, never, everything), 2)

    assert found[1] == (1.5, "container_started")


@pytest.mark.looptime
async def test_the_same_hint_planned_again_is_given_once() -> None:
    events = happening((1, Due(STOPPED, after=0.3)), (0.1, Due(STOPPED)), (5, Due(RuntimeHint(id="c2", kind="later"))))

    found = await heard(scheduled_hints(events, lambda due: due, settled_at_once, everything), 3)

    assert found[1:] == [(1.1, "container_stopped"), (6.1, "later")]


@pytest.mark.looptime
async def test_deaths_of_one_moment_are_asked_about_together() -> None:
    asked: list[list[str]] = []

    async def settled(subjects: Collection[str]) -> Collection[str]:
        asked.append(sorted(subjects))
        return subjects

    deaths = [Due(RuntimeHint(id=f"c{n}", kind="container_stopped"), after=0.1, must_settle=True) for n in range(3)]
    events = happening(*((0, death) for death in deaths))

    await heard(scheduled_hints(events, lambda due: due, settled, everything), 4)

    assert asked == [["c0", "c1", "c2"]]


@pytest.mark.looptime
async def test_a_death_that_is_known_already_is_neither_asked_about_nor_hinted() -> None:
    async def settled(subjects: Collection[str]) -> Collection[str]:
        raise AssertionError(subjects)

    later = Due(RuntimeHint(id="c2", kind="container_started"), after=1)
    events = happening((1, Due(STOPPED, must_settle=True)), (0, later))

    found = await heard(scheduled_hints(events, lambda due: due, settled, lambda hint: hint != STOPPED), 2)

    assert found[1] == (2, "container_started")


@pytest.mark.looptime
async def test_a_runtime_that_answers_slowly_is_asked_seldom() -> None:
    asked = []

    async def slow(subjects: Collection[str]) -> Collection[str]:
        asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.2)
        return ()

    events = happening((1, Due(STOPPED, must_settle=True)))

    await heard(scheduled_hints(events, lambda due: due, slow, everything), 2)

    assert len(asked) <= SETTLING_LIMIT


@pytest.mark.looptime
async def test_a_stream_that_ends_is_a_runtime_that_went_away() -> None:
    stream = scheduled_hints(happening(then=1), lambda due: due, settled_at_once, everything)

    with pytest.raises(RuntimeUnavailable):
        async for _ in stream:
            pass


def test_an_exit_of_the_main_process_must_settle() -> None:
    due = due_of_envelope(envelope("/tasks/exit", events_pb2.TaskExit(container_id="c1", id="c1")))

    assert due is not None
    assert (due.hint, due.must_settle) == (STOPPED, True)


def test_the_cleared_task_hastens_the_same_hint() -> None:
    due = due_of_envelope(envelope("/tasks/delete", events_pb2.TaskDelete(container_id="c1")))

    assert due == Due(STOPPED, must_settle=True)


@pytest.mark.parametrize(
    "event",
    [
        ("/tasks/exit", events_pb2.TaskExit(container_id="c1", id="exec-1")),
        ("/tasks/delete", events_pb2.TaskDelete(container_id="c1", id="exec-1")),
        ("/tasks/exec-started", events_pb2.TaskStart(container_id="c1")),
        ("/images/create", events_pb2.ContainerCreate(id="x")),
    ],
)
def test_commands_inside_and_other_things_are_no_hints(event: tuple[str, Message]) -> None:
    assert due_of_envelope(envelope(*event)) is None


@pytest.mark.parametrize(
    ("topic", "event", "kind"),
    [
        ("/tasks/start", events_pb2.TaskStart(container_id="c1"), "container_started"),
        ("/tasks/oom", events_pb2.TaskOOM(container_id="c1"), "container_oom"),
        ("/containers/create", events_pb2.ContainerCreate(id="c1"), "container_created"),
        ("/containers/delete", events_pb2.ContainerDelete(id="c1"), "container_removed"),
    ],
)
def test_other_changes_of_containers_are_hinted_once_the_runtime_has_noted_them(
    topic: str, event: Message, kind: str
) -> None:
    due = due_of_envelope(envelope(topic, event))

    assert due == Due(RuntimeHint(id="c1", kind=kind), after=BOOKS_WRITTEN)
