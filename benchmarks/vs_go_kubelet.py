"""glasslet beside the Go kubelet: same control plane, containerd, images and configuration, in turn, several rounds.

    python -m benchmarks.vs_go_kubelet [--rounds 3] [--only single,burst] ...

Needs root, containerd, kubectl, and Go for the first run, which builds the Go kubelet and the control plane. Each round
runs both, on an empty node and a fresh folder each; who is first changes from round to round. Times are those of a
watch at the API server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.conftest import forget_loopback_address
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import PrivateContainerd, import_test_images
from tests.fakes.containerd import missing_requirement as missing_for_containers
from tests.fakes.control_plane import ControlPlane
from tests.fakes.control_plane import missing_requirement as missing_for_control_plane

from benchmarks.cluster_client import ClusterClient
from benchmarks.comparison import Figures, Round, slower, table
from benchmarks.contender import VERSION, contender, go_kubelet
from benchmarks.machine import machine
from benchmarks.scenarios import SCENARIOS, Extent, Scenarios, rows

OURS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bench:
    """The shared control plane and containerd, and the chosen scenarios."""

    folder: Path
    plane: ControlPlane
    runtime: PrivateContainerd
    extent: Extent
    wanted: Sequence[str]

    def one(self, name: str, program: tuple[str, ...]) -> Figures:
        """Runs one kubelet's part of a round. A failure is printed; its figures are left out."""
        with contender(self.folder / name, self.plane, self.runtime, program) as agent:
            scenarios = asyncio.run(self._run(agent))
            for failure in scenarios.failures:
                tell(f"  {name}: {failure}")
            shown = {key: [round(sample, 2) for sample in samples] for key, samples in scenarios.figures.items()}
            tell(f"  {name}: {json.dumps(shown)}")
            return dict(scenarios.figures)

    async def _run(self, agent: Agent) -> Scenarios:
        async with ClusterClient(self.plane.kubeconfig) as client:
            scenarios = Scenarios(client=client, agent=agent, runtime=self.runtime, extent=self.extent)
            try:
                await scenarios.run(self.wanted)
            except (TimeoutError, AssertionError, OSError) as failure:
                scenarios.failures.append(f"given up: {failure}\n{agent.tail_of_log()}")
            return scenarios


def measure(bench: Bench, rounds: int) -> list[Round]:
    """Runs all rounds."""
    go = (str(go_kubelet()),)
    done = []
    for number in range(rounds):
        tell(f"round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}")
        if number % 2:
            ours = bench.one("g", OURS)
            done.append(Round(go=bench.one("k", go), ours=ours))
        else:
            done.append(Round(go=bench.one("k", go), ours=bench.one("g", OURS)))
    return done


def report(extent: Extent, rounds: Sequence[Round]) -> str:
    """The table, with the machine and versions it belongs to."""
    lines = rows(extent)
    head = f"{datetime.now(UTC).date()}: Go kubelet {VERSION}, {machine()}, {len(rounds)} rounds"
    behind = ", ".join(row.what for row in slower(lines, rounds)) or "nothing"
    return f"{head}\n\n{table(lines, rounds)}\n\nSlower than the Go kubelet, worst first: {behind}."


def tell(text: str) -> None:
    """Prints progress to standard error."""
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    usual = Extent()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(SCENARIOS), help="of %(default)s")
    parser.add_argument("--single", type=int, default=usual.single, help="single pods a round")
    parser.add_argument("--restarts", type=int, default=usual.restarts, help="killed containers a round")
    parser.add_argument("--execs", type=int, default=usual.execs)
    parser.add_argument("--log", type=int, default=usual.log, help="megabytes of the log that is read")
    parser.add_argument("--burst", type=int, default=usual.burst, help="pods at once")
    parser.add_argument("--rest-pods", type=int, nargs="*", default=usual.rest_pods, help="idle pods to look at")
    parser.add_argument("--rest", type=float, default=usual.rest, help="seconds of looking at them")
    parser.add_argument("--settle", type=float, default=usual.settle, help="seconds before that")
    parser.add_argument("--json", help="file for all samples")
    asked = parser.parse_args()
    asked.only = [name for name in asked.only.split(",") if name]
    if unknown := set(asked.only) - set(SCENARIOS):
        parser.error(f"--only: {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    if missing := missing_for_containers() or missing_for_control_plane():
        parser.error(missing)
    return asked


def main() -> None:
    """Runs the benchmark and prints the table."""
    asked = arguments()
    amounts = {name: getattr(asked, name) for name in asdict(Extent()) if name != "rest_pods"}
    extent = Extent(**amounts, rest_pods=tuple(sorted(asked.rest_pods)))
    go_kubelet()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # so that everything is cleared up
    folder = Path(tempfile.mkdtemp(prefix="glb-"))
    runtime = PrivateContainerd(folder / "ctd")
    try:
        runtime.start()
        import_test_images(runtime)
        plane = ControlPlane(node=NODE)
        try:
            plane.wait_for_default_service_account()
            bench = Bench(folder=folder, plane=plane, runtime=runtime, extent=extent, wanted=asked.only)
            rounds = measure(bench, asked.rounds)
        finally:
            plane.stop()
            forget_loopback_address()
    finally:
        runtime.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if asked.json:
        Path(asked.json).write_text(json.dumps([asdict(one) for one in rounds]))
    print(report(extent, rounds))


if __name__ == "__main__":
    main()
