"""A full node, and an unmount that hangs, in virtual time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from glasslet.api.pod import Pod
from glasslet.api.volume import EmptyDirVolumeSource, Volume
from glasslet.runtime.cri.verbs import Verb
from tests.builders.pod import container, pod
from tests.component.whole_agent import WholeAgent
from tests.fakes.background import in_background
from tests.faults.table import Row

pytestmark = [pytest.mark.looptime, pytest.mark.timeout(300)]


@asynccontextmanager
async def whole_agent(folder: Path) -> AsyncIterator[WholeAgent]:
    agent = WholeAgent(folder)
    async with in_background(agent.run):
        await agent.observed.synced.wait()
        yield agent


def made(number: int) -> Pod:
    """A pod with a volume in memory, which has to be unmounted."""
    volume = Volume(name="data", empty_dir=EmptyDirVolumeSource(medium="Memory"))
    return pod(container("main"), uid=f"uid-{number}", name=f"pod-{number}", volumes=(volume,))


async def test_a_node_with_250_pods_at_rest_asks_for_lists_only(tmp_path: Path, row: Row) -> None:
    row.did("250 pods at rest for an hour")
    async with whole_agent(tmp_path) as agent:
        agent.want(*(made(number) for number in range(250)))
        await asyncio.sleep(120)
        assert agent.running() == 250
        containers = set(agent.runtime.containers)
        agent.forget_what_fakes_noted()
        began = time.process_time()
        await asyncio.sleep(3600)
        used = time.process_time() - began
        asked = {call.verb for call in agent.runtime.calls}
        lists = sum(call.verb is Verb.LIST_CONTAINERS for call in agent.runtime.calls)
        assert asked <= {Verb.LIST_CONTAINERS, Verb.LIST_POD_SANDBOX, Verb.STATUS}
        assert lists <= 61
        assert set(agent.runtime.containers) == containers
        row.figure("full lists", lists)
        row.figure("CPU s of that hour, the fakes' included", used)
    row.holds("no read of a pod", "one list a minute at most")


async def test_an_unmount_that_hangs_holds_its_pod_only(tmp_path: Path, row: Row) -> None:
    row.did("the unmounts of one pod hang while it and others are removed and more come")
    async with whole_agent(tmp_path) as agent:
        agent.want(*(made(number) for number in range(10)))
        await asyncio.sleep(60)
        assert agent.running() == 10
        stays = {c.id for c in agent.runtime.containers.values() if c.uid in ("uid-8", "uid-9")}
        agent.threads.stuck = {"uid-0", "pod-0"}
        agent.want(*(made(number) for number in (*range(5, 10), *range(20, 25))))
        await asyncio.sleep(180)
        left = {str(view.pod.metadata.uid) for view in agent.census.snapshot()}
        assert left == {f"uid-{number}" for number in (0, *range(5, 10), *range(20, 25))}
        assert agent.running() >= 10
        assert not [c for c in agent.runtime.containers.values() if c.uid == "uid-0" and c.running]
        row.holds("its containers are stopped", "others are removed and started")
        agent.threads.stuck = set()
        await asyncio.sleep(600)
        assert "uid-0" not in {view.pod.metadata.uid for view in agent.census.snapshot()}
        assert stays <= set(agent.runtime.containers)
        row.holds("it goes when the kernel lets go", "no restart")
