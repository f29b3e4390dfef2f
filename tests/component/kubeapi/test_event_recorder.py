"""Events on their way to an API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from glasslet.api.event import Event
from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import LoopClock
from glasslet.kubeapi.errors import NotFound, Unavailable
from glasslet.kubeapi.event_recorder import EventRecorder

pytestmark = pytest.mark.looptime
WEB = PodRef("shop", "web", PodUID("u1"))


class Server:
    def __init__(self, seconds: float = 0.0) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.down_until = 0.0
        self.seconds = seconds
        """That each request takes."""

    async def create(self, path: str, body: Event, kind: type[Event], **_: Any) -> Event:
        if asyncio.get_running_loop().time() < self.down_until:
            raise Unavailable("POST", "down")
        await asyncio.sleep(self.seconds)
        self.events[f"{path}/{body.metadata.name}"] = {"event": body, "count": body.count}
        return body

    async def patch(self, path: str, body: Any, kind: type[Event], **_: Any) -> Event:
        if path not in self.events:
            raise NotFound("PATCH", "expired")
        self.events[path]["count"] = body["count"]
        event: Event = self.events[path]["event"]
        return event


async def run(recorder: EventRecorder, seconds: float) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(recorder.run())
        await asyncio.sleep(seconds)
        task.cancel()


async def test_repeated_event_is_one_object_with_a_count() -> None:
    server = Server()
    recorder = EventRecorder(node="n1", clock=LoopClock(), client=server)  # type: ignore[arg-type]
    for _ in range(3):
        recorder.pod(WEB, "Warning", "BackOff", "back-off", "spec.containers{main}")
    await run(recorder, 1)
    (only,) = server.events.values()
    assert only["count"] == 3
    assert only["event"].involved_object.field_path == "spec.containers{main}"


async def test_event_of_the_node_carries_the_nodes_name_as_uid() -> None:
    # events: "Node events: involvedObject kind Node, name = node name, no apiVersion, uid = node name"
    server = Server()
    recorder = EventRecorder(node="n1", clock=LoopClock(), client=server)  # type: ignore[arg-type]
    recorder.node("Normal", "NodeReady", "ready")
    await run(recorder, 1)
    (path,) = server.events
    subject = server.events[path]["event"].involved_object
    assert path.startswith("/api/v1/namespaces/default/events/n1.")
    assert (subject.uid, subject.api_version) == ("n1", "")


async def test_events_survive_an_outage_of_a_minute() -> None:
    server = Server()
    server.down_until = 60.0
    recorder = EventRecorder(node="n1", clock=LoopClock(), client=server)  # type: ignore[arg-type]
    recorder.pod(WEB, "Normal", "Started", "Started container main")
    await run(recorder, 90)
    assert len(server.events) == 1


async def test_event_that_expired_on_the_server_is_told_anew() -> None:
    server = Server()
    recorder = EventRecorder(node="n1", clock=LoopClock(), client=server)  # type: ignore[arg-type]
    recorder.node("Normal", "NodeReady", "ready")
    await run(recorder, 1)
    server.events.clear()
    recorder.node("Normal", "NodeReady", "ready")
    await run(recorder, 1)
    assert [e["count"] for e in server.events.values()] == [1]


async def test_flood_is_dropped_not_queued_for_ever() -> None:
    recorder = EventRecorder(node="n1", clock=LoopClock(), client=Server())  # type: ignore[arg-type]
    for i in range(1500):
        recorder.pod(WEB, "Normal", "Started", str(i))
    assert recorder.dropped == 500


async def test_a_crowd_of_normal_events_takes_a_quarter_of_a_servers_time() -> None:
    server = Server(seconds=0.1)
    recorder = EventRecorder(node="n1", clock=LoopClock(), client=server)  # type: ignore[arg-type]
    for i in range(100):
        recorder.pod(PodRef("shop", f"web-{i}", PodUID(f"u{i}")), "Normal", "Started", "Started container main")
    await run(recorder, 19.95)
    assert len(server.events) == 50
    await run(recorder, 21)
    assert len(server.events) == 100


async def test_normal_events_of_a_slow_server_rest_for_a_second_at_most() -> None:
    server = Server(seconds=4.0)
    recorder = EventRecorder(node="n1", clock=LoopClock(), client=server)  # type: ignore[arg-type]
    for i in range(10):
        recorder.pod(WEB, "Normal", "Started", f"Started container c{i}")
    await run(recorder, 24.5)
    assert len(server.events) == 5


async def test_a_warning_goes_before_the_normal_events_that_wait() -> None:
    server = Server(seconds=0.1)
    recorder = EventRecorder(node="n1", clock=LoopClock(), client=server)  # type: ignore[arg-type]
    for i in range(100):
        recorder.pod(WEB, "Normal", "Pulled", f"pulled {i}")

    async def warn_in_the_rest() -> None:
        await asyncio.sleep(0.15)
        recorder.pod(WEB, "Warning", "Failed", "no such image")

    async with asyncio.TaskGroup() as group:
        group.create_task(warn_in_the_rest())
        await run(recorder, 0.3)
    assert [event["event"].reason for event in server.events.values()] == ["Pulled", "Failed"]


async def test_an_event_says_when_it_happened_not_when_it_was_written() -> None:
    server = Server()
    server.down_until = 60.0
    clock = LoopClock()
    recorder = EventRecorder(node="n1", clock=clock, client=server)  # type: ignore[arg-type]
    happened = clock.now()
    recorder.pod(WEB, "Normal", "Pulled", "pulled")
    recorder.pod(WEB, "Normal", "Started", "started in the same moment")
    await run(recorder, 90)
    assert [event["event"].first_timestamp for event in server.events.values()] == [happened, happened]


async def test_without_an_api_server_nothing_is_kept() -> None:
    # events: "Without an API server events are only logged."
    recorder = EventRecorder(node="n1", clock=LoopClock())
    for i in range(1500):
        recorder.pod(WEB, "Normal", "Started", str(i))
    assert recorder.dropped == 0


@pytest.mark.parametrize(("client", "level"), [(None, "INFO"), (Server(), "DEBUG")])
async def test_an_event_that_goes_to_no_server_is_logged_for_everybody(
    client: Server | None, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = EventRecorder(node="n1", clock=LoopClock(), client=client)  # type: ignore[arg-type]
    with caplog.at_level("DEBUG"):
        recorder.pod(WEB, "Normal", "Started", "Started container main")
    assert [record.levelname for record in caplog.records if record.message == "event"] == [level]


async def test_an_agent_that_ends_waits_for_its_last_event_but_not_for_ever() -> None:
    loop, server = asyncio.get_running_loop(), Server(seconds=0.5)
    recorder = EventRecorder(node="n1", clock=LoopClock(), client=server)  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as group:
        task = group.create_task(recorder.run())
        await recorder.written(within=2)
        assert loop.time() == 0
        recorder.node("Warning", "KubeletSetupFailed", "no cgroups")
        await recorder.written(within=2)
        assert len(server.events) == 1
        server.down_until = 100
        recorder.node("Warning", "KubeletSetupFailed", "again")
        before = loop.time()
        await recorder.written(within=2)
        assert loop.time() == before + 2
        task.cancel()
