"""Which pods a break holds, how often, and how a pod is stepped."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from glasslet.answers.stops import BreakRequest
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.stops.breaks import BadBreak
from glasslet.stops.stops import MOST_BREAKS
from tests.builders.pod import UID, container, pod
from tests.component.pod_agent import Agent, running_agent
from tests.component.stops.test_holds_at_stations import until_held
from tests.fakes.programs import exits

pytestmark = pytest.mark.looptime


def labelled(number: int, **labels: str) -> Pod:
    one = pod(name=f"web-{number}", uid=f"uid-{number}")
    return replace(one, metadata=replace(one.metadata, labels=labels))


def held(agent: Agent) -> set[str]:
    return {str(one.arrival.pod) for one in agent.holds}


async def test_a_count_ends_the_break_and_the_pods_that_it_holds_stay_held() -> None:
    async with running_agent() as agent:
        await agent.stops.set(BreakRequest(at="sandbox", count=3), by="root")
        for number in range(5):
            agent.add(labelled(number))
        await asyncio.sleep(60)
        assert len(held(agent)) == 3
        (row,) = agent.stops.breaks()
        assert (row.hits, len(row.holding)) == (3, 3)
        assert len(agent.stops.go_on_all().released) == 3
        await asyncio.sleep(1)
        assert agent.stops.breaks() == ()
        assert not agent.stops.armed


async def test_only_pods_that_fit_are_held() -> None:
    async with running_agent() as agent:
        await agent.stops.set(BreakRequest(at="sandbox", selector="app=web,tier in (front,back)"), by="root")
        agent.add(labelled(1, app="web", tier="front"))
        agent.add(labelled(2, app="web", tier="middle"))
        agent.add(labelled(3))
        await asyncio.sleep(60)
        assert held(agent) == {"default/web-1"}


async def test_only_the_container_of_the_break_is_held() -> None:
    async with running_agent() as agent:
        await agent.stops.set(BreakRequest(at="created", container="main"), by="root")
        agent.add(pod(container("main"), container("side")))
        await agent.until_running("side")
        await asyncio.sleep(60)
        assert agent.runtime.running() == ["side"]


async def test_a_pod_is_stepped_from_station_to_station() -> None:
    async with running_agent() as agent:
        await agent.stops.set(BreakRequest(at="planned", count=1), by="root")
        agent.add(pod())
        await until_held(agent)
        way = []
        while (hold := await agent.stops.step(pod_ref(pod()), patience=30)) is not None:
            way.append(hold.at)
        assert way[:6] == ["cgroup", "volumes", "sandbox", "plan", "planned", "image"]
        assert way[6:8] == ["created", "started"]
        assert agent.runtime.running() == ["main"]


async def test_a_condition_sees_the_tree_that_inspect_shows() -> None:
    async with running_agent() as agent:
        agent.conditions.rules["second"] = lambda tree: tree["container"] == "main" and tree["attempt"] >= 1
        await agent.stops.set(BreakRequest(at="created", when="second"), by="root")
        agent.runtime.program("main", exits(1, after=5), exits(0))
        agent.add(pod())
        await until_held(agent)
        arrival = agent.holds.arrival_of(PodUID(UID))
        assert arrival is not None
        shown = agent.inspector.tree(pod_ref(pod()), arrival)
        last = agent.conditions.seen[-1]
        assert set(last) == set(shown)
        assert (shown["attempt"], shown["container"], shown["at"]) == (1, "main", "created")
        assert last["plan"] == shown["plan"]


async def test_a_condition_without_an_answer_holds_no_pod_and_is_reported() -> None:
    async with running_agent() as agent:
        await agent.stops.set(BreakRequest(at="sandbox", when="unknown"), by="root")
        agent.add(pod())
        await agent.until_running("main")
        (row,) = agent.stops.breaks()
        assert row.problem == "default/web: no such field 'unknown'"


async def test_a_condition_that_loops_delays_one_pod_once_and_is_off_then() -> None:
    async with running_agent() as agent:
        agent.conditions.slow.add("loops")
        await agent.stops.set(BreakRequest(at="sandbox", when="loops"), by="root")
        await agent.observed.synced.wait()
        agent.add(pod())
        await agent.until_running("main")
        assert agent.stops.breaks()[0].problem == "the condition took longer than 0.5 s; the break is off"
        began = agent.clock.monotonic()
        agent.add(labelled(1))
        await agent.until_running("main", uid="uid-1")
        assert agent.clock.monotonic() - began < 0.2


async def test_200_pods_start_beside_64_breaks_that_do_not_fit_and_no_break_more_is_taken() -> None:
    async with running_agent() as agent:
        for number in range(MOST_BREAKS):
            await agent.stops.set(BreakRequest(at="sandbox", pod=f"other/*-{number}"), by="root")
        with pytest.raises(BadBreak, match="too many breaks"):
            await agent.stops.set(BreakRequest(at="sandbox"), by="root")
        for number in range(200):
            agent.add(labelled(number))
        await agent.until(lambda: all(agent.runtime.running(f"uid-{number}") for number in range(200)), step=1.0)
        assert held(agent) == set()


async def test_64_breaks_hold_200_pods_and_let_all_of_them_go() -> None:
    async with running_agent() as agent:
        for number in range(MOST_BREAKS):
            await agent.stops.set(BreakRequest(at="sandbox", pod=f"*{number % 10}"), by="root")
        for number in range(200):
            agent.add(labelled(number))
        await agent.until(lambda: len(held(agent)) == 200, step=1.0)
        assert len(agent.stops.go_on_all().released) == 200
        await agent.until(lambda: all(agent.runtime.running(f"uid-{number}") for number in range(200)), step=1.0)
