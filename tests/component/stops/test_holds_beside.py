"""Probes and statuses go on while a pod is held, and are held only by breaks of their own."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.answers.stops import BreakRequest
from glasslet.api.object import PodUID
from tests.builders.pod import container, pod
from tests.component.api_agent import api_pod, running
from tests.component.probed_agent import http, probed_agent
from tests.component.stops.test_holds_at_stations import until_held
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.probing import PASS, FakeProbing

pytestmark = pytest.mark.looptime


async def test_probes_of_what_runs_go_on_and_show_in_the_status_while_the_pod_is_held() -> None:
    probing = FakeProbing(lambda _container, _kind, _number: PASS)
    async with probed_agent(probing) as agent:
        await agent.stops.set(BreakRequest(at="created", container="side"), by="root")
        agent.add(pod(container(readiness_probe=http(period_seconds=1)), container("side")))
        await until_held(agent)
        await asyncio.sleep(30)
        assert len(probing.times()) > 20
        assert agent.container().ready
        assert agent.runtime.running() == ["main"]


async def test_a_probe_is_held_before_it_is_sent_and_after_its_answer() -> None:
    probing = FakeProbing(lambda _container, _kind, _number: PASS)
    async with probed_agent(probing) as agent:
        await agent.stops.set(BreakRequest(at="probes", count=1), by="root")
        await agent.stops.set(BreakRequest(at="probes", after=True, count=1), by="root")
        one = pod(container(readiness_probe=http(period_seconds=1)))
        agent.add(one)
        await until_held(agent)
        await asyncio.sleep(60)
        assert probing.times() == []
        agent.stops.remove(1)
        await asyncio.sleep(60)
        assert len(probing.times()) == 1
        assert not agent.ready(one)
        agent.stops.remove()
        await asyncio.sleep(5)
        assert agent.ready(one)


async def test_a_status_is_held_alone_and_the_newest_one_is_sent() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        await agent.stops.set(BreakRequest(at="status", count=1), by="root")
        uid = server.put("pods", api_pod())["metadata"]["uid"]
        await agent.until(lambda: agent.holds.hold_of(PodUID(uid)))
        await asyncio.sleep(60)
        assert agent.runtime.running(uid) == ["main"]
        assert agent.phase() == "Pending"
        agent.stops.go_on_all()
        await agent.until_ready()
