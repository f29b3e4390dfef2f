"""The agent's share of a pod's start: raw CRI calls against the agent, same machine and images, in turn.

    python -m benchmarks.pod_start [--rounds 10] [--burst 110] [--burst-rounds 3]

Raw: RunPodSandbox, CreateContainer, StartContainer of that pod, as fast as one program can send them. Agent: from the
moment a manifest appears in its folder to its record saying that the container runs. A burst is all pods at once, to
the last of them.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.fakes.agent import NODE, Agent, busybox_pod
from tests.fakes.containerd import BUSYBOX, PrivateContainerd, Silent, import_test_images
from tests.fakes.waits import WaitLog

from benchmarks.machine import machine
from glasslet.api.object import SandboxID
from glasslet.runtime.cri.connection import CRIConnection, connect
from glasslet.runtime.spec import ContainerSpec, SandboxSpec

COMMAND = "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"


@dataclass
class Figures:
    """Milliseconds of each round; CPU in seconds of the agent for the bursts, memory in MB."""

    raw_single: list[float] = field(default_factory=list)
    agent_single: list[float] = field(default_factory=list)
    raw_burst: list[float] = field(default_factory=list)
    agent_burst: list[float] = field(default_factory=list)
    burst_cpu: list[float] = field(default_factory=list)
    rss_idle: float = 0.0
    rss_burst: float = 0.0


async def raw_pod(connection: CRIConnection, name: str, logs: Path) -> SandboxID:
    """Starts one pod by raw calls, without labels: the agent must not take it for an orphan."""
    folder = logs / name
    (folder / "main").mkdir(parents=True)
    pod = SandboxSpec(name=name, namespace="raw", uid=name, hostname=name, log_directory=str(folder))
    container = ContainerSpec(
        name="main",
        image=BUSYBOX,
        command=("sh", "-c", COMMAND),
        log_path="main/0.log",
    )
    sandbox = await connection.runtime.run_sandbox(pod)
    made = await connection.runtime.create_container(sandbox, container, pod)
    await connection.runtime.start_container(made)
    return sandbox


async def remove_raw(connection: CRIConnection, sandboxes: Sequence[SandboxID]) -> None:
    """Removes what `raw_pod` made."""
    for sandbox in sandboxes:
        await connection.runtime.stop_sandbox(sandbox)
        await connection.runtime.remove_sandbox(sandbox)


async def agent_burst(agent: Agent, names: Sequence[str]) -> float:
    """Milliseconds from the first manifest to the last container that runs."""
    placed = min(agent.put(busybox_pod(name, COMMAND)) for name in names)
    await agent.wait_for(lambda rows: all(rows.get(n, {}).get("phase") == "Running" for n in names), 180, _pause(names))
    ends = [await _running_since(agent, name) for name in names]
    return (max(ends) - placed) * 1000


def _pause(names: Sequence[str]) -> float:
    """Seconds between polls: each poll costs the agent CPU for every pod, and counts as its own."""
    return 0.05 if len(names) == 1 else 1.0


async def _running_since(agent: Agent, name: str) -> float:
    """Wall time at which the agent saw the container run."""
    trace = await agent.ask(f"/glass/v1/pods/default/{name}-{NODE}/trace")
    return datetime.fromisoformat(trace["start"]).timestamp() + float(trace["totalMs"]) / 1000


async def remove(agent: Agent, names: Sequence[str]) -> None:
    """Removes the manifests and waits until the pods are gone."""
    for name in names:
        agent.remove(name)
    await agent.wait_for(lambda rows: not rows, 180, _pause(names))


async def measure(runtime: PrivateContainerd, agent: Agent, rounds: int, burst: int, burst_rounds: int) -> Figures:
    """Measures all rounds, raw calls and agent in turn."""
    figures = Figures()
    connection = await connect(runtime.endpoint, recorder=WaitLog(), metrics=Silent())
    logs = agent.folder / "raw-logs"
    await agent.wait_until_ready()
    await remove_raw(connection, [await raw_pod(connection, "warm", logs)])
    await agent_burst(agent, ["warm"])
    await remove(agent, ["warm"])
    figures.rss_idle = agent.rss_megabytes()
    for number in range(rounds):
        began = time.perf_counter()
        sandbox = await raw_pod(connection, f"raw-{number}", logs)
        figures.raw_single.append((time.perf_counter() - began) * 1000)
        figures.agent_single.append(await agent_burst(agent, [f"one-{number}"]))
        await remove(agent, [f"one-{number}"])
        await remove_raw(connection, [sandbox])
    for number in range(burst_rounds):
        began = time.perf_counter()
        sandboxes = await asyncio.gather(*(raw_pod(connection, f"burst-{number}-{i}", logs) for i in range(burst)))
        figures.raw_burst.append((time.perf_counter() - began) * 1000)
        await remove_raw(connection, sandboxes)
        names = [f"burst-{number}-{i}" for i in range(burst)]
        cpu = agent.cpu_seconds()
        figures.agent_burst.append(await agent_burst(agent, names))
        figures.burst_cpu.append(agent.cpu_seconds() - cpu)
        figures.rss_burst = agent.rss_megabytes()
        await remove(agent, names)
    await connection.close()
    return figures


def table(figures: Figures, burst: int) -> str:
    """The figures as a Markdown table, ratios and differences last."""
    raw, ours = statistics.median(figures.raw_single), statistics.median(figures.agent_single)
    rows = [
        ("what", "raw CRI", "glasslet", "difference", "ratio"),
        ("---",) * 5,
        ("one pod, median", f"{raw:.0f} ms", f"{ours:.0f} ms", f"{ours - raw:+.0f} ms", f"{ours / raw:.2f}"),
        ("one pod, min..max", _range(figures.raw_single), _range(figures.agent_single), "", ""),
    ]
    if figures.raw_burst:
        raw, ours = statistics.median(figures.raw_burst), statistics.median(figures.agent_burst)
        per_pod = statistics.median(figures.burst_cpu) / burst * 1000
        rows += [
            (f"{burst} pods, median", f"{raw / 1000:.2f} s", f"{ours / 1000:.2f} s", "", f"{ours / raw:.2f}"),
            (f"{burst} pods, min..max", _range(figures.raw_burst), _range(figures.agent_burst), "", ""),
            ("agent's CPU a pod in a burst", "", f"{per_pod:.1f} ms", "", ""),
            (
                f"agent's memory, idle / {burst} pods",
                "",
                f"{figures.rss_idle:.0f} / {figures.rss_burst:.0f} MB",
                "",
                "",
            ),
        ]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.0f}..{max(values):.0f} ms"


def main() -> None:
    """Runs the benchmark and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--burst", type=int, default=110)
    parser.add_argument("--burst-rounds", type=int, default=3)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="glb-"))
    runtime = PrivateContainerd(folder / "ctd")
    agent = Agent(folder / "agent", runtime, maxPods=500)
    try:
        runtime.start()
        import_test_images(runtime)
        agent.start()
        figures = asyncio.run(measure(runtime, agent, asked.rounds, asked.burst, asked.burst_rounds))
        print(f"{datetime.now(UTC).date()}: {machine()}\n\n{table(figures, asked.burst)}")
    finally:
        agent.kill()
        runtime.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
