"""The API server is down, slow, refuses, forgets, breaks off, repeats itself and mixes things up: pods never notice,
and soon after its return it has been told everything. In virtual time."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Callable

import pytest

from glasslet.kubeapi.errors import Gone, Throttled, Unavailable
from tests.component.api_agent import APIAgent, api_pod, running
from tests.component.pod_agent import Node
from tests.fakes.api_server import FakeAPIServer, Plain
from tests.faults.table import Row, sized

pytestmark = [pytest.mark.looptime, pytest.mark.timeout(300)]
STEADY = [f"steady-{number}" for number in range(5)]
LASTS, CONVERGED = float(sized(60, 1800)), 120.0


def down(server: FakeAPIServer) -> None:
    server.down = True


def slow(server: FakeAPIServer) -> None:
    server.latency = 8.0


def too_many(server: FakeAPIServer) -> None:
    server.fail_next(Throttled, times=10**9)


def errors(server: FakeAPIServer) -> None:
    server.fail_next(Unavailable, times=10**9, message="500 internal error")


def gone(server: FakeAPIServer) -> None:
    server.fail_next(Gone, verb="WATCH", times=10**9)
    server.break_watches()


def breaking(server: FakeAPIServer) -> None:
    server.fail_next(Unavailable, verb="WATCH", times=10**9)
    server.break_watches()


def compacted(server: FakeAPIServer) -> None:
    server.compact()
    server.break_watches()


def healed(server: FakeAPIServer) -> None:
    server.down, server.latency = False, 0.0
    server.heal()


@pytest.mark.parametrize("trouble", [down, slow, too_many, errors, gone, breaking, compacted], ids=lambda f: f.__name__)
async def test_an_api_server_in_trouble_costs_no_pod(row: Row, trouble: Callable[[FakeAPIServer], None]) -> None:
    row.did(f"API server: {trouble.__name__.replace('_', ' ')} for {LASTS:g} s, pods come and go there meanwhile")
    server, node = FakeAPIServer(), Node()
    async with running(server, node) as agent:
        before = await steady(agent)
        told = {name: agent.seen(name) for name in STEADY}
        server.put("pods", api_pod("leaving"))
        await agent.until_ready("leaving")
        asked = len(server.requests)

        trouble(server)
        server.delete_pod("default", "leaving", 2)
        server.put("pods", api_pod("coming"))
        (main, *_) = [c for c in node.runtime.instances("main") if c.uid == uid_of(agent, STEADY[0])]
        node.runtime.kill(main.id, code=3)
        await asyncio.sleep(LASTS)
        requests = len(server.requests) - asked
        row.figure("requests meanwhile", requests)
        assert requests < 60 + LASTS * 4, "the server is asked in a tight loop"
        assert {c.id for c in node.runtime.containers.values()} >= before - {main.id}
        row.holds("nothing stopped", "no storm of requests")

        healed(server)
        await agent.until(lambda: agent.seen("leaving") is None, seconds=CONVERGED)
        await agent.until_ready("coming")
        await agent.until(lambda: restarts(agent, STEADY[0]) == 1, seconds=CONVERGED)
        after = {name: agent.seen(name) for name in STEADY[1:]}
        assert after == {name: told[name] for name in STEADY[1:]}
        assert running_ids(node) >= before - {main.id}
        row.holds("all told after its return", "statuses of the others untouched", "no wrong deletion")


async def test_events_twice_and_in_the_wrong_order_change_nothing(row: Row) -> None:
    rounds = sized(30, 600)
    row.did(f"{rounds} old events of the watch are sent again, in any order")
    server, node, dice = FakeAPIServer(), Node(), random.Random(3)
    async with running(server, node) as agent:
        for name in STEADY:
            # Of each there was another one before, whose beginning and end are told again, too.
            server.put("pods", api_pod(name))
            server.remove("pods", "default", name)
        before = await steady(agent)
        for number in range(rounds):
            name = dice.choice(STEADY)
            server.change("pods", "default", name, {"metadata": {"labels": {"round": str(number)}}})
            server.repeat(dice)
            await asyncio.sleep(dice.choice((0, 0.1, 2)))
        server.put("pods", api_pod("coming"))
        await agent.until_ready("coming")
        assert before <= running_ids(node)
        assert len(running_ids(node)) == len(STEADY) + 1
        assert all(restarts(agent, name) == 0 for name in STEADY)
    row.holds("no restart", "no wrong deletion", "a new pod starts")


async def test_a_server_whose_clock_is_wrong_gets_its_pods_run(row: Row) -> None:
    row.did("pods made and deleted by a server whose clock is an hour ahead, or behind")
    for stamp in ("2025-12-31T23:00:00Z", "2026-01-01T01:00:00Z"):
        server, node = FakeAPIServer(), Node()
        async with running(server, node) as agent:
            pod: Plain = copy.deepcopy(api_pod())
            pod["metadata"]["creationTimestamp"] = stamp
            server.put("pods", pod)
            await agent.until_ready()
            server.delete_pod("default", "web", 2)
            server.change("pods", "default", "web", {"metadata": {"deletionTimestamp": stamp}})
            await agent.until(lambda agent=agent: agent.seen() is None, seconds=60)  # type: ignore[misc]
            assert node.runtime.containers == {}
    row.holds("started", "deleted within its grace")


async def steady(agent: APIAgent) -> set[str]:
    """The steady pods run and everything is told; ids of their containers."""
    for name in STEADY:
        agent.server.put("pods", api_pod(name))
    for name in STEADY:
        await agent.until_ready(name)
    await asyncio.sleep(20)
    return running_ids(agent.node)


def running_ids(node: Node) -> set[str]:
    return {str(c.id) for c in node.runtime.containers.values() if c.running}


def uid_of(agent: APIAgent, name: str) -> str:
    found = agent.seen(name)
    assert found is not None
    return str(found["metadata"]["uid"])


def restarts(agent: APIAgent, name: str) -> int:
    """Restarts that the server knows of."""
    statuses: list[Plain] = (agent.seen(name) or {}).get("status", {}).get("containerStatuses", [])
    return int(statuses[0]["restartCount"]) if statuses else 0
