"""The eviction loop, on scripted figures, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.concurrency.clock import LoopClock
from glasslet.eviction.manager import EvictionManager
from glasslet.eviction.pressures import NodePressures
from glasslet.eviction.services import EvictionReport, EvictionSettings, Reclaim, WatchedNode
from glasslet.eviction.signals import Signal
from glasslet.eviction.thresholds import Threshold
from glasslet.exchange.facts import StatusOverride
from glasslet.pods.entrance import Victim
from glasslet.record.events import Decided
from glasslet.record.store import Record
from glasslet.stats.disks.storage import DiskLayout
from glasslet.stats.node_stats import NodeOnly
from glasslet.stats.pages.summary import StatsUnavailable
from glasslet.stats.pages.summary_types import Summary
from glasslet.telemetry.metrics.eviction import EvictionMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry
from tests.builders.eviction import GIB, MIB, disk, empty_dir, summary, using, wanting
from tests.fakes.background import in_background

pytestmark = pytest.mark.looptime

MEMORY = Threshold(signal=Signal.MEMORY, amount="1Gi")
SOFT = Threshold(signal=Signal.MEMORY, amount="1Gi", grace=30.0)
DISK = Threshold(signal=Signal.NODEFS, amount="10%")


@dataclass
class World:
    """A node with 8 GiB of memory: `used` by pod, `others` by everything else. A pod stops `stops_after` seconds after
    its eviction, and is cleaned up then."""

    clock: LoopClock = field(default_factory=LoopClock)
    pods: dict[str, Pod] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    volumes: dict[str, int] = field(default_factory=dict)
    others: int = 0
    disk_free: int = 80 * GIB
    readable: bool = True
    layout: DiskLayout = field(default_factory=DiskLayout)
    stops_after: float = 0.5
    cleaned_after: float = 0.0
    cleaning: dict[str, Pod] = field(default_factory=dict)
    garbage: int = 0
    removed: list[str] = field(default_factory=list)
    read_pods: int = 0
    looks: list[float] = field(default_factory=list)
    ends: list[tuple[float, str, StatusOverride, int]] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)

    def run(self, name: str, used: int, **fields: object) -> None:
        self.pods[name] = wanting(name, **fields)  # type: ignore[arg-type]
        self.used[name] = used

    # Figures
    async def summary(self, *, only_cpu_and_memory: bool = False, fresh: bool = False) -> Summary:
        self.read_pods += 1
        return self._whole()

    def _whole(self) -> Summary:
        if not self.readable:
            raise StatsUnavailable("the root control group cannot be read")
        self.looks.append(self.clock.monotonic())
        figures = [
            using(pod, memory=self.used[name], volumes={"data": self.volumes.get(name, 0)})
            for name, pod in self.pods.items()
        ]
        free = 8 * GIB - self.others - sum(self.used.values())
        return summary(*figures, free=free, fs=disk(available=self.disk_free))

    async def node_only(self) -> NodeOnly:
        whole = self._whole()
        return NodeOnly(summary=replace(whole, pods=()), layout=self.layout)

    # Evictees
    def candidates(self) -> Sequence[Pod]:
        return list(self.pods.values())

    def evict(self, uid: PodUID, verdict: StatusOverride, grace: int) -> Victim | None:
        name = next(name for name, pod in self.pods.items() if pod.metadata.uid == uid)
        self.ends.append((self.clock.monotonic(), name, verdict, grace))
        victim = Victim(pod_ref(self.pods[name]), grace, asyncio.Event())

        def stop() -> None:
            if name not in self.pods:
                # An earlier agent's order to stop it came first.
                victim.stopped.set()
                return
            self.cleaning[uid] = self.pods.pop(name)
            del self.used[name]
            victim.stopped.set()
            asyncio.get_running_loop().call_later(self.cleaned_after, clean)

        def clean() -> None:
            self.cleaning.pop(uid, None)
            self.disk_free += self.volumes.pop(name, 0)

        asyncio.get_running_loop().call_later(self.stops_after, stop)
        return victim

    def in_clean_up(self) -> Sequence[Pod]:
        return list(self.cleaning.values())

    def cleaned_up(self, uid: PodUID) -> bool:
        return uid not in self.cleaning and all(pod.metadata.uid != uid for pod in self.pods.values())

    # Reclaim and events
    async def collect_images(self) -> None:
        self.removed.append("unused images")

    async def collect(self) -> None:
        self.removed.append("dead containers")
        self.disk_free += self.garbage
        self.garbage = 0

    def pod_event(
        self, pod: PodRef, type_: str, reason: str, message: str, /, *, annotations: Mapping[str, str] | None = None
    ) -> None:
        self.events.append((pod.name, reason))

    def node_event(self, type_: str, reason: str, message: str) -> None:
        self.events.append((reason, message))

    def names(self) -> list[str]:
        return [name for _, name, _, _ in self.ends]


@dataclass
class Running:
    """A manager at work on a world."""

    world: World
    record: Record
    pressures: NodePressures
    registry: MetricRegistry
    task: asyncio.Task[None] | None = None

    async def kill(self) -> None:
        """The agent dies: nothing of it is left but the world."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def page(self) -> str:
        return self.registry.expose().decode()


