"""What comes of a verdict: refused pods fail for good, critical ones make room; in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from glasslet.runtime.cri.verbs import Verb
from tests.component.api_agent import api_pod, running
from tests.component.pod_agent import Node
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.programs import Program

pytestmark = pytest.mark.looptime
CRITICAL = 2_000_000_000


async def test_refused_pod_fails_with_the_reason_and_is_never_begun() -> None:
    # behaviours.md §5: "Refused at admission: phase Failed, reason from the handler, message `Pod was rejected:
    # <message>`."
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod(requests={"cpu": "8"}))
        await agent.until(lambda: agent.phase() == "Failed")
        status = (agent.seen() or {})["status"]
        await asyncio.sleep(60)
        assert not agent.runtime.containers
        assert agent.events.reasons() == ["OutOfcpu"]
    assert status["reason"] == "OutOfcpu"
    assert status["message"] == (
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 8000, used: 0, capacity: 4000"
    )
    assert "containerStatuses" not in status
    assert status["startTime"]
    assert status["qosClass"] == "BestEffort"


async def test_refused_pod_is_never_tried_again() -> None:
    # behaviours.md §14: "Not admitted again: pods already in a terminal phase or being terminated."
    # behaviours.md §14: "pod becomes Failed with that reason; never retried."
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod("full", requests={"cpu": "4"}))
        await agent.until_ready("full")
        server.put("pods", api_pod(requests={"cpu": "1"}))
        await agent.until(lambda: agent.phase() == "Failed")
        server.remove("pods", "default", "full")
        await asyncio.sleep(300)
        assert agent.phase() == "Failed"
        assert len(agent.runtime.instances("main")) <= 1


async def test_room_counts_until_the_pod_has_stopped() -> None:
    # behaviours.md §14: "Counted as occupying the node: admitted pods that are not terminal, including terminating ones
    # still running."
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod("old", requests={"cpu": "4"}))
        await agent.until_ready("old")
        hang = agent.runtime.hang(Verb.STOP_CONTAINER)
        server.delete_pod("default", "old", 5)
        await asyncio.sleep(1)
        server.put("pods", api_pod("early", requests={"cpu": "1"}))
        await agent.until(lambda: agent.phase("early") == "Failed")
        hang.release()
        await agent.until(lambda: agent.seen("old") is None)
        server.put("pods", api_pod("late", requests={"cpu": "1"}))
        await agent.until_ready("late")


async def test_ended_pods_and_refused_pods_take_no_room() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod("refused", requests={"cpu": "9"}))
        await agent.until(lambda: agent.phase("refused") == "Failed")
        server.put("pods", api_pod("fits", requests={"cpu": "4"}))
        await agent.until_ready("fits")


async def test_node_that_is_full_refuses_one_more_pod() -> None:
    server = FakeAPIServer()
    async with running(server, pods="2") as agent:
        for name in ("a", "b"):
            server.put("pods", api_pod(name))
            await agent.until_ready(name)
        server.put("pods", api_pod("c"))
        await agent.until(lambda: agent.phase("c") == "Failed")
        assert (agent.seen("c") or {})["status"]["reason"] == "OutOfpods"


async def test_pods_of_one_batch_are_admitted_in_the_order_of_their_creation() -> None:
    # behaviours.md §1: "New pods of a batch are sorted by creation time; each is admitted and its worker started before
    # the next is looked at."
    server = FakeAPIServer()
    for name, born in (("late", "2025-12-31T23:59:59Z"), ("early", "2025-12-31T23:59:58Z")):
        pod = api_pod(name, requests={"cpu": "3"})
        pod["metadata"]["creationTimestamp"] = born
        server.put("pods", pod)
    async with running(server) as agent:
        await agent.until_ready("early")
        assert agent.phase("late") == "Failed"


async def test_agent_that_restarts_refuses_none_of_its_pods() -> None:
    server, node = FakeAPIServer(), Node()
    async with running(server, node) as agent:
        for name in ("a", "b"):
            server.put("pods", api_pod(name, requests={"cpu": "2"}))
            await agent.until_ready(name)
    async with running(server, node) as agent:
        await asyncio.sleep(60)
        assert {agent.phase(name) for name in ("a", "b")} == {"Running"}


async def test_critical_pod_begins_when_its_victim_has_ended() -> None:
    # behaviours.md §14: "Victims: event and reason Preempting, message `Preempted in order to admit critical pod`,
    # phase Failed, DisruptionTarget TerminationByKubelet [...], own grace period."
    server = FakeAPIServer()
    async with running(server) as agent:
        uid = server.put("pods", api_pod("victim", requests={"cpu": "3"}))["metadata"]["uid"]
        await agent.until_ready("victim")
        wanted = server.put("pods", api_pod("critical", requests={"cpu": "2"}, priority=CRITICAL))["metadata"]["uid"]
        both = False
        while agent.phase("critical") != "Running":
            both = both or bool(agent.runtime.running(uid) and agent.runtime.running(wanted))
            await asyncio.sleep(0.01)
        assert not both
        await agent.until(lambda: agent.phase("victim") == "Failed")
        status = (agent.seen("victim") or {})["status"]
    assert (status["reason"], status["message"]) == ("Preempting", "Preempted in order to admit critical pod")
    # behaviours.md §6: "DisruptionTarget (reason TerminationByKubelet) is sent together with the terminal phase once
    # containers stopped."
    disruption = agent.condition("DisruptionTarget", "victim")
    assert (disruption["status"], disruption["reason"]) == ("True", "TerminationByKubelet")
    assert disruption["message"] == "Pod was preempted by Kubelet to accommodate a critical pod."
    assert "Preempting" in agent.events.reasons()


async def test_victim_whose_containers_end_well_has_succeeded() -> None:
    # As the Go kubelet: after the stop the phase is counted from the containers; reason and message belong to Failed.
    server = FakeAPIServer()
    node = Node()
    node.runtime.program("main", Program(term_code=0))
    async with running(server, node) as agent:
        server.put("pods", api_pod("victim", requests={"cpu": "3"}))
        await agent.until_ready("victim")
        server.put("pods", api_pod("critical", requests={"cpu": "2"}, priority=CRITICAL))
        await agent.until(lambda: agent.phase("victim") in ("Succeeded", "Failed"))
        await agent.until_ready("critical")
        status = (agent.seen("victim") or {})["status"]
    assert (status["phase"], status.get("reason", ""), status.get("message", "")) == ("Succeeded", "", "")
    disruption = agent.condition("DisruptionTarget", "victim")
    assert (disruption["status"], disruption["reason"]) == ("True", "TerminationByKubelet")


async def test_pods_that_come_together_are_admitted_one_after_another() -> None:
    server = FakeAPIServer()
    port = [{"containerPort": 80, "hostPort": 8080}]
    async with running(server) as agent:
        for name in ("first", "second"):
            plain = api_pod(name)
            plain["spec"]["containers"][0]["ports"] = port
            server.put("pods", plain)
        await agent.until_ready("first")
        await agent.until(lambda: agent.phase("second") == "Failed")
        status = (agent.seen("second") or {})["status"]
    assert status["reason"] == "NodePorts"


async def test_pods_that_come_together_share_the_room() -> None:
    server = FakeAPIServer()
    async with running(server) as agent:
        for number in range(5):
            server.put("pods", api_pod(f"pod-{number}", requests={"cpu": "1"}))
        await agent.until(lambda: agent.phase("pod-4") == "Failed")
        await agent.until(lambda: all(agent.phase(f"pod-{number}") == "Running" for number in range(4)))
        assert agent.events.reasons().count("OutOfcpu") == 1


async def test_critical_pod_does_not_wait_endlessly_for_a_victim_that_resists() -> None:
    # behaviours.md §4: "Kill by eviction and preemption waits grace x 1.5, at least 10 s, then event
    # ExceededGracePeriod."
    server = FakeAPIServer()
    async with running(server) as agent:
        server.put("pods", api_pod("victim", requests={"cpu": "3"}, terminationGracePeriodSeconds=10))
        await agent.until_ready("victim")
        agent.runtime.hang(Verb.STOP_CONTAINER)
        began = asyncio.get_running_loop().time()
        server.put("pods", api_pod("critical", requests={"cpu": "2"}, priority=CRITICAL))
        await agent.until_ready("critical")
        assert asyncio.get_running_loop().time() - began == pytest.approx(15, abs=1)
        assert "ExceededGracePeriod" in agent.events.reasons()
