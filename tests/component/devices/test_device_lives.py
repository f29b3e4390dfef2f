"""Random lives of pods with devices, beside a plugin that lies, fails, hangs, goes and comes late, and an agent that
dies: no device is ever two pods', and none stays with a pod that is gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.devices.checkpoint_file import CheckpointFile
from glasslet.devices.inventory import OfferedDevice
from glasslet.devices.manager import DeviceManager
from glasslet.devices.offers import Offers
from glasslet.devices.plugin import DevicePlugin, DevicePluginFailed, PluginOptions
from glasslet.record.store import Record
from glasslet.telemetry.metrics.catalog import Metrics
from tests.component.device_world import GPU, gpu_pod
from tests.fakes.inline_threads import InlineThreads

NAMES = "abcde"
MOVES = ("come", "come", "come", "go", "tell", "lose", "return", "fail", "hang", "answer", "die")


class LyingPlugin(DevicePlugin):
    """One connection to a plugin; it says whatever its `liar` does."""

    def __init__(self, liar: Liar) -> None:
        super().__init__(resource=GPU, socket="gpu.sock", recorder=Record())
        self.options = PluginOptions(preferred_allocation=True)
        self._liar = liar
        self._news: asyncio.Queue[tuple[OfferedDevice, ...] | None] = asyncio.Queue()

    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    def tell(self, devices: tuple[OfferedDevice, ...] | None) -> None:
        self._news.put_nowait(devices)

    async def watch(self) -> AsyncIterator[tuple[OfferedDevice, ...]]:
        while (devices := await self._news.get()) is not None:
            yield devices

    async def preferred(self, available: Collection[str], reused: Collection[str], amount: int) -> tuple[str, ...]:
        # Devices of others, devices that are not there, one of them twice, more than were asked for.
        return ("nothing", "a", "a", *reversed(NAMES))

    async def allocate(self, ids: Collection[str]) -> bytes:
        await self._liar.held.wait()
        if self._liar.fails:
            raise DevicePluginFailed("no")
        assert not set(ids) & self._liar.in_use, f"{ids} are asked for, {self._liar.in_use} are in use"
        return b""


class Liar:
    """The plugin's process, which outlives agents. `in_use`: the devices of containers that run."""

    def __init__(self) -> None:
        self.fails = False
        self.held = asyncio.Event()
        self.held.set()
        self.in_use: set[str] = set()
        self.devices = tuple(OfferedDevice(id=name, numa=(at % 2,)) for at, name in enumerate(NAMES))
        self.connections: list[LyingPlugin] = []


