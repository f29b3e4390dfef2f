"""The cost of a trace of one pod's calls for the starts of other pods, and of the tree of the agent's start.

    python -m benchmarks.traced_calls [PAIRS]

Needs root and containerd. Starts alternate: one while another pod is traced, one without a trace.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
from tests.fakes.agent import NODE, Agent, agent_on, busybox_pod
from tests.fakes.containerd import PrivateContainerd, import_test_images

from benchmarks.comparison import median_range
from glasslet.calls.start import StartWatch

TRACED = "traced"
_PROBE = {"exec": {"command": ["true"]}, "periodSeconds": 1}


async def trace(agent: Agent, *, on: bool) -> None:
    """Begins or ends the trace of the pod that probes itself every second."""
    connector = aiohttp.UnixConnector(path=str(agent.root / "glasslet.sock"))
    path = f"http://glass/glass/v1/pods/default/{TRACED}-{NODE}/calls"
    async with aiohttp.ClientSession(connector=connector) as session:
        answer = await (session.post(path, json={"seconds": 60}) if on else session.delete(path))
        answer.raise_for_status()


async def start(agent: Agent, name: str) -> tuple[float, float]:
    """Milliseconds from seen to Ready, by the record; CPU milliseconds of the agent meanwhile."""
    cpu = agent.cpu_seconds()
    agent.put(busybox_pod(name))
    await agent.wait_for(lambda rows: bool(rows.get(name, {}).get("isReady")), every=0.2)
    answer = await agent.ask(f"/glass/v1/pods/default/{name}-{NODE}/trace")
    used = agent.cpu_seconds() - cpu
    agent.remove(name)
    await agent.wait_for(lambda rows: name not in rows, every=0.2)
    return float(answer["totalMs"]), used * 1000


async def measure(agent: Agent, pairs: int) -> None:
    """Prints medians."""
    await agent.wait_until_ready()
    manifest: dict[str, Any] = busybox_pod(TRACED)
    manifest["spec"]["containers"][0]["livenessProbe"] = _PROBE
    agent.put(manifest)
    await agent.wait_for(lambda rows: bool(rows.get(TRACED, {}).get("isReady")))
    await start(agent, "first")
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for pair in range(pairs):
        for traced in (True, False) if pair % 2 else (False, True):
            if traced:
                await trace(agent, on=True)
            found[traced].append(await start(agent, f"other-{pair}-{int(traced)}"))
            if traced:
                await trace(agent, on=False)
    for at, what in enumerate(("start of a pod", "the agent's CPU for it")):
        without, beside = (statistics.median(one[at] for one in found[traced]) for traced in (False, True))
        ratios = [b[at] / a[at] for a, b in zip(found[False], found[True], strict=True)]
        low, high = median_range(ratios)
        print(
            f"{what}: {without:.1f} ms; while another is traced: {beside:.1f} ms; {pairs} pairs, median ratio ", end=""
        )
        print(f"{statistics.median(ratios):.3f} (95 %: {low:.3f} to {high:.3f})")


def cost_of_the_start_tree(calls: int = 127) -> float:
    """CPU milliseconds of noting this many calls."""
    watch = StartWatch()
    noted, bare = watch.wrapped(_nothing), _nothing
    began = time.thread_time()
    for _ in range(calls):
        noted()
    with_it = time.thread_time() - began
    began = time.thread_time()
    for _ in range(calls):
        bare()
    return (with_it - (time.thread_time() - began)) * 1000


def _nothing() -> None:
    """A part of a start."""


def main() -> None:
    """Runs all."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    print(f"tree of the agent's start: {cost_of_the_start_tree():.2f} ms of CPU for 127 calls")
    with tempfile.TemporaryDirectory(prefix="gl-calls-", dir="/tmp") as folder:
        runtime = PrivateContainerd(Path(folder) / "c")
        runtime.start()
        try:
            import_test_images(runtime)
            with agent_on(runtime, Path(folder) / "a") as agent:
                asyncio.run(measure(agent, pairs))
        finally:
            runtime.stop()


if __name__ == "__main__":
    main()
