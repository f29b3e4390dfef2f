"""The runtime hangs, fails, answers late or wrong: it costs the pods that were asked about, while it lasts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.fakes.agent import NODE, Agent, agent_on, busybox_pod, free_port
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.cri_proxy import CRIProxy, Fault, Spoil, empty, fail_with, garbage, hang, late, lost
from tests.faults.table import LONG, Row, sized
from tests.faults.world import gone, health_of, healthz, ready, restarts, running_twice, started
from tests.skips import on_purpose

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(1800 if LONG else 600)]

STEADY = tuple(f"steady-{number}" for number in range(sized(2, 10)))
ALWAYS = ("CreateContainer", "ContainerStatus")
SOME = ("RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemovePodSandbox", "ContainerStatus")
CODES = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.FAILED_PRECONDITION,
)


@asynccontextmanager
async def proxied(
    containerd: PrivateContainerd, folder: Path, **settings: Any
) -> AsyncIterator[tuple[Agent, CRIProxy]]:
    """An agent behind a proxy, with its steady pods."""
    async with CRIProxy(containerd.socket).serving(folder / "cri.sock") as proxy:
        with agent_on(containerd, folder / "a", containerRuntimeEndpoint=proxy.endpoint, **settings) as agent:
            await agent.wait_until_ready()
            for name in STEADY:
                agent.put(busybox_pod(name))
            await agent.wait_for(ready(*STEADY))
            yield agent, proxy


async def waits_of(agent: Agent, name: str) -> Iterator[str]:
    """What the pod waits for now."""
    found = (await agent.ask("/glass/v1/waits"))["waits"]
    return (wait["on"] for wait in found if f"{name}-{NODE}" in str(wait.get("pod", "")))


@pytest.mark.parametrize("verb", [*ALWAYS, *(("RunPodSandbox", "StartContainer") if LONG else ())])
async def test_a_call_that_hangs_holds_its_pod_only(
    containerd: PrivateContainerd, tmp_path: Path, row: Row, verb: str
) -> None:
    # Longer than it may take until the call ends: the agent is not to give it up meanwhile.
    async with proxied(containerd, tmp_path, runtimeRequestTimeout="15m") as (agent, proxy):
        before = await started(containerd, *STEADY)
        row.did(f"{verb} of one pod hangs")
        if verb in ("StartContainer", "ContainerStatus"):
            # Such a request names the container only: the next one about another is taken, and it is the stuck pod's.
            others_than = frozenset(container.encode() for container, _ in before.values())
            proxy.add(Fault(once(hang), verb=verb, others_than=others_than))
        else:
            proxy.add(Fault(hang, verb=verb, about=f"stuck-{NODE}".encode()))
        agent.put(busybox_pod("stuck"))
        await until_spoiled(proxy, verb)
        began = time.monotonic()
        others = [f"other-{number}" for number in range(sized(3, 20))]
        for name in others:
            agent.put(busybox_pod(name))
        rows = await agent.wait_for(ready(*others))
        row.figure("others ready after s", time.monotonic() - began)
        assert rows["stuck"]["ready"] == 0
        assert healthz(agent) == 200
        assert verb in await waits_of(agent, "stuck")
        row.holds("others start", "healthz ok", "the wait has the call's name")
        proxy.heal()
        rows = await agent.wait_for(ready("stuck", *STEADY, *others))
        assert restarts(rows, *rows) == {}
        assert await started(containerd, *STEADY) == before
        row.holds("it starts when the call ends", "no restart")


def once(spoil: Spoil) -> Spoil:
    """For the first call only."""
    hit = False

    async def first(call: object) -> bytes:
        nonlocal hit
        if hit:
            return await call.forward()  # type: ignore[attr-defined,no-any-return]
        hit = True
        return await spoil(call)  # type: ignore[arg-type]

    return first


async def until_spoiled(proxy: CRIProxy, verb: str) -> None:
    async with asyncio.timeout(120):
        while not proxy.spoiled[verb]:
            await asyncio.sleep(0.02)


ANY: frozenset[str] = frozenset()
WAYS = {
    "fail": ("fail", fail_with(*CODES), ANY),
    "lost": ("are done, but the answer is lost", lost, ANY),
    "noise": ("are answered with noise", garbage, ANY),
    "late": ("are answered late", late(1.5), ANY),
    "nothing": ("are answered with nothing", empty, frozenset(SOME)),
}


@pytest.mark.parametrize(("kind", "spoil", "verbs"), list(WAYS.values())[: sized(3, 5)], ids=list(WAYS)[: sized(3, 5)])
async def test_calls_of_all_kinds_that_are_spoiled_delay_only(
    containerd: PrivateContainerd, tmp_path: Path, row: Row, kind: str, spoil: Spoil, verbs: frozenset[str]
) -> None:
    """Pods come and go meanwhile. `nothing` leaves lists alone: an empty list is a true answer of an empty runtime."""
    async with proxied(containerd, tmp_path) as (agent, proxy):
        before = await started(containerd, *STEADY)
        row.did(f"30 % of the calls {kind}, streams cut, pods come and go")
        leaving = [f"leaving-{number}" for number in range(sized(2, 15))]
        coming = [f"coming-{number}" for number in range(sized(3, 20))]
        for name in leaving:
            agent.put(busybox_pod(name))
        await agent.wait_for(ready(*leaving))
        proxy.add(Fault(spoil, share=0.3, verbs=verbs))
        for name in leaving:
            agent.remove(name)
        for name in coming:
            agent.put(busybox_pod(name))
            proxy.cut_streams()
            await asyncio.sleep(0.5)
        for _ in range(sized(4, 60)):
            proxy.cut_streams()
            await asyncio.sleep(1)
        assert await running_twice(containerd) == []
        assert healthz(agent) == 200
        row.holds("nothing runs twice meanwhile", "healthz ok")
        proxy.heal()
        began = time.monotonic()
        rows = await agent.wait_for(lambda rows: ready(*coming, *STEADY)(rows) and gone(*leaving)(rows), seconds=300)
        row.figure("calls spoiled", proxy.spoiled.total())
        row.figure("right after s", time.monotonic() - began)
        assert restarts(rows, *STEADY) == {}
        assert await started(containerd, *STEADY) == before
        assert await running_twice(containerd) == []
        assert "Traceback" not in agent.log.read_text(errors="replace")
        row.holds("steady pods never restarted", "all as wanted afterwards", "no traceback in the log")


@pytest.mark.skipif(
    not LONG, reason=on_purpose("takes four minutes; in virtual time: tests/component/node/test_health_checks.py")
)
async def test_healthz_fails_when_lists_hang_for_three_minutes_and_recovers(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    # The health port knows the agent alone; the servers' /healthz has the checks of what it depends on, too.
    port = free_port()
    async with proxied(containerd, tmp_path, readOnlyPort=port) as (agent, proxy):

        def health() -> int:
            return health_of(agent, port=port)[0]

        before = await started(containerd, *STEADY)
        row.did("ListPodSandbox and ListContainers hang")
        proxy.add(Fault(hang, verbs=frozenset({"ListPodSandbox", "ListContainers"})))
        await asyncio.sleep(150)
        assert health() == 200
        async with asyncio.timeout(240):
            while health() == 200:
                await asyncio.sleep(1)
        assert "[-]pleg failed" in health_of(agent, "/healthz?verbose", port=port)[1]
        assert healthz(agent) == 200
        row.holds("/healthz ok for 150 s, then pleg fails", "the health port goes on")
        proxy.heal()
        async with asyncio.timeout(60):
            while health() != 200:
                await asyncio.sleep(1)
        assert await started(containerd, *STEADY) == before
        row.holds("ok again", "no restart")
