"""Effects of probe results: statuses, restarts, events, metrics, records."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.pod_ref import pod_ref
from glasslet.exchange.facts import ProbeOutcome
from glasslet.probes.answer import ProbeAnswer
from glasslet.probes.kinds import ProbeKind
from glasslet.probes.results import ProbeVerdict
from glasslet.record.events import ChangeObserved
from glasslet.record.stations import WaitKind
from tests.builders.pod import api_pod, container, deleted, pod, pre_stop_sleep, sidecar
from tests.component.pod_agent import Node
from tests.component.probed_agent import FakeMemory, http, probed_agent
from tests.fakes.probing import BROKEN, FAIL, PASS, WARN, FakeProbing
from tests.fakes.programs import IGNORES_TERM, Pull, exits

pytestmark = pytest.mark.looptime

LIVENESS, READINESS, STARTUP = ProbeKind.LIVENESS, ProbeKind.READINESS, ProbeKind.STARTUP


def always(answer: ProbeAnswer) -> FakeProbing:
    return FakeProbing(lambda _container, _kind, _number: answer)


def failing(*kinds: ProbeKind) -> FakeProbing:
    return FakeProbing(lambda _container, kind, _number: FAIL if kind in kinds else PASS)


async def test_a_failed_liveness_probe_kills_with_its_own_grace_and_starts_anew() -> None:
    # behaviours.md §4: "Kills for a failed liveness or startup probe: deletionGracePeriodSeconds first, then the
    # probe's terminationGracePeriodSeconds, then the spec, else 2 s."
    probing = FakeProbing(lambda _c, _k, number: FAIL if number < 3 else PASS)
    async with probed_agent(probing) as agent:
        agent.runtime.program("main", IGNORES_TERM)
        agent.add(pod(container(liveness_probe=http(period_seconds=2, termination_grace_period_seconds=7))))
        await agent.until(lambda: len(agent.runtime.instances("main")) == 2)
        await agent.until_running("main")
        assert [e.message for e in agent.events.of("Killing")] == [
            "Container main failed liveness probe, will be restarted"
        ]
        killed = probing.times(kind=LIVENESS)[2]
        assert agent.started_at(number=1) - killed == pytest.approx(7.0, abs=0.1)
        await asyncio.sleep(30)
        assert agent.container().restart_count == 1
        first, *rest = [one for one in probing.of(kind=LIVENESS) if one.at > killed]
        assert {first.instance, *(one.instance for one in rest)} == {agent.runtime.instances("main")[1].id}


async def test_a_failed_startup_probe_kills() -> None:
    async with probed_agent(always(FAIL)) as agent:
        probed = container(startup_probe=http(period_seconds=1))
        agent.add(pod(probed, container("other"), restart_policy="Never"))
        await agent.until(lambda: agent.events.of("Killing"))
        assert agent.events.of("Killing")[0].message == "Container main failed startup probe"
        await asyncio.sleep(40)
        assert agent.runtime.running() == ["other"], "it is not started again"


async def test_a_failed_readiness_probe_only_takes_the_pod_out() -> None:
    probing = failing(READINESS)
    async with probed_agent(probing) as agent:
        one = pod(container(readiness_probe=http(period_seconds=1)))
        agent.add(one)
        await asyncio.sleep(60)
        assert agent.runtime.running() == ["main"]
        assert not agent.ready(one)
        assert agent.container().started is True
        assert not agent.events.of("Killing")


async def test_a_failed_liveness_probe_restarts_a_sidecar() -> None:
    # behaviours.md §3: "liveness or startup failure too"; "Liveness, readiness, startup probes and hooks work on
    # sidecars"
    probing = FakeProbing(lambda name, _k, number: FAIL if name == "side" and number < 3 else PASS)
    async with probed_agent(probing) as agent:
        agent.add(pod(container(), init=(sidecar(liveness_probe=http(period_seconds=1)),)))
        await agent.until(lambda: len(agent.runtime.instances("side")) == 2)
        assert agent.events.of("Killing")[0].message == "Init container side failed liveness probe"
        assert agent.events.of("Unhealthy")[0].field_path == "spec.initContainers{side}"


async def test_a_failure_is_told_in_an_event_every_time() -> None:
    # behaviours.md §10: "Failed: event Unhealthy `<Kind> probe failed: <output>`"
    async with probed_agent(failing(READINESS)) as agent:
        agent.add(pod(container(readiness_probe=http())))
        await agent.until(lambda: len(agent.events.of("Unhealthy")) >= 5)
        event = agent.events.of("Unhealthy")[4]
        assert event.message == "Readiness probe failed: HTTP probe failed with statuscode: 503"
        assert (event.type_, event.field_path) == ("Warning", "spec.containers{main}")


async def test_a_warning_counts_as_a_success() -> None:
    # behaviours.md §10: "warning: event ProbeWarning `<Kind> probe warning: <output>`"
    async with probed_agent(always(WARN)) as agent:
        one = pod(container(readiness_probe=http()))
        agent.add(one)
        await agent.until(lambda: agent.statuses.of(one.metadata.uid) and agent.ready(one))
        message = "Readiness probe warning: Probe terminated redirects, Response body: x"
        assert agent.events.of("ProbeWarning")[0].message == message


async def test_a_probe_that_errors_leaves_state_and_counters_as_they_are() -> None:
    # behaviours.md §10: "A probe that errors leaves state and counters as they are; event Unhealthy `<Kind> probe
    # errored and resulted in <result> state: <error>`."
    script = [FAIL, FAIL, BROKEN, BROKEN, FAIL]
    probing = FakeProbing(lambda _c, _k, number: script[number] if number < len(script) else PASS)
    async with probed_agent(probing) as agent:
        agent.add(pod(container(liveness_probe=http(period_seconds=1))))
        await agent.until(lambda: agent.events.of("Killing"))
        assert len(probing.times(kind=LIVENESS)) == 5
        assert agent.events.of("Unhealthy")[2].message == (
            "Liveness probe errored and resulted in unknown state: no such port"
        )


async def test_a_container_that_stops_is_not_ready() -> None:
    # behaviours.md §10: "Non-running container: readiness failure."
    async with probed_agent(FakeProbing()) as agent:
        agent.runtime.program("main", exits(1, after=25), exits(1, after=25))
        one = pod(container(readiness_probe=http()))
        agent.add(one)
        await agent.until(lambda: len(agent.runtime.instances("main")) == 2)
        await asyncio.sleep(30)
        assert agent.readiness_told(one) == [False, True, False, True, False]
        assert [outcome.ready for outcome in agent.passing(one).values()] == [False]


async def test_a_restarted_container_has_to_become_ready_again() -> None:
    script = {0: PASS, 1: PASS, 2: FAIL, 3: FAIL}
    probing = FakeProbing(lambda _c, _k, number: script.get(number, PASS))
    async with probed_agent(probing) as agent:
        agent.runtime.program("main", exits(1, after=15), exits(0, after=500))
        one = pod(container(readiness_probe=http()))
        agent.add(one)
        await agent.until(lambda: len(agent.runtime.instances("main")) == 2)
        await asyncio.sleep(15)
        assert agent.readiness_told(one) == [False, True, False]
        await asyncio.sleep(15)
        assert agent.ready(one)


async def test_probes_end_when_the_container_ended_for_good() -> None:
    # behaviours.md §10: "Worker ends when the pod is terminal or the container terminated and will not restart."
    probing = FakeProbing()
    async with probed_agent(probing) as agent:
        agent.runtime.program("main", exits(0, after=12))
        one = pod(container(liveness_probe=http(period_seconds=5)), container("other"), restart_policy="Never")
        agent.add(one)
        await agent.until_running("main")
        await asyncio.sleep(60)
        assert len(probing.times(kind=LIVENESS)) == 2
        assert b'probe_type="Liveness"' not in agent.registry.expose()


async def test_liveness_stops_and_readiness_goes_on_while_a_pod_ends() -> None:
    # behaviours.md §4: "Liveness and startup probing of regular containers stops when termination starts; readiness
    # and sidecar probes go on until the containers stopped."
    ending: list[float] = []
    probing = FakeProbing(lambda name, kind, _n: FAIL if ending and (name, kind) == ("main", READINESS) else PASS)
    every_second: dict[str, Any] = {"liveness_probe": http(period_seconds=1), "readiness_probe": http(period_seconds=1)}
    async with probed_agent(probing) as agent:
        one = api_pod(container(lifecycle=pre_stop_sleep(20), **every_second), init=(sidecar(**every_second),))
        agent.add(one)
        await agent.until(lambda: agent.statuses.of(one.metadata.uid) and agent.ready(one))
        agent.delete(deleted(one, grace=30))
        await asyncio.sleep(0.5)
        ending.append(asyncio.get_running_loop().time())
        await asyncio.sleep(15)
        assert [at for at in probing.times(kind=LIVENESS) if at > ending[0]] == []
        assert len([at for at in probing.times() if at > ending[0]]) >= 14
        assert len([at for at in probing.times("side", LIVENESS) if at > ending[0]]) >= 14
        assert set(agent.runtime.running()) == {"main", "side"}
        # behaviours.md §6: "A terminating pod with running containers never shows Ready lost by the kubelet alone;
        # readiness probes decide."
        assert agent.readiness_told(one) == [False, True, False]
        await agent.until_finished()
        count = len(probing.probed)
        await asyncio.sleep(30)
        assert len(probing.probed) == count
        assert not agent.passing(one)


async def test_a_terminating_pod_stays_ready_while_its_probe_passes() -> None:
    async with probed_agent(FakeProbing()) as agent:
        one = api_pod(
            container(startup_probe=http(), readiness_probe=http(period_seconds=1), lifecycle=pre_stop_sleep(20))
        )
        agent.add(one)
        await agent.until(lambda: agent.statuses.of(one.metadata.uid) and agent.ready(one))
        agent.delete(deleted(one, grace=30))
        await asyncio.sleep(15)
        assert agent.ready(one)


async def test_readiness_is_told_while_the_worker_is_busy() -> None:
    """Another container's image takes minutes: the ready one is shown meanwhile."""
    node = Node()
    async with probed_agent(FakeProbing(), node=node) as agent:
        other = container("other", image="docker.io/library/slow:1")
        agent.runtime.pulls["docker.io/library/slow:1"] = Pull(takes=300.0)
        one = pod(container(readiness_probe=http(initial_delay_seconds=20)), other)
        agent.add(one)
        await agent.until_running("main")
        await asyncio.sleep(45)
        assert agent.runtime.running() == ["main"]
        assert agent.container("main").ready


