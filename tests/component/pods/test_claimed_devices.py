"""Pods with resource claims: prepared before their sandbox, given back at their end."""

from __future__ import annotations

import asyncio
from typing import Any

from glasslet.api.container import Container, ResourceClaim, ResourceRequirements
from glasslet.api.pod import Pod, PodResourceClaim
from glasslet.api.pod_ref import PodRef
from glasslet.exchange.claims import DeviceClaimProblem
from tests.builders.pod import UID, container, pod
from tests.component.pod_agent import Agent, Node, running_agent

CLAIM = PodResourceClaim(name="gpu", resource_claim_name="gpu-1")


class ScriptedClaims:
    """Claims as a test wants them. `problem`: raised by `prepare`; `stuck`: by `unprepare`; `go_on` lets hung ones
    go."""

    def __init__(self) -> None:
        self.problem: DeviceClaimProblem | None = None
        self.stuck: DeviceClaimProblem | None = None
        self.hangs = ""
        self.go_on = asyncio.Event()
        self.tries = 0
        self.prepared: set[str] = set()

    async def prepare(self, it: Pod) -> None:
        self.tries += 1
        if self.hangs == it.metadata.uid:
            await self.go_on.wait()
        if self.problem is not None and it.spec.resource_claims:
            raise self.problem
        self.prepared.add(it.metadata.uid)

    def used_by(self, it: PodRef) -> bool:
        return it.uid in self.prepared

    async def unprepare(self, it: PodRef) -> None:
        if self.stuck is not None:
            raise self.stuck
        self.prepared.discard(it.uid)

    def cdi_ids(self, it: Pod, one: Container) -> tuple[str, ...]:
        return ("gpu.example/gpu=0",) if one.resources is not None and one.resources.claims else ()


def claimed(**fields: Any) -> Pod:
    main = container("main", resources=ResourceRequirements(claims=(ResourceClaim(name="gpu"),)))
    return pod(main, container("beside"), resource_claims=(CLAIM,), **fields)


def node(claims: ScriptedClaims) -> Node:
    return Node(claims=claims)


def devices(agent: Agent, name: str) -> tuple[str, ...]:
    return agent.runtime.container(name).spec.cdi_devices


async def test_a_pod_gets_the_devices_of_its_claims() -> None:
    claims = ScriptedClaims()
    async with running_agent(node(claims)) as agent:
        agent.add(claimed())
        await agent.until_running("main")
        await agent.until_running("beside")
        assert devices(agent, "main") == ("gpu.example/gpu=0",)
        assert devices(agent, "beside") == ()


async def test_a_pod_whose_claims_are_not_prepared_waits_without_a_sandbox_and_says_why() -> None:
    claims = ScriptedClaims()
    claims.problem = DeviceClaimProblem("prepare dynamic resources: fetch ResourceClaim c: gone", driver="gpu.example")
    async with running_agent(node(claims)) as agent:
        agent.add(claimed())
        await agent.until(lambda: claims.tries > 2)
        assert agent.runtime.sandboxes == {}
        [told, *_] = agent.events.of("FailedPrepareDynamicResources")
        assert told.message == f"Failed to prepare dynamic resources: {claims.problem}"
        waits = [wait.on for wait in agent.record.live_waits()]
        assert any("DRA driver gpu.example: prepare dynamic resources: fetch ResourceClaim" in on for on in waits)
        claims.problem = None
        await agent.until_running("main")


async def test_a_driver_that_comes_ends_the_pause_of_pods_that_wait_for_it() -> None:
    claims = ScriptedClaims()
    claims.problem = DeviceClaimProblem("prepare dynamic resources: DRA driver gpu.example is not registered")
    async with running_agent(node(claims)) as agent:
        agent.add(claimed())
        await agent.until(lambda: claims.tries >= 6)
        claims.problem = None
        at = agent.clock.monotonic()
        agent.wakes.wake_claimants()
        await agent.until_running("main")
        assert agent.clock.monotonic() - at < 5


async def test_a_claim_that_hangs_holds_up_its_own_pod_alone_and_a_deletion_ends_it() -> None:
    claims = ScriptedClaims()
    claims.hangs = UID
    async with running_agent(node(claims)) as agent:
        agent.add(claimed())
        await agent.until(lambda: claims.tries)
        agent.add(pod(uid="other", name="web-2"))
        await agent.until_running("main", uid="other")
        it = claimed()
        agent.delete(it)
        agent.remove(it)
        await agent.until_gone()


async def test_the_end_of_a_pod_is_not_reported_before_its_claims_are_given_back() -> None:
    claims = ScriptedClaims()
    async with running_agent(node(claims)) as agent:
        agent.add(claimed(restart_policy="Never"))
        await agent.until_running("main")
        await agent.until_running("beside")
        claims.stuck = DeviceClaimProblem("unprepare dynamic resources: busy", driver="gpu.example")
        for name in ("main", "beside"):
            agent.runtime.kill(agent.runtime.container(name).id, code=0)
        await agent.until(lambda: "busy" in str([wait.on for wait in agent.record.live_waits()]))
        assert agent.status().phase == "Running"
        claims.stuck = None
        await agent.until(lambda: agent.status().phase == "Succeeded")
        assert not claims.prepared