Begin = Callable[..., Running]


@pytest.fixture
async def begin() -> AsyncIterator[Begin]:
    """Starts a manager with these thresholds."""
    tasks: list[asyncio.Task[None]] = []

    def start(world: World, *thresholds: Threshold, max_grace: int = 0, waits: bool = False) -> Running:
        registry = MetricRegistry()
        running = Running(world, Record(clock=world.clock), NodePressures(), registry)
        manager = EvictionManager(
            node=WatchedNode(figures=world, pressures=running.pressures),
            pods=world,
            reclaim=Reclaim(containers=world.collect, images=world.collect_images),
            settings=EvictionSettings(thresholds=thresholds, transition=300.0, max_grace=max_grace, waits=waits),
            report=EvictionReport(
                recorder=running.record,
                clock=world.clock,
                metrics=EvictionMetrics(registry),
                pod_event=world.pod_event,
                node_event=world.node_event,
            ),
        )
        running.task = asyncio.create_task(manager.run())
        tasks.append(running.task)
        return running

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_pod_a_round_until_the_threshold_is_left(begin: Begin) -> None:
    # behaviours.md §15: "One pod per round. Critical pods are skipped. Hard: grace 1 s."
    # behaviours.md §15: "Loop every 10 s, immediately again after an eviction;"
    world = World(others=4 * GIB)
    world.run("small", 600 * MIB)
    world.run("large", 1600 * MIB)
    world.run("system", 900 * MIB, priority=2_000_000_000)
    world.run("important", 700 * MIB, priority=10)
    running = begin(world, MEMORY)
    await asyncio.sleep(5)
    assert world.names() == ["large"]
    assert world.ends[0][3] == 1
    world.others += 1600 * MIB
    await asyncio.sleep(10)
    assert world.names() == ["large", "small", "important"]
    assert "system" in world.pods
    assert 'kubelet_evictions{eviction_signal="memory.available"} 3' in running.page()


async def test_the_pod_says_why_it_was_evicted(begin: Begin) -> None:
    # behaviours.md §15: "Pod gets phase Failed, reason Evicted, condition DisruptionTarget (TerminationByKubelet,
    # message = eviction message), event Evicted."
    world = World(others=6 * GIB)
    world.run("hog", 1500 * MIB)
    running = begin(world, MEMORY)
    await asyncio.sleep(1)
    ((_, _, verdict, _),) = world.ends
    assert (verdict.phase, verdict.reason) == ("Failed", "Evicted")
    assert verdict.message.startswith(
        "The node was low on resource: memory. Threshold quantity: 1Gi, available: 548Mi. "
    )
    assert verdict.disruption == verdict.message
    # behaviours.md §15: "event EvictionThresholdMet `Attempting to reclaim <resource>` on the node."
    assert world.events == [("EvictionThresholdMet", "Attempting to reclaim memory"), ("hog", "Evicted")]
    assert running.pressures.conditions() == {"MemoryPressure"}
    record = running.record.of(None)
    assert record is not None
    assert any("hog" in str(event) for event in record.events)