class Life:
    """The node: pods that run, and the agent of now."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.liar = str(folder), Liar()
        self.pods: dict[str, Pod] = {}
        self.running: dict[str, frozenset[str]] = {}
        self.allocating: dict[str, asyncio.Task[None]] = {}
        self.number = 0

    def stands(self, uid: PodUID) -> bool:
        return uid in self.running

    def all_known(self) -> bool:
        return True

    async def start_agent(self) -> None:
        self.offers = Offers(recorder=Record(), dial=self._dial)
        file = CheckpointFile(folder=self.folder, threads=InlineThreads(), recorder=Record())
        self.manager = DeviceManager(
            file=file,
            offers=self.offers,
            pods=self,
            metrics=Metrics().devices,
            recorder=Record(),
            numa_nodes=(0, 1),
        )
        await self.manager.load()
        self.following = asyncio.ensure_future(self.offers.run())
        for one in self.pods.values():
            if one.metadata.uid in self.running:
                assert self.manager.claim(one, list(self.pods.values())) is None, "a running pod is never refused"

    def _dial(self, resource: str, socket: str) -> LyingPlugin:
        self.liar.connections.append(LyingPlugin(self.liar))
        return self.liar.connections[-1]

    async def happen(self, move: str, number: int) -> None:
        await getattr(self, move)(number)
        for _ in range(20):
            await asyncio.sleep(0)
        self.check()

    async def come(self, count: int) -> None:
        self.number += 1
        it = gpu_pod(f"p{self.number}", count=max(count, 1))
        uid = it.metadata.uid
        others = list(self.pods.values())
        self.manager.begin(it, others)
        if self.manager.claim_for(it, "main", 1 + count % 3) is None:
            self.pods[uid] = it
            self.allocating[uid] = asyncio.ensure_future(self._allocate(it))

    async def _allocate(self, it: Pod) -> None:
        uid = it.metadata.uid
        if await self.manager.allocate(it) is not None:
            del self.pods[uid]
            return
        ids = self.manager.allocations.of_pod(uid).get(("main", GPU), frozenset())
        if ids:
            assert len(ids) == it.spec.containers[0].resources.limits[GPU].value()
            self.running[uid] = ids
            self.liar.in_use |= ids
        else:
            # Its resource is gone: it is no resource of a plugin any more.
            del self.pods[uid]

    async def go(self, number: int) -> None:
        if self.pods:
            uid = sorted(self.pods)[number % len(self.pods)]
            if (task := self.allocating.pop(uid, None)) is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            self.pods.pop(uid, None)
            self.liar.in_use -= self.running.pop(uid, frozenset())

    async def tell(self, number: int) -> None:
        """Other devices, of which some are unhealthy, some are twice, some on nodes that do not exist."""
        told = [OfferedDevice(id=name, healthy=bool(number & 1 << at)) for at, name in enumerate(NAMES[number % 3 :])]
        told.append(OfferedDevice(id=NAMES[number % 5], numa=(-1, 7, 10**12)))
        for one in self.liar.connections[-1:]:
            one.tell(tuple(told))

    async def lose(self, _number: int) -> None:
        for one in self.liar.connections[-1:]:
            one.tell(None)

    async def return_(self, _number: int) -> None:
        await self.offers.register(GPU, "gpu.sock")
        self.liar.connections[-1].tell(self.liar.devices)

    async def fail(self, _number: int) -> None:
        self.liar.fails = not self.liar.fails

    async def hang(self, _number: int) -> None:
        self.liar.held.clear()

    async def answer(self, _number: int) -> None:
        self.liar.held.set()

    async def die(self, number: int) -> None:
        """The agent is killed, and the next one starts; its plugin may be late."""
        await self._end_agent()
        for uid in self.pods.keys() - self.running.keys():
            del self.pods[uid]
        await self.start_agent()
        if number % 2:
            await self.return_(0)

    async def _end_agent(self) -> None:
        tasks = [*self.allocating.values(), self.following]
        self.allocating.clear()
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)

    def check(self) -> None:
        for task in [task for task in self.allocating.values() if task.done() and not task.cancelled()]:
            task.result()
        taken: list[str] = []
        for uid in self.manager.allocations.pods() & self.pods.keys():
            taken += [name for ids in self.manager.allocations.of_pod(uid).values() for name in ids]
        assert len(taken) == len(set(taken)), f"two pods have one device: {sorted(taken)}"
        for uid, ids in self.running.items():
            assert self.manager.allocations.of_pod(uid).get(("main", GPU)) == ids, f"{uid} lost its devices"

    async def end(self) -> None:
        """All pods go: every device can be given out again."""
        await self.answer(0)
        while self.pods:
            await self.happen("go", 0)
        self.liar.fails = False
        await self.happen("return_", 0)
        await self.happen("come", len(NAMES))
        assert list(self.running.values()) == [frozenset(NAMES)]
        await self._end_agent()


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 31)), max_size=25))
def test_no_device_is_ever_two_pods(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]) -> None:
    async def live() -> None:
        life = Life(tmp_path_factory.mktemp("devices"))
        await life.start_agent()
        await life.happen("return_", 0)
        for move, number in steps:
            await life.happen("return_" if move == "return" else move, number % 4 if move == "come" else number)
        await life.end()

    asyncio.run(live())
