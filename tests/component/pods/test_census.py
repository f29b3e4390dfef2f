"""The census knows which pods are active, and admission counts on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_update import UpdateKind
from glasslet.exchange.admission import Admitted, Rejected
from glasslet.pods.census import PodCensus
from glasslet.pods.collaborators import Admit
from glasslet.pods.status.status_keeper import StatusServices
from glasslet.pods.workers import PodWorkers
from glasslet.status.builder import status_builder
from tests.builders.pod import UID, container, deleted, pod, update
from tests.component.pod_agent import Agent, Node, running_agent
from tests.fakes.background import in_background
from tests.fakes.programs import Program

pytestmark = pytest.mark.looptime


def uids(pods: Sequence[Pod]) -> list[str]:
    return [one.metadata.uid for one in pods]


class AdmittingAgent(Agent):
    """One run of the agent with this admission."""

    def __init__(self, admit: Admit) -> None:
        super().__init__(Node())
        self.census = PodCensus()
        self.workers = PodWorkers(
            services=self.services,
            status=StatusServices(
                build=status_builder("fake"),
                publish=self.statuses.publish,
                probes=self._probes,
                host_ips=tuple,
                finished=self.statuses.finish,
            ),
            report=self.report,
            settings=self.settings,
            census=self.census,
            admit=admit,
        )


async def test_a_pod_is_active_until_its_containers_have_ended() -> None:
    node = Node()
    node.runtime.program("main", Program(term_takes=5))
    async with running_agent(node) as agent:
        agent.add(pod())
        await agent.until_running("main")
        assert uids(agent.census.active()) == uids(agent.census.syncing()) == [UID]
        agent.delete(deleted(pod(), grace=20))
        await asyncio.sleep(1)
        assert (uids(agent.census.active()), agent.census.syncing()) == ([UID], [])
        await agent.until_finished()
        assert agent.census.active() == []
        assert uids([view.pod for view in agent.census.snapshot()]) == [UID]


async def test_a_pod_that_ended_by_itself_is_not_active() -> None:
    node = Node()
    node.runtime.program("main", Program(exit_after=1))
    async with running_agent(node) as agent:
        agent.add(pod(container(), restart_policy="Never"))
        await agent.until_finished()
        assert agent.census.active() == []


async def test_each_pod_is_admitted_beside_those_admitted_before_it() -> None:
    beside: list[list[str]] = []

    def admit(one: Pod, others: Sequence[Pod]) -> Admitted | Rejected:
        beside.append(uids(others))
        return Rejected(reason="No", message="no") if one.metadata.uid == "b" else Admitted()

    agent = AdmittingAgent(admit)
    async with in_background(agent.run):
        for uid in ("a", "b", "c"):
            agent.add(pod(uid=uid, name=uid))
        assert uids(agent.census.present_beside(PodUID("c"))) == ["a", "b"]
        await agent.until_running("main", uid="c")
        assert beside == [[], ["a"], ["a"]]
        assert uids(agent.census.admitted_beside(PodUID("c"))) == ["a"]


async def test_an_exception_in_admission_hurts_its_pod_alone() -> None:
    def admit(one: Pod, _others: Sequence[Pod]) -> Admitted | Rejected:
        if one.metadata.uid == "bad":
            raise OverflowError
        return Admitted()

    agent = AdmittingAgent(admit)
    async with in_background(agent.run):
        bad = pod(uid="bad", name="bad")
        for one in (bad, pod(uid="good", name="good")):
            agent.add(one)
        await agent.until_running("main", uid="good")
        await asyncio.sleep(60)
        assert not agent.runtime.running("bad")
        agent.workers.update(update(bad, UpdateKind.REMOVE))
        await agent.until_gone("bad")