async def test_pressure_ends_after_the_transition_period(begin: Begin) -> None:
    world = World(others=6 * GIB)
    world.run("hog", 1500 * MIB)
    running = begin(world, MEMORY)
    await asyncio.sleep(290)
    assert running.pressures.conditions() == {"MemoryPressure"}
    await asyncio.sleep(30)
    assert running.pressures.conditions() == frozenset()
    assert world.names() == ["hog"]


async def test_a_soft_threshold_gives_pods_time(begin: Begin) -> None:
    # behaviours.md §15: "Soft: min(evictionMaxPodGracePeriod, pod grace);"
    world = World(others=6 * GIB)
    world.run("hog", 1500 * MIB, termination_grace_period_seconds=20)
    running = begin(world, SOFT, max_grace=60)
    await asyncio.sleep(25)
    assert world.names() == []
    assert running.pressures.conditions() == {"MemoryPressure"}
    await asyncio.sleep(10)
    assert [(name, grace) for _, name, _, grace in world.ends] == [("hog", 20)]


async def test_garbage_goes_before_pods_do(begin: Begin) -> None:
    # behaviours.md §15: "Enough freed: no pod is killed."
    world = World(disk_free=5 * GIB, garbage=20 * GIB)
    world.run("web", 1)
    running = begin(world, DISK)
    await asyncio.sleep(60)
    assert world.names() == []
    assert ("EvictionThresholdMet", "Attempting to reclaim ephemeral-storage") in world.events
    assert running.pressures.conditions() == {"DiskPressure"}


async def test_garbage_on_another_disk_does_not_help(begin: Begin) -> None:
    # behaviours.md §15: "separate imagefs: imagefs both, nodefs nothing;"
    world = World(disk_free=5 * GIB, garbage=20 * GIB, layout=DiskLayout(layers_apart=True))
    world.run("web", 1)
    begin(world, DISK)
    await asyncio.sleep(1)
    assert world.names() == ["web"]
    assert world.garbage == 20 * GIB


@pytest.mark.parametrize(
    ("signal", "removed"), [(Signal.NODEFS, ["dead containers"]), (Signal.IMAGEFS, ["unused images"])]
)
async def test_where_images_have_a_disk_of_their_own_each_disk_gets_rid_of_its_own_garbage(
    begin: Begin, signal: Signal, removed: list[str]
) -> None:
    # behaviours.md §15: "split: imagefs images, nodefs and containerfs dead containers."
    world = World(disk_free=5 * GIB, layout=DiskLayout(images_apart=True))
    world.run("web", 1)
    begin(world, Threshold(signal=signal, amount="10%"))
    await asyncio.sleep(1)
    assert set(world.removed) == set(removed)
    assert world.names() == ["web"]


async def test_all_pods_above_their_own_limits_go_at_once(begin: Begin) -> None:
    # behaviours.md §15: "Local storage limits are checked each round before the thresholds, may evict several pods,
    # grace 1 s, without DisruptionTarget:"
    world = World()
    for name in ("one", "two"):
        world.run(name, 1, volumes=(empty_dir("data", size_limit="1Mi"),))
        world.volumes[name] = 2 * MIB
    world.run("fits", 1, volumes=(empty_dir("data", size_limit="1Mi"),))
    running = begin(world)
    await asyncio.sleep(1)
    assert sorted(world.names()) == ["one", "two"]
    assert {verdict.disruption for _, _, verdict, _ in world.ends} == {""}
    assert 'kubelet_evictions{eviction_signal="emptydirfs.limit"} 2' in running.page()


async def test_a_pod_that_does_not_stop_does_not_save_the_others(begin: Begin) -> None:
    world = World(others=6 * GIB, stops_after=600.0)
    world.run("stuck", 1200 * MIB)
    world.run("next", 400 * MIB)
    begin(world, MEMORY)
    await asyncio.sleep(60)
    assert world.names() == ["stuck", "next"]
    assert ("stuck", "ExceededGracePeriod") in world.events
    # behaviours.md §15: "After an eviction wait up to 30 s for the pod's containers and volumes to be cleaned."
    assert [at for at, _, _, _ in world.ends] == [pytest.approx(0.0), pytest.approx(40.0)]


