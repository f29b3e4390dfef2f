"""A pod is held at each place of its way in turn, on a real API server and runtime: what others notice of it.

    python -m benchmarks.held_pod [--hold 20] [--pods 30] [--places sandbox,created]

At each place the other pods are started and stopped once without a hold and once beside it, in changing order. While
the pod is held it is asked each second whether the node is Ready, when its lease was renewed, and, where containers of
the pod run, whether their probes still come and their logs can be read. Ends with 1 if any of that fails.
Needs root, containerd and kubectl. `--hold 600` is ten minutes at each place: 3 hours for all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.conftest import forget_loopback_address
from tests.fakes.agent import NODE, Agent
from tests.fakes.containerd import BUSYBOX, PrivateContainerd, import_test_images
from tests.fakes.control_plane import ControlPlane

from benchmarks.cluster_client import DELETED, PODS, READY, ClusterClient, Watch, running
from benchmarks.comparison import median_range
from benchmarks.contender import contender
from benchmarks.machine import cpu_seconds, machine
from benchmarks.scenarios import pod
from glasslet.answers.pods import PodsAnswer
from glasslet.answers.stops import BreakRequest, BreakRow, ReleasedAnswer
from glasslet.cli.agent_client import AgentClient

FRESH = (
    *("seen", "merged", "woken", "admitted", "cgroup", "volumes", "sandbox", "init"),
    *("cri:RunPodSandbox", "cri:ImageStatus"),
)
"""Places where a new pod is held: nothing of it runs."""
OF_SIDE = ("image", "created", "started", "cri:CreateContainer", "cri:StartContainer")
AGAIN = ("plan", "planned", "status", *OF_SIDE)
"""Places where a pod is held as one of its two containers starts again. `OF_SIDE`: of that container."""
LEAVING = ("stopping", "cri:StopContainer", "gone")
"""Places where a deleted pod is held."""
PLACES = (*FRESH, *AGAIN, "probes", *LEAVING)
NOTHING_RUNS = (*FRESH, "gone", "stopping", "cri:StopContainer")
"""Places where no probe is expected: a pod that stops has none, either."""
LEASE_SECONDS = 40.0
HELD = "held"
PROBED = "probed"


class Burst(NamedTuple):
    """Seconds from the first creation to the last pod Ready, from the first deletion to the last; the agent's CPU."""

    up: float
    down: float
    cpu: float


class Seen(NamedTuple):
    """What was asked during a hold. `ready`: answers of the API server; `lease`: the greatest age of the lease in
    seconds; `probes`: how many came; `logs`: how often the log was read."""

    ready: tuple[str, ...]
    lease: float
    probes: int
    logs: int


class Held(NamedTuple):
    """One place."""

    place: str
    without: Burst
    beside: Burst
    seen: Seen
    problem: str


def held_pod() -> dict[str, Any]:
    """A pod with an init container, one container whose probe writes into its log, and one to be killed."""
    found = pod(HELD, "sleep", "100000")
    spec = found["spec"]
    main = spec["containers"][0]
    command = ["sh", "-c", f"echo {PROBED} > /proc/1/fd/1"]
    main["readinessProbe"] = {"exec": {"command": command}, "periodSeconds": 1}
    quiet = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    spec["containers"].append({**main, "name": "side", "readinessProbe": quiet})
    spec["initContainers"] = [
        {"name": "first", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "command": ["true"]}
    ]
    return found


