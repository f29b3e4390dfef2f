"""What a change costs: this build beside another one, by CPU time and memory of the agent.

    git worktree add /tmp/before COMMIT
    python -m benchmarks.two_builds /tmp/before [--rounds 30] [--burst 100]

Both agents run on a runtime that only keeps books (`tests/fakes/paper_runtime.py`), in turn, in changing order; the
figures are ratios within a round, the median of all rounds with the range that holds the true median in 95 of 100
cases. Needs root. BEFORE is a checkout of the other build.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.agent import Agent, busybox_pod
from tests.fakes.containerd import unmount_below

from benchmarks.comparison import median_range
from benchmarks.machine import cpu_seconds, rss_megabytes

ROWS = {
    "start": "process started -> ready: CPU",
    "rss": "memory then",
    "burst": "CPU for all pods of a burst, started",
    "stop": "CPU for all of them, stopped",
    "rss-burst": "memory while they run",
}


class PaperProcess:
    """The runtime's process. `endpoint`: as agents are told."""

    def __init__(self, folder: Path) -> None:
        socket = folder / "cri.sock"
        self.endpoint = f"unix://{socket}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.paper_runtime", str(socket)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"listens\n"

    def stop(self) -> None:
        """Ends it."""
        self._process.communicate(timeout=30)


@contextmanager
def paper_runtime(folder: Path) -> Iterator[PaperProcess]:
    """A runtime meanwhile."""
    folder.mkdir()
    process = PaperProcess(folder)
    try:
        yield process
    finally:
        process.stop()


async def one_run(folder: Path, sources: Path, burst: int) -> dict[str, float]:
    """The figures of one build: seconds of CPU, megabytes."""
    with paper_runtime(folder) as runtime:
        agent = Agent(folder / "a", runtime, maxPods=burst + 10)  # type: ignore[arg-type]
        agent.environment = {"PYTHONPATH": str(sources)}
        figures: dict[str, float] = {}
        agent.start()
        try:
            await agent.wait_until_ready()
            figures["start"], figures["rss"] = cpu_seconds(agent.pid), rss_megabytes(agent.pid)
            await asyncio.sleep(1)
            names = [f"burst-{number}" for number in range(burst)]
            before = cpu_seconds(agent.pid)
            for name in names:
                agent.put(busybox_pod(name))
            await agent.wait_for(lambda rows: sum(bool(row.get("isReady")) for row in rows.values()) == burst, every=1)
            figures["burst"] = cpu_seconds(agent.pid) - before
            figures["rss-burst"] = rss_megabytes(agent.pid)
            before = cpu_seconds(agent.pid)
            for name in names:
                agent.remove(name)
            await agent.wait_for(lambda rows: not rows, every=1)
            figures["stop"] = cpu_seconds(agent.pid) - before
        finally:
            agent.kill()
            unmount_below(agent.folder)
            agent.remove_log_links()
        return figures


def report(now: Sequence[dict[str, float]], before: Sequence[dict[str, float]]) -> Iterator[str]:
    """Lines of a table."""
    yield "| what | before | now | ratio | true median, 95 % |"
    yield "| --- | --- | --- | --- | --- |"
    for key, what in ROWS.items():
        unit = "MB" if key.startswith("rss") else "s"
        ours, theirs = ([one[key] for one in samples] for samples in (now, before))
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        low, high = median_range(ratios)
        cells = (f"{statistics.median(side):.3f} {unit}" for side in (theirs, ours))
        yield f"| {what} | {' | '.join(cells)} | **{statistics.median(ratios):.3f}** | {low:.3f} to {high:.3f} |"


def measure(folder: Path, builds: dict[str, Path], rounds: int, burst: int) -> dict[str, list[dict[str, float]]]:
    """Figures of both builds, by round."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in builds}
    for number in range(-1, rounds):
        for name in sorted(builds, reverse=bool(number % 2)):
            figures = asyncio.run(one_run(folder / f"{name}{number}", builds[name], burst))
            if number >= 0:  # The first round fills the disk's cache.
                found[name].append(figures)
            shutil.rmtree(folder / f"{name}{number}", ignore_errors=True)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the benchmark and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--burst", type=int, default=100)
    asked: Any = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="gl2-", dir="/tmp"))
    builds = {"now": Path(__file__).resolve().parents[1] / "src", "before": asked.before.resolve() / "src"}
    try:
        for sources in builds.values():  # as an installation does
            compileall.compile_dir(sources, quiet=1)
        found = measure(folder, builds, asked.rounds, asked.burst)
        print(f"{asked.rounds} rounds, {asked.burst} pods, Python {sys.version.split()[0]}\n")
        print("\n".join(report(found["now"], found["before"])))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