async def test_without_figures_no_pod_is_evicted_and_a_finding_says_so(begin: Begin) -> None:
    world = World(others=7 * GIB, readable=False)
    world.run("hog", 900 * MIB)
    running = begin(world, MEMORY)
    await asyncio.sleep(15)
    assert world.names() == []
    (finding,) = running.record.findings()
    assert finding == "eviction has no figures, so no pod is evicted: the root control group cannot be read"
    world.readable = True
    await asyncio.sleep(10)
    assert world.names() == ["hog"]
    assert not running.record.findings()


async def test_a_node_with_room_is_looked_at_every_10_s_and_its_pods_not_at_all(begin: Begin) -> None:
    world = World(disk_free=80 * GIB)
    world.run("web", 1)
    begin(world, Threshold(signal=Signal.NODEFS, amount="10%"))
    await asyncio.sleep(35)
    assert world.looks == pytest.approx([0, 10, 20, 30])
    assert world.read_pods == 0


async def test_a_node_near_its_threshold_is_looked_at_every_second(begin: Begin) -> None:
    world = World(others=6 * GIB + 900 * MIB)
    world.run("hog", 1)
    begin(world, MEMORY)
    await asyncio.sleep(4.5)
    world.used["hog"] = 500 * MIB
    await asyncio.sleep(1)
    assert world.names() == ["hog"]
    assert world.ends[0][0] == pytest.approx(5.0)


async def test_the_agent_may_end_in_the_middle_of_an_eviction(begin: Begin) -> None:
    world = World(others=6 * GIB, stops_after=600.0)
    world.run("hog", 1500 * MIB)
    async with in_background(lambda: asyncio.sleep(3)):
        begin(world, MEMORY)
        await asyncio.sleep(2)
    assert world.names() == ["hog"]


async def test_the_record_holds_the_whole_decision(begin: Begin) -> None:
    world = World(others=5 * GIB)
    for number in range(23):
        world.run(f"p{number:02}", 100 * MIB + number, priority=number % 3)
    world.run("system", 10 * MIB, priority=2_000_000_000)
    running = begin(world, MEMORY)
    await asyncio.sleep(0.2)
    assert world.names() == ["p21"]
    record = running.record.of(None)
    assert record is not None
    kept = {}
    decision = ""
    for event in record.events:
        if isinstance(event, Decided):
            kept.update({key: text for key, text in event.inputs if key.isdecimal()})
            decision += str(event)
    assert [text.split()[0] for _, text in sorted(kept.items(), key=lambda entry: int(entry[0]))][:2] == [
        "default/p21",
        "default/p18",
    ]
    assert len(kept) == 24
    assert kept["24"] == "default/system (uses 10485760, requests 0, priority 2000000000, critical: stays)"
    assert "working set" in decision
    assert "nodefs.available=" in decision


@pytest.mark.parametrize(("waits", "gone"), [(False, ["large", "small"]), (True, ["large"])])
async def test_a_slow_clean_up_takes_a_second_pod_unless_eviction_waits_for_it(
    begin: Begin, waits: bool, gone: list[str]
) -> None:
    """Deleting a large volume takes a minute; the loop looks again after half of it."""
    world = World(disk_free=9 * GIB, cleaned_after=60.0)
    for name, size in (("large", 4 * GIB), ("small", GIB)):
        world.run(name, 1, volumes=(empty_dir("data"),))
        world.volumes[name] = size
    begin(world, DISK, waits=waits)
    await asyncio.sleep(200)
    assert world.names() == gone


async def test_eviction_waits_for_two_minutes_at_most(begin: Begin) -> None:
    world = World(disk_free=9 * GIB, cleaned_after=1000.0)
    for name, size in (("large", 4 * GIB), ("small", GIB)):
        world.run(name, 1, volumes=(empty_dir("data"),))
        world.volumes[name] = size
    begin(world, DISK, waits=True)
    await asyncio.sleep(110)
    assert world.names() == ["large"]
    await asyncio.sleep(30)
    assert world.names() == ["large", "small"]


async def test_eviction_does_not_wait_for_what_would_not_be_enough(begin: Begin) -> None:
    world = World(disk_free=2 * GIB, cleaned_after=60.0)
    for name, size in (("large", 4 * GIB), ("small", GIB)):
        world.run(name, 1, volumes=(empty_dir("data"),))
        world.volumes[name] = size
    begin(world, DISK, waits=True)
    await asyncio.sleep(50)
    assert world.names() == ["large", "small"]
