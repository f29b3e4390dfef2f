"""The CPU cost of the slow list: a runtime in memory answers with N pods of C containers, as bytes.

    python -m benchmarks.relist [--pods 250] [--containers 2] [--lists 50]

Prints CPU milliseconds of the event loop's thread for one list in which nothing is new: decoding, joining, comparing.
gRPC and the runtime's own work are left out. On a real node a list comes once a minute; every second without hints.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, cast

import uvloop

from glasslet.concurrency.clock import SystemClock
from glasslet.record.store import Record
from glasslet.runtime.cri._generated import container_pb2, pod_sandbox_pb2
from glasslet.runtime.cri.calls import Calls
from glasslet.runtime.cri.runtime_service import CRIRuntime
from glasslet.runtime.cri.verbs import Timeouts, Verb
from glasslet.runtime.observed import ObservedPods, Periods
from glasslet.runtime.protocols import RuntimeHint

CREATED = time.time_ns()


class Answers:
    """Takes the place of `Calls` and answers from bytes prepared before."""

    def __init__(self, pods: int, containers: int) -> None:
        sandboxes = pod_sandbox_pb2.ListPodSandboxResponse()
        listed = container_pb2.ListContainersResponse()
        self._statuses: dict[str, bytes] = {}
        for pod in range(pods):
            _add_pod(sandboxes, listed, f"pod-{pod}", containers)
        for sandbox in sandboxes.items:
            status = pod_sandbox_pb2.PodSandboxStatus(
                id=sandbox.id, metadata=sandbox.metadata, created_at=CREATED, labels=sandbox.labels
            )
            self._statuses[sandbox.id] = pod_sandbox_pb2.PodSandboxStatusResponse(status=status).SerializeToString()
        for one in listed.containers:
            state = container_pb2.ContainerStatus(
                id=one.id, metadata=one.metadata, state=one.state, created_at=CREATED, image=one.image, image_ref="i"
            )
            state.labels.update(one.labels)
            self._statuses[one.id] = container_pb2.ContainerStatusResponse(status=state).SerializeToString()
        self._all = sandboxes.SerializeToString(), listed.SerializeToString()
        self.bytes = sum(map(len, self._all))

    async def call(self, verb: Verb, request: Any, *, timeout: float | None) -> Any:
        """As `Calls.call`."""
        if verb is Verb.POD_SANDBOX_STATUS:
            return pod_sandbox_pb2.PodSandboxStatusResponse.FromString(self._statuses[request.pod_sandbox_id])
        if verb is Verb.CONTAINER_STATUS:
            return container_pb2.ContainerStatusResponse.FromString(self._statuses[request.container_id])
        sandboxes = pod_sandbox_pb2.ListPodSandboxResponse.FromString(self._all[0])
        listed = container_pb2.ListContainersResponse.FromString(self._all[1])
        if request.HasField("filter"):
            uid = request.filter.label_selector["io.kubernetes.pod.uid"]
            _keep(sandboxes.items, uid)
            _keep(listed.containers, uid)
        return sandboxes if verb is Verb.LIST_POD_SANDBOX else listed


def _add_pod(sandboxes: Any, listed: Any, name: str, containers: int) -> None:
    labels = {
        "io.kubernetes.pod.uid": f"{name:0>36}",
        "io.kubernetes.pod.name": name,
        "io.kubernetes.pod.namespace": "default",
    }
    sandbox = sandboxes.items.add(id=f"{name:0>64}", created_at=CREATED, state=pod_sandbox_pb2.SANDBOX_READY)
    sandbox.metadata.name, sandbox.metadata.namespace, sandbox.metadata.uid = name, "default", f"{name:0>36}"
    sandbox.labels.update(labels | {f"label-{number}": "value" for number in range(5)})
    for number in range(containers):
        one = listed.containers.add(id=f"{name}-{number:0>50}", pod_sandbox_id=sandbox.id, created_at=CREATED)
        one.state = container_pb2.CONTAINER_RUNNING
        one.metadata.name = f"c{number}"
        one.image.image, one.image_ref = "docker.io/library/busybox:1.36", f"sha256:{name:0>64}"
        one.labels.update(labels | {"io.kubernetes.container.name": f"c{number}"})
        one.annotations.update({f"io.kubernetes.container.{key}": "0" for key in ("hash", "restartCount", "ports")})


def _keep(items: Any, uid: str) -> None:
    kept = [item for item in items if item.labels["io.kubernetes.pod.uid"] == uid]
    del items[:]
    items.extend(kept)


class Lists:
    """Measures the CPU between two lists, in which nothing else happens."""

    def __init__(self, wanted: int) -> None:
        self.cpu: list[float] = []
        self.done = asyncio.Event()
        self._wanted = wanted
        self._last: float | None = None

    def relisted(self, seconds: float, interval: float | None) -> None:
        """One list ended."""
        now = time.thread_time()
        if self._last is not None:
            self.cpu.append((now - self._last) * 1000)
        self._last = now
        if len(self.cpu) >= self._wanted:
            self.done.set()

    def last_seen(self, unix_seconds: float) -> None:
        """Ignored."""

    def discarded(self, changes: int) -> None:
        """Ignored."""


async def _no_hints(wanted: Callable[[RuntimeHint], bool]) -> AsyncIterator[RuntimeHint]:
    await asyncio.get_running_loop().create_future()
    yield RuntimeHint()


async def measure(answers: Answers, lists: int) -> list[float]:
    """CPU milliseconds of each list; the first, which reads all pods, is left out."""
    runtime = CRIRuntime(calls=cast("Calls", answers), timeouts=Timeouts(), hint_source=_no_hints, recorder=Record())
    figures = Lists(lists)
    periods = Periods(relist=0.01, relist_without_hints=0.01)
    observed = ObservedPods(runtime=runtime, recorder=Record(), metrics=figures, clock=SystemClock(), periods=periods)
    following = asyncio.ensure_future(observed.run())
    await figures.done.wait()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return figures.cpu


def main() -> None:
    """Runs the benchmark and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=250)
    parser.add_argument("--containers", type=int, default=2)
    parser.add_argument("--lists", type=int, default=50)
    asked = parser.parse_args()
    answers = Answers(asked.pods, asked.containers)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        cpu = sorted(runner.run(measure(answers, asked.lists)))
    middle = statistics.median(cpu)
    print(
        f"{datetime.now(UTC).date()}: {asked.pods} pods of {asked.containers} containers, "
        f"{answers.bytes / 1000:.0f} kB: "
        f"{cpu[0]:.1f} / {middle:.1f} / {cpu[-1]:.1f} ms of CPU a list (min / median / max), "
        f"{middle / 600:.3f} % of a core once a minute, {middle / 10:.1f} % every second"
    )


if __name__ == "__main__":
    main()
