"""The live stream: everything at first, then what changed; one reading for all pages, none without a page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import ClientSession
from msgspec.structs import replace

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.api.pod_status import PodCondition, PodStatus
from glasslet.glass.page.live import STREAMS, LiveChannel, Values, changed
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station, WaitKind
from tests.builders.pod import container, pod
from tests.fakes.event_stream import live_stream, page_session
from tests.fakes.glass import FakeAgent, FakeSeenPod, fake_agent

WEB = pod(container("main"), name="web", uid="uid-web")
READY = PodStatus(phase="Running", conditions=(PodCondition(type="Ready", status="True"),))


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[FakeAgent]:
    async with fake_agent(tmp_path) as running:
        running.source.seen.append(FakeSeenPod(pod=WEB))
        yield running


@pytest.fixture
async def session(agent: FakeAgent) -> AsyncIterator[ClientSession]:
    async with page_session(agent.root_dir) as session:
        yield session


def another(name: str) -> Pod:
    return pod(container("main"), name=name, uid=f"uid-{name}")


async def test_a_page_gets_everything_first(session: ClientSession) -> None:
    async with live_stream(session, "view=pods") as stream:
        state = await stream.next("state")
    assert state.data["values"]["uid-web"]["name"] == "web"
    assert state.data["values"]["page"]["logs"] == "v1"


async def test_then_it_gets_only_the_fields_that_changed(agent: FakeAgent, session: ClientSession) -> None:
    async with live_stream(session, "view=pods") as stream:
        await stream.next("state")
        agent.source.seen[0] = replace(agent.source.seen[0], status=READY)
        fields = await stream.change("uid-web")
    assert fields is not None
    assert fields["state"] == "fine"
    assert "name" not in fields


async def test_a_new_pod_comes_and_a_removed_one_goes(agent: FakeAgent, session: ClientSession) -> None:
    async with live_stream(session, "view=pods") as stream:
        await stream.next("state")
        agent.source.seen.append(FakeSeenPod(pod=another("db")))
        added = await stream.change("uid-db")
        assert added is not None
        assert added["name"] == "db"
        agent.source.seen.pop()
        assert await stream.change("uid-db") is None


async def test_a_station_that_a_pod_reaches_is_seen_within_a_second(agent: FakeAgent, session: ClientSession) -> None:
    async with live_stream(session, "view=pods") as stream:
        await stream.next("state")
        with working_for(pod_ref(WEB)), agent.record.station(Station.SANDBOX):
            fields = await stream.change("uid-web", seconds=1.0)
    assert fields is not None
    assert fields["station"] == "sandbox"


async def test_the_start_of_a_ready_pod_follows_with_its_shares(agent: FakeAgent, session: ClientSession) -> None:
    with working_for(pod_ref(WEB)), agent.record.wait(WaitKind.CRI_CALL, on="RunPodSandbox"):
        await asyncio.sleep(0.01)
    agent.source.seen[0] = replace(agent.source.seen[0], status=READY)
    async with live_stream(session, "view=pods") as stream:
        start = (await stream.next("state")).data["values"]["uid-web"]["start"]
        if start is None:
            start = (await stream.change("uid-web") or {})["start"]
    assert [share["who"] for share in start["shares"]] == ["runtime"]


async def test_the_node_comes_beside_the_pods(session: ClientSession) -> None:
    async with live_stream(session, "view=node") as stream:
        values = (await stream.next("state")).data["values"]
    assert values["node.verdict"]["sentence"].startswith("node-a is ready")
    assert values["node.pressure"]["problem"]
    assert "uid-web" in values


async def test_a_pod_comes_with_its_verdict_description_and_trace(session: ClientSession) -> None:
    async with live_stream(session, "view=pod&pod=default/web") as stream:
        values = (await stream.next("state")).data["values"]
    assert values["pod.verdict"]["name"] == "web"
    assert values["pod.description"]["pod"]["uid"] == "uid-web"
    assert values["pod.trace"]["milestone"] == "now"


async def test_the_trace_comes_again_when_something_was_recorded(agent: FakeAgent, session: ClientSession) -> None:
    async with live_stream(session, "view=pod&pod=default/web") as stream:
        await stream.next("state")
        with working_for(pod_ref(WEB)):
            agent.record.passed(Station.ADMITTED)
        fields = await stream.change("pod.trace")
    assert fields is not None
    assert [row["name"] for row in fields["rows"]] == ["seen, merged, admitted"]


async def test_a_page_that_comes_back_goes_on_from_its_last_event(agent: FakeAgent, session: ClientSession) -> None:
    async with live_stream(session, "view=pods") as other:
        last = (await other.next("state")).id
        agent.source.seen.append(FakeSeenPod(pod=another("db")))
        await other.change("uid-db")
        async with live_stream(session, "view=pods", last_event=last) as again:
            event = await again.next()
    assert event.kind == "delta"
    assert [key for key, _ in event.data["changes"]] == ["uid-db"]


async def test_a_page_of_an_earlier_agent_gets_everything_again(session: ClientSession) -> None:
    async with live_stream(session, "view=pods", last_event="00000000.7") as stream:
        assert (await stream.next()).kind == "state"


async def test_a_quiet_stream_has_beats(session: ClientSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasslet.glass.page.live.BEAT_SECONDS", 0.05)
    async with live_stream(session, "view=pods") as stream:
        await stream.next("state")
        async with asyncio.timeout(5):
            assert await stream.response.content.readline() == b": beat\n"


async def test_pages_of_one_view_share_one_reading(agent: FakeAgent, session: ClientSession) -> None:
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(live_stream(session, "view=pods")) for _ in range(3)]
        ids = {(await stream.next("state")).id.split(".")[0] for stream in streams}
        tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith("live view")]
    assert len(ids) == 1
    assert len(tasks) == 1


async def test_nothing_is_read_once_the_last_page_is_closed(session: ClientSession) -> None:
    async with live_stream(session, "view=pods") as stream:
        await stream.next("state")
        stream.response.close()
    for _ in range(100):
        if not any(task.get_name().startswith("live view") for task in asyncio.all_tasks()):
            return
        await asyncio.sleep(0.1)
    pytest.fail("the view is still read")


async def test_one_page_too_many_is_refused_with_the_reason(session: ClientSession) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(STREAMS):
            await stack.enter_async_context(live_stream(session, "view=pods"))
        async with session.get("/glass/live?view=pods") as refused:
            assert refused.status == 503
            assert "16 pages" in (await refused.json())["error"]


@pytest.mark.parametrize(("query", "status"), [("view=tables", 400), ("view=pod", 400), ("view=pod&pod=a/b", 404)])
async def test_a_view_that_does_not_exist_is_refused(session: ClientSession, query: str, status: int) -> None:
    async with session.get(f"/glass/live?{query}") as refused:
        assert refused.status == status
        assert (await refused.json())["error"]


def test_a_change_names_only_what_differs() -> None:
    old: Values = {"a": {"x": 1, "y": 2}, "b": {"x": 1}, "c": {"x": 1}}
    new: Values = {"a": {"x": 1, "y": 3}, "c": {"x": 1}, "d": {"x": 9}}
    assert changed(old, new) == [("b", None), ("a", {"y": 3}), ("d", {"x": 9})]


class _Numbers:
    """A view that counts."""

    seconds = 0.0

    async def read(self) -> dict[str, dict[str, object]]:
        return {}


async def test_a_page_that_fell_too_far_behind_gets_everything_again(agent: FakeAgent) -> None:
    channel = LiveChannel(_Numbers(), agent.record.clock)
    await channel.open()
    _, position = channel.after(None)
    for number in range(100):
        channel.take({"n": {"value": number}})
    data, position = channel.after(position)
    assert b"event: state" in data
    assert b'"value":99' in data
    assert channel.after(position)[0] == b""