async def test_host_network_pods_are_probed_on_the_node() -> None:
    # behaviours.md §10: "Host-network pods are probed on the node IP."
    probing = FakeProbing()
    async with probed_agent(probing) as agent:
        agent.add(pod(container(readiness_probe=http()), host_network=True))
        await agent.until(lambda: probing.of())
        assert probing.of()[0].host == "192.0.2.1"


async def test_other_pods_are_probed_at_their_own_address() -> None:
    probing = FakeProbing()
    async with probed_agent(probing) as agent:
        agent.add(pod(container(readiness_probe=http())))
        await agent.until(lambda: probing.of())
        assert probing.of()[0].host == agent.status().pod_ip != ""


async def test_results_are_counted_until_the_probe_ends() -> None:
    # behaviours.md §10: "metrics prober_probe_total counts successful, failed, unknown."
    script = [PASS, FAIL, BROKEN, PASS]
    probing = FakeProbing(lambda _c, _k, number: script[number % 4])
    async with probed_agent(probing) as agent:
        one = pod(container(readiness_probe=http()))
        agent.add(one)
        await agent.until(lambda: len(probing.of()) == 4)
        await asyncio.sleep(1)
        labels = '{probe_type="Readiness",result="successful",container="main",pod="web",namespace="default"'
        exposed = agent.registry.expose().decode()
        assert f'prober_probe_total{labels},pod_uid="{one.metadata.uid}"}} 2' in exposed
        assert 'result="failed"' in exposed
        agent.remove(one)
        await agent.until_gone()
        assert "container=" not in agent.registry.expose().decode()


