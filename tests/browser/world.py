"""An agent with pods of every kind behind `glasslet web`, in a thread, so that a test can drive a browser beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from glasslet.answers.live import PressureAnswer, PressureRow
from glasslet.answers.pods import Hold
from glasslet.api.lifecycle import HTTPGetAction, Probe
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodCondition,
    PodIP,
    PodStatus,
)
from glasslet.cli.page_server import PageServer
from glasslet.glass.page.source import Buckets, PageSource
from glasslet.probes.kinds import ProbeKind
from glasslet.probes.results import Parts, ProbeResult, ProbeVerdict
from glasslet.record.events import ChangeObserved, Decided, Event, StationSpan, Waited, shifted
from glasslet.record.live import OpenStation, OpenWait
from glasslet.record.milestones import READY, READY_ACCEPTED
from glasslet.record.recorder import working_for
from glasslet.record.stations import Station, WaitKind
from glasslet.record.store import Record
from tests.browser.chromium import OwnNetwork
from tests.builders.pod import container, pod
from tests.fakes.glass import FakeAgent, FakeSeenPod, fake_agent

T = TypeVar("T")
FINE = (
    "auth/oauth2-proxy-6c8f7",
    "data/postgres-0",
    "kube-system/coredns-5dd57",
    "monitoring/grafana-5f6d9",
    "shop/web-7f6c9d8b4-9kd2m",
)
FAILING = "shop/checkout-5d8f7c-pq4zt"
ERROR = "cannot reach the database: dial orders-db:5432: connection refused"
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe\u001b[31m"


def seen(name: str, status: PodStatus, *, probes: bool = False, age: float = 3600, **fields: Any) -> FakeSeenPod:
    """A pod `namespace/name` of which one container `main` is declared."""
    namespace, _, short = name.rpartition("/")
    probe = Probe(http_get=HTTPGetAction(path="/ready", port=8080), period_seconds=5, timeout_seconds=1)
    main = container(
        "main", image=f"shop/{short.split('-')[0]}:1.9", readiness_probe=probe if probes else None, **fields
    )
    made = pod(main, name=short, uid=f"uid-{namespace}-{short}")
    made = replace(made, metadata=replace(made.metadata, namespace=namespace, labels={"app": short.split("-")[0]}))
    return FakeSeenPod(pod=made, status=status, since=datetime.now(UTC) - timedelta(seconds=age), source="api")


def of_main(state: ContainerState, **fields: Any) -> tuple[ContainerStatus, ...]:
    """The status of `main`."""
    defaults: dict[str, Any] = {
        "ready": False,
        "restart_count": 0,
        "image": "shop/web:1.9",
        "image_id": "",
        "container_id": "containerd://1",
    }
    return (ContainerStatus(name="main", state=state, **{**defaults, **fields}),)


def ready(seconds: float = 600) -> PodStatus:
    """A pod that became Ready so long ago."""
    at = datetime.now(UTC) - timedelta(seconds=seconds)
    return PodStatus(
        phase="Running",
        pod_ip="10.42.3.58",
        pod_ips=(PodIP(ip="10.42.3.58"),),
        qos_class="Burstable",
        start_time=at - timedelta(seconds=2),
        conditions=(PodCondition(type="Ready", status="True", last_transition_time=at),),
        container_statuses=of_main(ContainerState(running=ContainerStateRunning(started_at=at)), ready=True),
    )


def crashing() -> PodStatus:
    """Exits with 3 again and again."""
    now = datetime.now(UTC)
    ended = ContainerStateTerminated(
        exit_code=3, reason="Error", started_at=now - timedelta(seconds=30), finished_at=now - timedelta(seconds=20)
    )
    waiting = ContainerStateWaiting(reason="CrashLoopBackOff", message="back-off 5m0s restarting failed container")
    return PodStatus(
        phase="Running",
        pod_ip="10.42.3.61",
        pod_ips=(PodIP(ip="10.42.3.61"),),
        qos_class="Burstable",
        start_time=now - timedelta(seconds=1040),
        conditions=(PodCondition(type="Ready", status="False", last_transition_time=now - timedelta(seconds=20)),),
        container_statuses=of_main(
            ContainerState(waiting=waiting), restart_count=6, last_state=ContainerState(terminated=ended)
        ),
    )


def starting(reason: str = "ContainerCreating", message: str = "") -> PodStatus:
    """Not there yet."""
    waiting = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    return PodStatus(phase="Pending", container_statuses=of_main(waiting, container_id=""))


def start_of_a_pod(at: float, *, slow: float = 0.0) -> list[Event]:
    """The record of a start, as an agent with an API server writes it. `slow`: more seconds in the sandbox."""

    def s(start: float, end: float, station: str, container: str = "", outcome: str = "ok", detail: str = "") -> Event:
        return StationSpan(at + start, at + end, station, container, outcome, detail)

    def w(start: float, end: float, kind: str, on: str, container: str = "", station: str = "") -> Event:
        return Waited(at + start, at + end, kind, on, container, station)

    return [
        s(0.0, 0.002, "seen"),
        Decided(at + 0.002, "start", "", (("sandboxes seen", "none"), ("attempt", "0"), ("read", "1.1 ms ago"))),
        s(0.002, 0.003, "planned"),
        s(0.003, 0.008, "cgroup"),
        s(0.008, 0.031, "volumes", "", "ok", "2 projected"),
        w(0.009, 0.017, "api_call", "GET configmap web-config", "", "volumes"),
        s(0.032, 0.291 + slow, "sandbox"),
        w(0.033, 0.284 + slow, "cri_call", "RunPodSandbox", "", "sandbox"),
        s(0.293 + slow, 0.361 + slow, "image", "main", "ok", "present"),
        w(0.294 + slow, 0.336 + slow, "queue", "image queue", "main", "image"),
        s(0.362 + slow, 0.390 + slow, "created", "main"),
        w(0.363 + slow, 0.379 + slow, "cri_call", "CreateContainer", "main", "created"),
        s(0.390 + slow, 0.448 + slow, "started", "main"),
        w(0.391 + slow, 0.444 + slow, "cri_call", "StartContainer", "main", "started"),
        w(0.449 + slow, 0.503 + slow, "probe", "readiness http :8080/ready", "main", "probes"),
        s(0.504 + slow, 0.541 + slow, "status", "", "ok", "2 patches"),
        w(0.506 + slow, 0.540 + slow, "api_call", "PATCH status", "", "status"),
        ChangeObserved(at + 0.503 + slow, READY, "False", "True"),
        ChangeObserved(at + 0.541 + slow, READY_ACCEPTED, "False", "True"),
    ]


def crashes(at: float) -> list[Event]:
    """A start, and runs that end with 3, with back-offs between."""
    events: list[Event] = [event for event in start_of_a_pod(at) if not isinstance(event, ChangeObserved)]
    for number, (begin, pause) in enumerate(((1.0, 10), (12.0, 20), (33.0, 40), (74.0, 80), (155.0, 160))):
        events.append(ChangeObserved(at + begin, "container main", "running", "exited with code 3", "main"))
        inputs = (("exit code", "3"), ("restartPolicy", "Always"), ("back-off", f"{pause} s"))
        events.append(Decided(at + begin, "restart main", "main", inputs))
        events.append(Waited(at + begin, at + begin + pause, "back_off", f"back-off {pause} s", "main"))
        begun = at + begin + pause
        events.append(StationSpan(begun, begun + 0.08, "started", "main", "ok", f"run {number + 2}"))
    return events


def probe_results(count: int = 40, *, failing: bool = False) -> tuple[ProbeResult, ...]:
    """Results of a readiness probe, every 5 s."""
    now = datetime.now(UTC)
    return tuple(
        ProbeResult(
            kind=ProbeKind.READINESS,
            container="main",
            instance=ContainerID("1"),
            began=now - timedelta(seconds=5 * (count - i)),
            verdict=ProbeVerdict.FAILURE if (failing and i > count - 4) or i == 17 else ProbeVerdict.SUCCESS,
            note="status 503" if i == 17 or failing else "status 200",
            parts=Parts(connect=0.0004, first_byte=0.006),
            total=0.006 + (i % 7) * 0.002,
        )
        for i in range(count)
    )


def call_times() -> dict[tuple[str, str], Buckets]:
    """Calls of each kind, with the median in milliseconds."""
    medians = {
        ("runtime", "RunPodSandbox"): 212,
        ("runtime", "StartContainer"): 58,
        ("runtime", "CreateContainer"): 14,
        ("runtime", "StopContainer"): 640,
        ("runtime", "ListContainers"): 2.9,
        ("runtime", "ContainerStatus"): 2.1,
        ("API", "PATCH"): 9,
        ("API", "GET"): 6,
    }
    bounds = [0.001 * 1.6**power for power in range(26)]
    return {
        key: tuple((bound, round(60 / (1 + (median / 1000 / bound) ** 3))) for bound in bounds)
        for key, median in medians.items()
    }


async def pressure() -> PressureAnswer:
    """Much memory, little disk."""
    gib = float(1 << 30)
    memory = PressureRow(resource="memory", capacity=15.6 * gib, available=4.9 * gib, line=1.5 * gib, free="4.9 GiB")
    disk = PressureRow(
        resource="disk of the node", capacity=160 * gib, available=24 * gib, line=16 * gib, free="24 GiB"
    )
    return PressureAnswer(rows=(memory, disk))


class World:
    """The running agent. Everything that touches it goes through `do`, in its own loop."""

    def __init__(self, agent: FakeAgent, server: PageServer, loop: asyncio.AbstractEventLoop) -> None:
        self.agent = agent
        self.server = server
        self.loop = loop

    @property
    def address(self) -> str:
        """The address to open, with its token."""
        return self.server.address

    def do(self, work: Callable[[], T]) -> T:
        """Runs `work` in the agent's loop."""

        async def run() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    def add(self, one: FakeSeenPod, events: list[Event] | None = None) -> None:
        """A pod with its record."""

        def work() -> None:
            self.agent.source.seen.append(one)
            record(self.agent.record, one.pod, events or [])

        self.do(work)

    def hold(self, name: str, *, at: str, seconds: float) -> None:
        """The pod has been held there for so long."""

        def work() -> None:
            ref = next(pod_ref(one.pod) for one in self.agent.source.seen if str(pod_ref(one.pod)) == name)
            since = datetime.now(UTC) - timedelta(seconds=seconds)
            until = since + timedelta(minutes=10)
            self.agent.source.holds[ref.uid] = Hold(at=at, by=1, since=since, until=until, next="RunPodSandbox")
            with working_for(ref, station=Station(at)):
                wait = OpenWait(self.agent.record, WaitKind.PAUSE, f"break 1 at {at}", until, "")
                wait.__enter__()
                standing = OpenStation(self.agent.record, Station(at), "", "")
                standing.__enter__()
            wait.since = standing.since = self.agent.record.now() - seconds

        self.do(work)

    def change(self, name: str, **fields: Any) -> None:
        """Another status for a pod."""

        def work() -> None:
            pods = self.agent.source.seen
            at = next(i for i, one in enumerate(pods) if str(pod_ref(one.pod)) == name)
            pods[at] = replace(pods[at], **fields)

        self.do(work)