class Bench:
    """One agent with its API server."""

    def __init__(
        self, *, client: ClusterClient, watch: Watch, agent: Agent, runtime: PrivateContainerd, asked: Any
    ) -> None:
        self._client, self._watch, self._agent, self._runtime = client, watch, agent, runtime
        self._names = [f"other-{number}" for number in range(asked.pods)]
        self._hold = float(asked.hold)
        self._stops = AgentClient(agent.root)
        self._turn = 0

    async def at(self, place: str) -> Held:
        """Measures one place."""
        self._turn += 1
        first = await self._burst() if self._turn % 2 else None
        await self._bring_to(place)
        began = time.monotonic()
        over = asyncio.Event()
        watching = asyncio.create_task(self._look(over), name="what goes on of the held pod")
        beside = await self._burst()
        await asyncio.sleep(max(0.0, self._hold - (time.monotonic() - began)))
        held_to_the_end = await self._where() == place
        over.set()
        seen = await watching
        await self._let_go(place)
        without = first or await self._burst()
        return Held(place, without, beside, seen, self._problem(place, held_to_the_end, seen))

    async def _burst(self) -> Burst:
        began, cpu = time.monotonic(), cpu_seconds(self._agent.pid)
        self._watch.forget(self._names)
        await self._client.in_parallel(lambda name: self._client.create(pod(name)), self._names)
        up = max(await self._watch.all_of(self._names, READY)) - began
        began = time.monotonic()
        await self._client.in_parallel(self._client.delete, self._names)
        down = max(await self._watch.all_of(self._names, DELETED)) - began
        return Burst(up, down, cpu_seconds(self._agent.pid) - cpu)

    async def _bring_to(self, place: str) -> None:
        self._watch.forget([HELD])
        if place not in FRESH:
            await self._client.create(held_pod())
            await self._watch.all_of([HELD], READY)
        container = "side" if place in (*OF_SIDE, "probes") else ""
        wanted = BreakRequest(at=place, pod=f"default/{HELD}", container=container, hold_seconds=self._hold + 600)
        await asyncio.to_thread(self._stops.post, "/breaks", wanted, BreakRow)
        if place in FRESH:
            await self._client.create(held_pod())
        elif place in LEAVING:
            await self._client.delete(HELD)
        elif place in AGAIN:
            statuses = self._watch.objects[HELD].status.container_statuses
            side = next(one.container_id for one in statuses if one.name == "side").partition("//")[2]
            os.kill(self._runtime.pids()[side], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while await self._where() != place:
            assert time.monotonic() < deadline, f"the pod does not come to {place}"
            await asyncio.sleep(0.1)

    async def _where(self) -> str:
        rows = (await asyncio.to_thread(self._stops.get, "/pods", PodsAnswer)).pods
        return next((row.hold.at for row in rows if row.name == HELD and row.hold is not None), "")

    async def _let_go(self, place: str) -> None:
        await asyncio.to_thread(self._stops.delete, "/breaks", ReleasedAnswer)
        if place not in LEAVING:
            await self._watch.all_of([HELD], running(1) if place in AGAIN else READY, 120)
            await self._client.delete(HELD)
        await self._watch.all_of([HELD], DELETED, 120)

    async def _look(self, over: asyncio.Event) -> Seen:
        ready: list[str] = []
        lease, counts, logs = 0.0, [], 0
        while not over.is_set():
            node = json.loads(await self._client.request("GET", f"/api/v1/nodes/{NODE}"))
            ready.append(next(one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"))
            path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"
            spec = json.loads(await self._client.request("GET", path))["spec"]
            renewed = datetime.fromisoformat(spec["renewTime"])
            lease = max(lease, (datetime.now(UTC) - renewed).total_seconds())
            log = await self._client.request("GET", f"{PODS}/{HELD}/log?container=c", allowed=(400, 404))
            counts.append(log.count(PROBED.encode()))
            logs += log.startswith(PROBED.encode())
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), 1)
        return Seen(tuple(ready), lease, counts[-1] - counts[0], logs)

    def _problem(self, place: str, held_to_the_end: bool, seen: Seen) -> str:
        problems = [] if held_to_the_end else ["not held to the end"]
        if set(seen.ready) != {"True"}:
            problems.append(f"the node was not Ready: {set(seen.ready)}")
        if seen.lease > LEASE_SECONDS:
            problems.append(f"the lease was {seen.lease:.0f} s old")
        if place not in NOTHING_RUNS and seen.probes < self._hold / 4:
            problems.append(f"only {seen.probes} probes came")
        if place not in (*FRESH, "gone") and not seen.logs:
            problems.append("no logs could be read")
        return "; ".join(problems)


def report(found: Sequence[Held]) -> str:
    """The table, and the ratios of all places."""
    lines = [
        "| place | others up, without / beside | down | CPU | Ready | lease | probes | logs read | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        pairs = [f"{a:.2f} / {b:.2f} s" for a, b in zip(one.without, one.beside, strict=True)]
        seen = (f"{len(one.seen.ready)} of {len(one.seen.ready)}" if set(one.seen.ready) == {"True"} else "no",)
        cells = (
            one.place,
            *pairs,
            *seen,
            f"{one.seen.lease:.0f} s",
            str(one.seen.probes),
            str(one.seen.logs),
            one.problem or "ok",
        )
        lines.append("| " + " | ".join(cells) + " |")
    for what in Burst._fields:
        ratios = [getattr(one.beside, what) / getattr(one.without, what) for one in found]
        low, high = median_range(ratios)
        lines.append(
            f"{what}: beside a hold / without, median {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})"
        )
    return "\n".join(lines)


async def measure(plane: ControlPlane, agent: Agent, runtime: PrivateContainerd, asked: Any) -> list[Held]:
    """All places in turn."""
    async with ClusterClient(plane.kubeconfig) as client:
        nodes = await client.watch("/api/v1/nodes")
        watch = await client.watch(PODS)
        agent.start()
        await nodes.all_of([NODE], READY, 120)
        bench = Bench(client=client, watch=watch, agent=agent, runtime=runtime, asked=asked)
        found = []
        for place in asked.places.split(","):
            found.append(await bench.at(place))
            print(report(found[-1:]).splitlines()[2], file=sys.stderr, flush=True)
        return found


def main() -> None:
    """Runs the benchmark and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hold", type=float, default=20.0, help="seconds at each place, at least")
    parser.add_argument("--pods", type=int, default=30, help="others that start and stop meanwhile")
    parser.add_argument("--places", default=",".join(PLACES))
    asked = parser.parse_args()
    if unknown := set(asked.places.split(",")) - set(PLACES):
        parser.error(f"--places: {', '.join(sorted(unknown))}; there are {', '.join(PLACES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    folder = Path(tempfile.mkdtemp(prefix="glb-"))
    runtime = PrivateContainerd(folder / "ctd")
    try:
        runtime.start()
        import_test_images(runtime)
        plane = ControlPlane(node=NODE)
        try:
            plane.wait_for_default_service_account()
            with contender(folder / "a", plane, runtime) as agent:
                found = asyncio.run(measure(plane, agent, runtime, asked))
        finally:
            plane.stop()
            forget_loopback_address()
    finally:
        runtime.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{datetime.now(UTC).date()}: {machine()}, {asked.pods} other pods, {asked.hold:g} s at each place\n")
    print(report(found))
    sys.exit(any(one.problem for one in found))


if __name__ == "__main__":
    main()
