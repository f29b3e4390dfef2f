"""`/healthz` of an agent whose runtime, log or housekeeping hangs: the checks over real components, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.observed.health import THRESHOLD
from glasslet.server.handlers.health import syncloop_check
from glasslet.server.health_report import report, single
from glasslet.server.protocols import HealthCheck
from glasslet.server.vitals import Vitals, log_check, runtime_check
from tests.component.pod_agent import Agent, running_agent

pytestmark = pytest.mark.looptime
EXPECTED = "sync Loop took longer than expected"


def checks_of(agent: Agent, log: str | None = None) -> tuple[HealthCheck, ...]:
    vitals = Vitals(log_check(lambda: log))
    vitals.add(syncloop_check(lambda: agent.housekeeping.turned_at, agent.clock.monotonic, 60.0))
    return (*vitals.checks, runtime_check(agent.observed.health_problem))


async def test_a_healthy_agent_passes_every_check() -> None:
    async with running_agent() as agent:
        await asyncio.sleep(600)
        assert report(checks_of(agent), verbose=True) == (
            200,
            "[+]ping ok\n[+]log ok\n[+]syncloop ok\n[+]pleg ok\nhealthz check passed\n",
        )


async def test_a_relist_that_hangs_fails_pleg_after_three_minutes_and_recovers() -> None:
    # behaviours.md: pleg.threshold, 180 s
    async with running_agent() as agent:
        await asyncio.sleep(5)
        hang = agent.runtime.hang(Verb.LIST_CONTAINERS)
        other = agent.runtime.hang(Verb.LIST_POD_SANDBOX)
        await asyncio.sleep(THRESHOLD - 10)
        assert report(checks_of(agent))[0] == 200
        await asyncio.sleep(80)
        status, body = report(checks_of(agent), show_reasons=True)
        assert status == 500
        assert "[-]pleg failed: pleg was last seen active 4m" in body
        assert "threshold is 3m0s" in body
        assert single(checks_of(agent)[3])[1].startswith("internal server error: pleg was last seen active")
        hang.release()
        other.release()
        await asyncio.sleep(5)
        assert report(checks_of(agent))[0] == 200


async def test_housekeeping_that_does_not_turn_fails_syncloop_after_five_minutes() -> None:
    async with running_agent() as agent:
        await asyncio.sleep(5)
        turned = agent.housekeeping.turned_at
        check = syncloop_check(lambda: turned, agent.clock.monotonic, 60.0)
        await asyncio.sleep(290)
        assert report([check])[0] == 200
        await asyncio.sleep(20)
        assert report([check], show_reasons=True)[1].splitlines()[0] == f"[-]syncloop failed: {EXPECTED}"
        assert single(check) == (500, f"internal server error: {EXPECTED}\n")


async def test_a_log_that_nobody_reads_fails_log() -> None:
    async with running_agent() as agent:
        await asyncio.sleep(5)
        assert single(checks_of(agent, log="logging blocked")[1]) == (500, "internal server error: logging blocked\n")
