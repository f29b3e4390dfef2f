"""What eviction costs at rest, and how soon it acts, beside the Go kubelet.

    python -m benchmarks.eviction rest [--pods 110] [--rounds 4] [--seconds 40]
    python -m benchmarks.eviction reaction [--only space,memory] [--samples 6] [--notices]
    python -m benchmarks.eviction walk [--files 200000]

`rest`: two agents with idle pods side by side, one with eviction and one without; CPU time of the processes. Needs
root. `reaction`: one pod after the other takes more of a resource than its node has left; seconds from the threshold's
crossing, as it is read every 5 ms from outside, to the TERM that the pod itself notes. Needs what
`benchmarks.vs_go_kubelet` needs. `--notices`: with kernelMemcgNotification. `walk`: a large volume is measured in a
thread; how late the event loop is meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.conftest import forget_loopback_address
from tests.e2e.test_api_pods import api_pod, wait_until
from tests.fakes.agent import NODE, Agent, busybox_pod
from tests.fakes.containerd import PrivateContainerd, import_test_images, unmount_below
from tests.fakes.control_plane import ControlPlane, condition, is_ready
from tests.pressure.node import CONDITIONS, PressedNode, pressed_node
from tests.pressure.pods import ALL, Hunger

from benchmarks.comparison import Spread
from benchmarks.contender import VERSION, go_kubelet
from benchmarks.machine import cpu_seconds, machine
from benchmarks.two_builds import paper_runtime
from glasslet.stats.disks.disk_usage import folder_takes

ON: dict[str, Any] = {
    "evictionHard": {
        "memory.available": "100Mi",
        "nodefs.available": "1%",
        "nodefs.inodesFree": "1%",
        "imagefs.available": "1%",
        "imagefs.inodesFree": "1%",
        "pid.available": "100",
    },
    "localStorageCapacityIsolation": True,
}
OFF: dict[str, Any] = {"evictionHard": {"memory.available": "0%"}, "localStorageCapacityIsolation": False}
SETTLE = 15.0
"""Seconds after a start in which an agent with many pods comes to rest."""
_TICK = 0.005
PHASE = 10.0
"""Seconds over which samples are spread, so that none is in step with a kubelet's rounds."""