def record(store: Record, of: Pod, events: list[Event]) -> None:
    """Writes events with times of the wall clock."""
    offset = store.wall_offset()
    for event in events:
        store.append(pod_ref(of), shifted(event, -offset))


def fill(world: World) -> None:
    """Pods of every kind."""
    now = datetime.now(UTC).timestamp()
    for name in FINE:
        world.add(seen(name, ready(), probes=True), start_of_a_pod(now - 700, slow=len(name) / 100))
    world.add(seen("shop/checkout-5d8f7c-pq4zt", crashing(), probes=True), crashes(now - 1040))
    world.add(seen("shop/search-0", starting("ImagePullBackOff", "no such tag")), start_of_a_pod(now - 60)[:8])
    world.add(seen("data/trainer-job-8hx2v", starting()), start_of_a_pod(now - 31)[:8])
    world.add(seen("shop/web-7f6c9d8b4-x2lqp", starting()), start_of_a_pod(now - 42)[:6])
    world.hold("shop/web-7f6c9d8b4-x2lqp", at="sandbox", seconds=42)
    world.agent.source.timestamped = True
    lines = ("level=info msg=started", HOSTILE, f"level=error msg={ERROR}")
    world.agent.source.logs["main"] = [f"2026-11-22T10:02:29.118Z {line}\n".encode() for line in lines]
    world.agent.source.probe_results = probe_results()


@contextmanager
def running_world(root_dir: Path, network: OwnNetwork) -> Iterator[World]:
    """A world without pods, whose page is served in that network."""
    started: list[World] = []
    ready_ = threading.Event()
    stop: list[asyncio.Event] = []

    async def main() -> None:
        network.enter()
        async with fake_agent(root_dir, page=PageSource(calls=call_times, pressure=pressure)) as agent:
            server = PageServer(root_dir / "glasslet.sock")
            await server.start(0)
            stop.append(asyncio.Event())
            started.append(World(agent, server, asyncio.get_running_loop()))
            ready_.set()
            await stop[0].wait()
            await server.stop()

    thread = threading.Thread(target=lambda: asyncio.run(main()), name="agent of a page", daemon=True)
    thread.start()
    assert ready_.wait(10)
    try:
        yield started[0]
    finally:
        started[0].loop.call_soon_threadsafe(stop[0].set)
        thread.join(10)