async def test_results_are_kept_with_their_parts() -> None:
    probing = FakeProbing(lambda _c, _k, number: FAIL if number else PASS, takes=0.25)
    async with probed_agent(probing) as agent:
        one = pod(container(readiness_probe=http()))
        agent.add(one)
        await agent.until(lambda: len(agent.probes.last(pod_ref(one))) == 2)
        first, second = agent.probes.last(pod_ref(one))
        assert (first.verdict, first.note, first.total) == (ProbeVerdict.SUCCESS, "status 200", 0.25)
        assert (second.verdict, second.note) == (ProbeVerdict.FAILURE, "status 503")
        assert second.late < 0.001


async def test_the_record_tells_the_way_to_the_threshold_and_no_more() -> None:
    probing = FakeProbing(lambda _c, _k, number: PASS if number in (0, 20) else FAIL)
    async with probed_agent(probing) as agent:
        one = pod(container(readiness_probe=http(period_seconds=1)))
        agent.add(one)
        await agent.until(lambda: len(probing.of()) == 22)
        await asyncio.sleep(0.1)
        record = agent.record.of(pod_ref(one))
        assert record is not None
        told = [e.new for e in record.events if isinstance(e, ChangeObserved) and e.subject == "readiness probe"]
        assert told == [
            "passes",
            "status 503, 1 of 3 failures",
            "status 503, 2 of 3 failures",
            "status 503, 3 of 3 failures",
            "passes",
            "status 503, 1 of 3 failures",
        ]


