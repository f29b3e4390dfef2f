"""A pod is held at each place of its way, and only it."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.answers.stops import BreakRequest
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.concurrency.clock import LoopClock
from glasslet.record.history import PodRecord
from glasslet.record.stations import WaitKind
from glasslet.record.store import Record
from glasslet.stops.arrivals import Arrival
from glasslet.stops.holds import Holds
from tests.builders.pod import UID, container, deleted, pod
from tests.component.pod_agent import Agent, running_agent
from tests.fakes.pod_node import EventLog
from tests.fakes.programs import Pull, exits

pytestmark = pytest.mark.looptime

START = (
    "seen",
    "merged",
    "woken",
    "admitted",
    "planned",
    "cgroup",
    "volumes",
    "sandbox",
    "image",
    "created",
    "started",
)
OTHER = "feedbeef"


def web() -> Pod:
    return pod(init=(container("first"),))


def other() -> Pod:
    return pod(name="other", uid=OTHER)


def record_of(agent: Agent, uid: str = UID) -> PodRecord:
    found = agent.record.of(uid)
    assert found is not None
    return found


async def until_held(agent: Agent, uid: str = UID) -> None:
    await agent.until(lambda: agent.holds.hold_of(PodUID(uid)) is not None)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", [*START, "init", "plan"])
async def test_a_pod_is_held_there_until_it_is_let_go_and_then_starts(place: str, after: bool) -> None:
    if place == "plan" and after:
        return
    async with running_agent() as agent:
        agent.runtime.program("first", exits(0))
        await agent.stops.set(BreakRequest(at=place, after=after, pod="default/web", count=1), by="root")
        agent.add(web())
        agent.add(other())
        await until_held(agent)
        hold = agent.holds.hold_of(PodUID(UID))
        assert hold is not None
        assert (hold.at, hold.after, hold.by) == (place, after, 1)
        await asyncio.sleep(300)
        assert "main" not in agent.runtime.running(UID) or (place, after) == ("started", True)
        assert agent.runtime.running(OTHER) == ["main"]
        (wait,) = [wait for wait in record_of(agent).waits if wait.kind == WaitKind.PAUSE]
        assert wait.until == hold.until.timestamp()
        agent.stops.go_on(pod_ref(web()))
        await agent.until_running("main")
        assert agent.stops.breaks() == ()


@pytest.mark.parametrize("place", ["seen", "woken", "admitted", "plan", "sandbox", "created"])
async def test_the_deletion_of_a_held_pod_lets_it_go_to_its_end(place: str) -> None:
    async with running_agent() as agent:
        await agent.stops.set(BreakRequest(at=place), by="root")
        agent.add(pod())
        await until_held(agent)
        agent.delete(deleted(pod(), grace=1))
        await agent.until_finished()
        assert agent.runtime.running() == []
        assert agent.holds.hold_of(PodUID(UID)) is None


async def test_a_pod_that_stops_is_held_at_stopping_and_gone() -> None:
    async with running_agent() as agent:
        agent.add(pod())
        await agent.until_running("main")
        await agent.stops.set(BreakRequest(at="stopping"), by="root")
        agent.remove(pod())
        await until_held(agent)
        await asyncio.sleep(300)
        assert agent.runtime.running() == ["main"]
        agent.stops.remove()
        await agent.until_gone()


async def test_a_node_that_shuts_down_holds_no_pod_back_from_its_end() -> None:
    async with running_agent() as agent:
        agent.add(pod())
        await agent.until_running("main")
        await agent.stops.set(BreakRequest(at="stopping"), by="root")
        await agent.stops.set(BreakRequest(at="gone"), by="root")
        agent.remove(pod())
        await until_held(agent)
        agent.stops.let_all_go("the node shuts down")
        await agent.until_gone()
        assert agent.stops.breaks() == ()
        released = [event.message for event in agent.events.told if event.reason == "PodReleased"]
        assert released == ["Goes on from stopping after 0 s: the node shuts down"]


async def test_a_hold_ends_after_its_time() -> None:
    async with running_agent() as agent:
        await agent.stops.set(BreakRequest(at="sandbox", hold_seconds=120), by="root")
        agent.add(pod())
        await until_held(agent)
        await asyncio.sleep(110)
        assert agent.runtime.running() == []
        await asyncio.sleep(20)
        assert agent.runtime.running() == ["main"]
        messages = [event.message for event in agent.events.told if event.reason.startswith("Pod")]
        assert messages[0].startswith("Held at sandbox by break 1, until ")
        assert messages[1] == "Goes on from sandbox after 120 s: its time is over"


async def test_an_agent_that_ends_holds_nothing_and_the_next_one_starts_the_pod() -> None:
    async with running_agent() as agent:
        await agent.stops.set(BreakRequest(at="created"), by="root")
        agent.add(pod())
        await until_held(agent)
        node = agent.node
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")


async def test_held_at_a_plan_the_pod_goes_on_with_a_plan_of_what_is_then() -> None:
    async with running_agent() as agent:
        await agent.stops.set(BreakRequest(at="plan", count=1), by="root")
        agent.add(pod())
        await until_held(agent)
        agent.change(pod(container("main", image="docker.io/library/busybox:newer")))
        await asyncio.sleep(5)
        agent.stops.go_on(pod_ref(pod()))
        await agent.until_running("main")
        assert agent.container().image.endswith("newer")
        assert agent.container().restart_count == 0


async def test_one_pull_is_held_before_it_has_a_place_in_the_queue() -> None:
    async with running_agent() as agent:
        agent.runtime.pulls["slow"] = Pull(takes=1.0)
        await agent.stops.set(BreakRequest(at="cri:PullImage", pod="web"), by="root")
        agent.add(pod(container(image="slow")))
        await until_held(agent)
        agent.add(pod(container(image="slow"), name="other", uid=OTHER))
        await agent.until_running("main", uid=OTHER)
        assert agent.runtime.running(UID) == []


async def test_a_hold_is_no_lack_of_progress_of_the_waits_around_it() -> None:
    async with running_agent() as agent:
        await agent.stops.set(BreakRequest(at="sandbox", hold_seconds=100), by="root")
        began = agent.clock.now().timestamp()
        agent.add(pod())
        await agent.until_running("main")
        assert agent.holds.held_seconds(PodUID(UID), began) == pytest.approx(100, abs=1)
        assert agent.holds.held_seconds(PodUID(UID), agent.clock.now().timestamp()) == 0


async def test_time_in_several_holds_at_once_counts_once() -> None:
    clock = LoopClock()
    holds = Holds(recorder=Record(clock=clock), events=EventLog(), clock=clock)
    arrival = Arrival(pod=pod_ref(web()), place="created", after=False, container="main", facts=dict)
    start = clock.now().timestamp()

    async def held(begin: float, seconds: float) -> None:
        await asyncio.sleep(begin)
        await holds.hold(arrival, by=1, seconds=seconds, has_to_stop=lambda _: False)

    await asyncio.gather(held(100, 60), held(130, 70), held(300, 10))
    assert holds.held_seconds(PodUID(UID), start) == pytest.approx(110)
    assert holds.held_seconds(PodUID(UID), start + 150) == pytest.approx(60)
