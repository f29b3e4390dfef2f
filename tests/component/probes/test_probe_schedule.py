"""When probes run, on the recorded schedule: real workers, virtual time."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest

from glasslet.probes.answer import ProbeAnswer
from glasslet.probes.kinds import ProbeKind
from tests.builders.pod import container, pod, sidecar
from tests.component.probed_agent import http, probed_agent
from tests.fakes.probing import FAIL, PASS, FakeProbing

pytestmark = pytest.mark.looptime

LIVENESS, READINESS, STARTUP = ProbeKind.LIVENESS, ProbeKind.READINESS, ProbeKind.STARTUP


def gaps(times: list[float]) -> list[float]:
    """Seconds between one probe and the next."""
    return [round(after - before, 2) for before, after in itertools.pairwise(times)]


async def test_liveness_is_probed_each_period_and_not_right_at_the_start() -> None:
    # behaviours.md §10: "The first tick is immediate" - with the sandbox, when there is no container to be probed yet.
    probing = FakeProbing()
    async with probed_agent(probing) as agent:
        agent.add(pod(container(liveness_probe=http(period_seconds=7))))
        await agent.until_running("main")
        started = agent.started_at()
        await asyncio.sleep(40)
        times = probing.times(kind=LIVENESS)
        assert 6.5 < times[0] - started <= 7.0
        assert gaps(times) == [7.0] * 4


async def test_a_young_agent_waits_a_random_part_of_the_period_once() -> None:
    # behaviours.md §10: "only while the kubelet is younger than the period a random part of the period is waited once"
    probing = FakeProbing()
    async with probed_agent(probing, age=1.0, luck=0.5) as agent:
        agent.add(pod(container(liveness_probe=http(period_seconds=30))))
        await agent.until_running("main")
        started = agent.started_at()
        await asyncio.sleep(100)
        times = probing.times(kind=LIVENESS)
        assert 14.5 < times[0] - started <= 15.0
        assert gaps(times) == [30.0] * 2


async def test_probing_waits_for_the_initial_delay_and_keeps_to_its_ticks() -> None:
    # behaviours.md §10: "Probing waits until whole seconds since startedAt reach initialDelay."
    probing = FakeProbing()
    async with probed_agent(probing) as agent:
        agent.add(pod(container(liveness_probe=http(period_seconds=4, initial_delay_seconds=10))))
        await agent.until_running("main")
        started = agent.started_at()
        await asyncio.sleep(30)
        times = [round(at - started) for at in probing.times(kind=LIVENESS)]
        assert times == [12, 16, 20, 24, 28]


async def test_readiness_is_probed_as_soon_as_its_container_runs() -> None:
    # behaviours.md §10: "A readiness worker is triggered at once ... each time the pod status is computed while the
    # container is started and not ready."
    probing = FakeProbing()
    async with probed_agent(probing) as agent:
        one = pod(container(readiness_probe=http()))
        agent.add(one)
        await agent.until_running("main")
        started = agent.started_at()
        await asyncio.sleep(35)
        times = probing.times()
        assert times[0] - started < 0.1
        assert gaps(times) == [10.0] * 3, "ticks count from the trigger"
        assert agent.ready(one)


async def test_a_change_of_readiness_is_looked_at_again_at_once() -> None:
    # The status computed for the change is one with a started container that is not ready.
    def answer(_container: str, _kind: ProbeKind, number: int) -> ProbeAnswer:
        return FAIL if number in (2, 3, 4) else PASS

    probing = FakeProbing(answer)
    async with probed_agent(probing) as agent:
        one = pod(container(readiness_probe=http()))
        agent.add(one)
        await agent.until(lambda: len(probing.times()) >= 7)
        assert gaps(probing.times())[:5] == [10.0, 10.0, 10.0, 10.0, 0.0]
        assert agent.readiness_told(one) == [False, True, False, True]


async def test_a_probe_that_takes_longer_than_its_period_follows_itself_at_once() -> None:
    probing = FakeProbing(takes=2.5)
    async with probed_agent(probing) as agent:
        agent.add(pod(container(liveness_probe=http(period_seconds=1, timeout_seconds=5))))
        await agent.until(lambda: len(probing.times(kind=LIVENESS)) >= 5)
        assert gaps(probing.times(kind=LIVENESS))[:4] == [2.5] * 4


async def test_startup_gates_the_other_probes() -> None:
    # behaviours.md §10: "Startup must pass before the other two run; the startup worker rests after either result
    # until the container id changes."
    def answer(_container: str, kind: ProbeKind, number: int) -> ProbeAnswer:
        return FAIL if kind is STARTUP and number < 3 else PASS

    probing = FakeProbing(answer)
    async with probed_agent(probing) as agent:
        probes: dict[str, Any] = {
            "startup_probe": http(period_seconds=2, failure_threshold=10),
            "readiness_probe": http(),
        }
        one = pod(container(liveness_probe=http(), **probes))
        agent.add(one)
        await agent.until(lambda: agent.statuses.of(one.metadata.uid) and agent.ready(one))
        assert len(probing.times(kind=STARTUP)) == 4
        passed = probing.times(kind=STARTUP)[-1]
        assert probing.times()[0] == pytest.approx(passed, abs=0.02)
        await asyncio.sleep(60)
        assert len(probing.times(kind=STARTUP)) == 4, "it rests"
        assert min(probing.times(kind=LIVENESS)) > passed
        assert agent.container().started is True


async def test_a_sidecar_lets_the_next_container_begin_when_its_startup_probe_passed() -> None:
    # behaviours.md §3: "Sidecars ... must be started (startup probe passed, or running without one) before the next
    # begins; readiness does not matter for that."
    def answer(container: str, kind: ProbeKind, number: int) -> ProbeAnswer:
        return FAIL if kind is READINESS or number < 2 else PASS

    probing = FakeProbing(answer)
    async with probed_agent(probing) as agent:
        side = sidecar(startup_probe=http(period_seconds=3), readiness_probe=http())
        one = pod(container(), init=(side,))
        agent.add(one)
        await agent.until_running("main")
        third = probing.times("side", STARTUP)[2]
        assert agent.started_at("main") == pytest.approx(third, abs=0.1)
        assert agent.container("side").started is True
        assert not agent.ready(one), "a sidecar's readiness counts"


async def test_probes_of_many_pods_keep_to_their_own_ticks() -> None:
    probing = FakeProbing()
    async with probed_agent(probing) as agent:
        for number in range(20):
            agent.add(pod(container(readiness_probe=http()), uid=f"uid-{number}", name=f"web-{number}"))
            await asyncio.sleep(0.31)
        await asyncio.sleep(60)
        by_instance: dict[str, list[float]] = {}
        for one in probing.of():
            by_instance.setdefault(one.instance, []).append(one.at)
        assert len(by_instance) == 20
        assert all(gaps(times) == [10.0] * (len(times) - 1) for times in by_instance.values())


async def test_the_wall_clock_may_jump() -> None:
    """A start time in the future or far in the past neither holds probes back nor kills."""
    probing = FakeProbing()
    async with probed_agent(probing) as agent:
        agent.add(pod(container(liveness_probe=http(period_seconds=5, initial_delay_seconds=12))))
        await agent.until_running("main")
        started = agent.started_at()
        agent.clock.start -= timedelta(hours=1)
        await asyncio.sleep(30)
        assert [round(at - started) for at in probing.times(kind=LIVENESS)] == [15, 20, 25, 30]