async def test_what_a_probe_waits_for_has_a_name_and_an_end() -> None:
    async with probed_agent(FakeProbing()) as agent:
        agent.add(pod(container(readiness_probe=http())))
        await agent.until(lambda: agent.container().ready if agent.statuses.told else False)
        await asyncio.sleep(7)
        (wait,) = [w for w in agent.record.live_waits() if w.kind == WaitKind.PROBE]
        assert (wait.on, wait.container) == ("readiness http :8080/", "main")
        assert wait.until is not None
        assert 2.9 < wait.until - agent.clock.now().timestamp() <= 3.1


async def test_readiness_survives_a_restart_of_the_agent() -> None:
    """No Ready flap: until its probe says otherwise a container is what it was."""
    node, probing = Node(), FakeProbing()
    one = pod(container(readiness_probe=http(), startup_probe=http()))
    async with probed_agent(probing, node=node) as agent:
        agent.add(one)
        await agent.until(lambda: agent.statuses.told and agent.ready(one))
        known = agent.passing(one)
    assert list(known.values()) == [ProbeOutcome(started=True, ready=True)]
    probing.probed.clear()
    probing.answer = lambda _c, _k, _n: FAIL
    async with probed_agent(probing, node=node, memory=FakeMemory(known), age=0.0, luck=0.9) as agent:
        agent.add(one)
        await asyncio.sleep(9)
        assert agent.readiness_told(one) == [True], "not even for a moment"
        assert agent.container().started is True
        await asyncio.sleep(40)
        assert agent.readiness_told(one) == [True, False], "three failures are news"
        assert not probing.of(kind=STARTUP), "what has started need not start again"


async def test_an_agent_without_memory_believes_what_the_api_still_shows() -> None:
    """As when glasslet takes over from another kubelet."""
    node, probing = Node(), FakeProbing()
    one = api_pod(container(readiness_probe=http()))
    async with probed_agent(probing, node=node) as agent:
        agent.add(one)
        await agent.until(lambda: agent.statuses.told and agent.ready(one))
        shown = agent.status()
    async with probed_agent(probing, node=node, age=0.0, luck=0.9) as agent:
        agent.add(replace(one, status=shown))
        await asyncio.sleep(5)
        assert agent.readiness_told(one) == [True]


async def test_what_was_known_of_another_instance_says_nothing() -> None:
    node, probing = Node(), always(FAIL)
    one = pod(container(readiness_probe=http()))
    known = FakeMemory({"gone": ProbeOutcome(ready=True)})  # type: ignore[dict-item]
    async with probed_agent(probing, node=node, memory=known) as agent:
        agent.add(one)
        await asyncio.sleep(30)
        assert agent.readiness_told(one) == [False]


async def test_a_pod_that_comes_back_is_probed_afresh() -> None:
    probing = FakeProbing()
    one = pod(container(readiness_probe=http()))
    async with probed_agent(probing) as agent:
        agent.add(one)
        await agent.until(lambda: agent.statuses.told and agent.ready(one))
        agent.remove(one)
        await agent.until_gone()
        probing.answer = lambda _c, _k, _n: FAIL
        agent.add(one)
        await agent.until_running("main")
        await asyncio.sleep(5)
        assert not agent.ready(one)


async def test_a_probe_under_way_ends_with_its_pod_and_says_nothing() -> None:
    probing = FakeProbing(lambda _c, _k, _n: FAIL, takes=50.0)
    async with probed_agent(probing) as agent:
        one = pod(container(readiness_probe=http()))
        agent.add(one)
        await agent.until(lambda: probing.of())
        agent.remove(one)
        await agent.until_gone()
        await asyncio.sleep(0.1)
        assert not [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("probe ")]
        await asyncio.sleep(60)
        assert not agent.events.of("Unhealthy")


async def test_a_probe_that_waits_for_its_first_tick_ends_with_its_pod() -> None:
    probing = FakeProbing()
    async with probed_agent(probing, age=0.0, luck=0.99) as agent:
        one = pod(container(readiness_probe=http(period_seconds=3600)))
        agent.add(one)
        await agent.until_running("main")
        agent.remove(one)
        await agent.until_gone()
        await asyncio.sleep(0.1)
        assert not [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("probe ")]


async def test_a_probe_that_breaks_goes_on_and_hurts_no_other() -> None:
    def answer(container: str, _kind: ProbeKind, number: int) -> ProbeAnswer:
        if container == "main" and number == 1:
            raise RuntimeError("a defect of the agent")
        return PASS

    probing = FakeProbing(answer)
    async with probed_agent(probing) as agent:
        one = pod(container(readiness_probe=http()), container("other", readiness_probe=http()))
        agent.add(one)
        await asyncio.sleep(60)
        assert len(probing.of("main")) >= 6
        assert len(probing.of("other")) >= 6
        assert agent.ready(one)