@contextlib.contextmanager
def cluster() -> Iterator[tuple[Path, ControlPlane, PrivateContainerd]]:
    """A folder, a control plane and a containerd, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="glb-"))
    runtime = PrivateContainerd(folder / "ctd")
    try:
        runtime.start()
        import_test_images(runtime)
        plane = ControlPlane(node=NODE)
        try:
            plane.wait_for_default_service_account()
            yield folder, plane, runtime
        finally:
            plane.stop()
            forget_loopback_address()
    finally:
        runtime.stop()
        shutil.rmtree(folder, ignore_errors=True)


def rest(asked: argparse.Namespace) -> None:
    """Prints CPU seconds with and without eviction, and their ratio in each round."""
    ratios = asyncio.run(_at_rest(asked))
    print(f"{machine()}, {asked.pods} pods: eviction on / off {Spread.of(ratios).text(3)} (min / median / max)")


async def _at_rest(asked: argparse.Namespace) -> list[float]:
    """Two agents side by side, each on a runtime of its own that only keeps books: what else the machine does
    disturbs both alike."""
    ratios = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="glb-")))
        agents = {name: _agent_with(stack, folder / name, settings) for name, settings in (("on", ON), ("off", OFF))}
        for agent in agents.values():
            agent.start()
            stack.callback(agent.kill)
            await agent.wait_until_ready()
            for number in range(asked.pods):
                agent.put(busybox_pod(f"rest-{number}"))
        for agent in agents.values():
            await agent.wait_for(lambda rows: sum(bool(row.get("isReady")) for row in rows.values()) == asked.pods)
        await asyncio.sleep(SETTLE)
        for _number in range(asked.rounds):
            before = {name: cpu_seconds(agent.pid) for name, agent in agents.items()}
            await asyncio.sleep(asked.seconds)
            used = {name: cpu_seconds(agent.pid) - before[name] for name, agent in agents.items()}
            ratios.append(used["on"] / used["off"])
            print(f"on {used['on']:.3f} s, off {used['off']:.3f} s of CPU in {asked.seconds:.0f} s", flush=True)
    return ratios


def _agent_with(stack: contextlib.ExitStack, folder: Path, settings: dict[str, Any]) -> Agent:
    folder.mkdir()
    runtime = stack.enter_context(paper_runtime(folder / "runtime"))
    agent = Agent(folder / "a", runtime, maxPods=250, **settings)  # type: ignore[arg-type]
    stack.callback(agent.remove_log_links)
    stack.callback(unmount_below, agent.folder)
    return agent


def reaction(asked: argparse.Namespace) -> None:
    """Prints the times of both kubelets and their ratio, for each resource."""
    programs = {"Go kubelet": (str(go_kubelet()),), "glasslet": ()}
    print(f"Go kubelet {VERSION}, {machine()}, kernelMemcgNotification {asked.notices}")
    with cluster() as (folder, plane, runtime):
        for what in asked.only.split(","):
            medians = {}
            for name, program in programs.items():
                with pressed_node(plane, runtime, folder, ALL[what], program) as node:
                    found = _reactions(node, asked.samples, notices=asked.notices)
                medians[name] = statistics.median(found)
                print(f"{what}, {name}: {Spread.of(found).text(2)} s (min / median / max)", flush=True)
            print(f"{what}: ratio of medians {medians['glasslet'] / medians['Go kubelet']:.2f}", flush=True)


def _reactions(node: PressedNode, samples: int, *, notices: bool) -> Sequence[float]:
    hunger, chance = node.hunger, random.Random(1)
    node.set_room(kernelMemcgNotification=notices)
    node.agent.start()
    node.plane.wait_for(NODE, is_ready, kind="node")
    node.set_threshold(evictionPressureTransitionPeriod="1s", evictionMinimumReclaim={})
    found = []
    for number in range(samples):
        name = f"hog-{number}"
        node.plane.apply(_hog(name, hunger, node.report))
        wait_until(lambda: (node.report / f"up.{name}").exists())  # noqa: B023
        time.sleep(chance.uniform(2, 2 + PHASE))
        (node.report / f"go.{name}").touch()
        found.append(_reaction(node, node.report / f"term.{name}"))
        node.plane.kubectl("delete", "pod", name, "--wait=true")
        node.plane.wait_for(NODE, lambda seen: condition(seen, CONDITIONS[hunger.resource]) == "False", kind="node")
    return found


def _reaction(node: PressedNode, told: Path) -> float:
    crossed, deadline = 0.0, time.time() + 120
    while not told.exists():
        if not crossed and node.free() < node.line:
            crossed = time.time()
        assert time.time() < deadline, f"no eviction: {node.agent.tail_of_log()}"
        time.sleep(0.005)
    return told.stat().st_mtime - crossed


def _hog(name: str, hunger: Hunger, report: Path) -> dict[str, Any]:
    more = hunger.command.format(amount=hunger.extra, name="more")
    command = (
        f"trap 'touch /report/term.{name}; exit 1' TERM; touch /report/up.{name}\n"
        f"while [ ! -e /report/go.{name} ]; do sleep 0.05; done; {more}\nwhile :; do sleep 0.1; done"
    )
    made = api_pod(
        name,
        command,
        nodeName=NODE,
        restartPolicy="Never",
        tolerations=[{"operator": "Exists"}],
        volumes=[{"name": "data", "emptyDir": {}}, {"name": "report", "hostPath": {"path": str(report)}}],
    )
    made["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "data", "mountPath": "/data"},
        {"name": "report", "mountPath": "/report"},
    ]
    return made


def walk(asked: argparse.Namespace) -> None:
    """Prints how long a walk takes, what it costs, and how late the loop is in turns with and without it."""
    with tempfile.TemporaryDirectory(prefix="glb-") as folder:
        for number in range(asked.files):
            place = Path(folder, str(number // 1000))
            place.mkdir(exist_ok=True)
            (place / str(number)).touch()
        for number in range(asked.rounds):
            late = {what: asyncio.run(_lateness(folder if what == "walk" else "")) for what in ("idle", "walk")}
            print(f"round {number + 1}: " + "; ".join(f"{what}: {words}" for what, words in late.items()), flush=True)


async def _lateness(folder: str) -> str:
    """In words. Without a folder: for two seconds."""
    cpu, began = time.process_time(), time.monotonic()
    work = asyncio.to_thread(folder_takes, folder) if folder else asyncio.sleep(2)
    task = asyncio.ensure_future(work)
    late = []
    while not task.done():
        before = time.monotonic()
        await asyncio.sleep(_TICK)
        late.append((time.monotonic() - before - _TICK) * 1000)
    took, used = time.monotonic() - began, time.process_time() - cpu
    late.sort()
    shown = f"loop late by {statistics.median(late):.1f} ms, p99 {late[len(late) * 99 // 100]:.1f}, most {late[-1]:.1f}"
    return f"{shown}; {took:.1f} s, {used:.2f} s of CPU"


def main() -> None:
    """Runs what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    at_rest = verbs.add_parser("rest")
    at_rest.add_argument("--pods", type=int, default=110)
    at_rest.add_argument("--rounds", type=int, default=4)
    at_rest.add_argument("--seconds", type=float, default=40.0)
    at_rest.set_defaults(run=rest)
    reacts = verbs.add_parser("reaction")
    reacts.add_argument("--only", default=",".join(ALL), help="of %(default)s")
    reacts.add_argument("--samples", type=int, default=6)
    reacts.add_argument("--notices", action="store_true")
    reacts.set_defaults(run=reaction)
    walks = verbs.add_parser("walk")
    walks.add_argument("--files", type=int, default=200_000)
    walks.add_argument("--rounds", type=int, default=3)
    walks.set_defaults(run=walk)
    asked = parser.parse_args()
    asked.run(asked)


if __name__ == "__main__":
    main()
