"""Two thousand pods come and go: afterwards the agent holds what it held before."""

from __future__ import annotations

import asyncio
import gc
import os
from collections import Counter
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from glasslet.api.pod import Pod
from glasslet.api.volume import EmptyDirVolumeSource, Volume
from glasslet.record.store import RecordBounds
from tests.builders.pod import container, pod, post_start
from tests.component.probed_agent import http
from tests.component.whole_agent import WholeAgent
from tests.fakes.programs import Pull, exits

pytestmark = [pytest.mark.looptime, pytest.mark.timeout(1200)]
AT_ONCE = 50
WARM_UP, PODS = 300, 2000
NOISE = 0.02
"""Share by which the number of objects may differ: caches fill to their bounds at their own pace."""


def held(agent: WholeAgent) -> Counter[str]:
    """Objects that can be reached from the agent, by type: also those that no garbage collection looks at."""
    seen: set[int] = set()
    counts: Counter[str] = Counter()
    waiting: list[Any] = [agent]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | ModuleType):
            continue
        seen.add(id(one))
        counts[f"{type(one).__module__}.{type(one).__qualname__}"] += 1
        waiting.extend(one.__closure__ or () if callable(getattr(one, "__code__", None)) else gc.get_referents(one))
    return counts


def pods(numbers: range) -> list[Pod]:
    """A mixed lot: probed and with a volume, one with a hook, one that fails all the time, one without its image."""
    made = []
    for number in numbers:
        kind = number % 10
        main = container("main", readiness_probe=http(), lifecycle=post_start("true") if kind == 1 else None)
        if kind == 2:
            main = container("failing")
        elif kind == 3:
            main = container("main", image="registry.example/none")
        made.append(
            pod(
                main,
                container("second"),
                uid=f"uid-{number}",
                name=f"web-{number}",
                volumes=(Volume(name="data", empty_dir=EmptyDirVolumeSource()),),
            )
        )
    return made


async def test_two_thousand_pods_leave_nothing_behind(tmp_path: Path) -> None:
    agent = WholeAgent(tmp_path, limits=RecordBounds(total=1500))
    agent.runtime.program("failing", exits(1, after=2.0))
    agent.runtime.pulls["registry.example/none"] = Pull(error="no such image", reason="ErrImagePull")
    running = asyncio.create_task(agent.run())
    await agent.observed.synced.wait()
    numbers = count(step=AT_ONCE)

    async def come_and_go(total: int) -> dict[str, Any]:
        for _ in range(total // AT_ONCE):
            first = next(numbers)
            agent.want(*pods(range(first, first + AT_ONCE)))
            await asyncio.sleep(25)
            assert agent.running() == AT_ONCE
            agent.want()
            await agent.until_nothing_is_left()
            agent.record.take_unwritten()
        await asyncio.sleep(900)
        agent.forget_what_fakes_noted()
        gc.collect()
        return {
            "tasks": len(asyncio.all_tasks()),
            "files": len(os.listdir("/proc/self/fd")),
            "objects": len(gc.get_objects()),
            "on disk": sum(len(found) + len(folders) for _, folders, found in os.walk(tmp_path)),
            "held": held(agent),
        }

    # Caches and the record are filled to their bounds first.
    before = await come_and_go(WARM_UP)
    after = await come_and_go(PODS)

    grown = {
        name: (before["held"][name], number)
        for name, number in after["held"].items()
        if number > before["held"][name] * (1 + NOISE) + 20
    }
    assert grown == {}
    assert after["objects"] < before["objects"] * (1 + NOISE)
    for what in ("tasks", "files", "on disk"):
        assert after[what] <= before[what], what
    running.cancel()
