"""Agent and runtime die under load, again and again: containers never notice, and nothing is left of what went."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import pytest

from tests.fakes.agent import Agent, agent_on, busybox_pod
from tests.fakes.containerd import PrivateContainerd
from tests.faults.table import LONG, Row, sized
from tests.faults.world import Started, healthz, in_runtime, ready, restarts, running_twice, started

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(3600 if LONG else 600)]

STEADY = tuple(f"steady-{number}" for number in range(sized(2, 10)))


def left_behind(agent: Agent, kept: set[str]) -> list[str]:
    """Folders, log folders and mounts of pods other than those with these UIDs."""
    folders = [f"pods/{name}" for name in listed(agent.root / "pods") if name not in kept]
    logs = [f"logs/{name}" for name in listed(agent.logs) if name.rpartition("_")[2] not in kept]
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    prefix = f"{agent.root}/pods/"
    stray = [path for path in mounts if path.startswith(prefix) and path[len(prefix) :].split("/")[0] not in kept]
    return folders + logs + stray


def listed(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.exists() else []


def with_volume(name: str) -> dict[str, object]:
    """A pod with a volume of its own, in memory: there is something to mount."""
    made = busybox_pod(name, volumes=[{"name": "data", "emptyDir": {"medium": "Memory"}}])
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return made


async def test_an_agent_killed_at_random_under_churn_duplicates_and_leaves_nothing(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    kills, pods = sized(8, 100), sized(16, 200)
    row.did(f"{kills} kills at random moments while {pods} pods come and go")
    chance = random.Random(4)
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready()
        for name in STEADY:
            agent.put(with_volume(name))
        await agent.wait_for(ready(*STEADY))
        before = await started(containerd, *STEADY)
        there: list[str] = []
        # Those that were running once and stay must never be restarted either.
        known: Started = {}
        for number in range(kills):
            for one in range(number * pods // kills, (number + 1) * pods // kills):
                there.append(f"come-{one}")
                agent.put(with_volume(there[-1]))
            while len(there) > 6:
                going = there.pop(chance.randrange(len(there)))
                known.pop(f"{going}/main", None)
                agent.remove(going)
            await asyncio.sleep(chance.uniform(0.05, 1.5))
            agent.kill()
            now = await in_runtime(containerd)
            running = {
                f"{name}/{c.name}": (c.id, c.started_at)
                for name, pod in now.items()
                for c in pod.containers
                if c.phase == "running"
            }
            assert {name: running.get(name) for name in known} == known
            known |= {name: found for name, found in running.items() if name.partition("/")[0] in there}
            assert await running_twice(containerd) == []
            agent.start()
        row.holds("nothing ran twice at any kill", "no container of a pod that stays was restarted")
        rows = await agent.wait_for(
            lambda rows: set(rows) == {*STEADY, *there} and ready(*STEADY, *there)(rows), seconds=240
        )
        assert restarts(rows, *STEADY) == {}
        assert await started(containerd, *STEADY) == before
        began = time.monotonic()
        kept = {row["uid"] for row in rows.values()}
        async with asyncio.timeout(200):
            while left_behind(agent, kept) or set(await in_runtime(containerd)) != {*STEADY, *there}:
                await asyncio.sleep(0.5)
        row.figure("clean after s", time.monotonic() - began)
        row.figure("RSS MB", agent.rss_megabytes())
        assert healthz(agent) == 200
        row.holds("no sandbox, mount, folder or log folder of a removed pod is left")


async def test_a_runtime_killed_under_load_restarts_no_container(
    containerd: PrivateContainerd, tmp_path: Path, row: Row
) -> None:
    kills = sized(2, 20)
    row.did(f"containerd killed and restarted {kills} times while pods are started")
    with agent_on(containerd, tmp_path) as agent:
        await agent.wait_until_ready()
        for name in STEADY:
            agent.put(busybox_pod(name))
        await agent.wait_for(ready(*STEADY))
        before = await started(containerd, *STEADY)
        coming: list[str] = []
        for number in range(kills):
            for one in range(3):
                coming.append(f"come-{number}-{one}")
                agent.put(busybox_pod(coming[-1]))
            await asyncio.sleep(0.3)
            containerd.kill()
            agent.put(busybox_pod(f"while-away-{number}"))
            coming.append(f"while-away-{number}")
            await until_it_says_that_the_runtime_is_away(agent)
            assert healthz(agent) == 200
            await asyncio.to_thread(containerd.start)
        row.holds("why node says that the runtime is away", "healthz ok meanwhile")
        began = time.monotonic()
        rows = await agent.wait_for(ready(*STEADY, *coming), seconds=200)
        row.figure("all ready after s", time.monotonic() - began)
        assert restarts(rows, *STEADY) == {}
        assert await started(containerd, *STEADY) == before
        assert await running_twice(containerd) == []
        row.holds("no container restarted", "pods of meanwhile come up, each once")


async def until_it_says_that_the_runtime_is_away(agent: Agent) -> None:
    verdict: dict[str, object] = {}
    try:
        async with asyncio.timeout(120):
            while "runtime" not in str(verdict.get("rule", "")):
                verdict = await agent.ask("/glass/v1/node/why")
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"why node says {verdict}") from None
