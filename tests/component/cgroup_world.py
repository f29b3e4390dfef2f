"""Pod cgroups on folders that behave as the kernel's do, with virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import LoopClock
from glasslet.host.threads import HERE, ThreadPlace
from glasslet.podspec.demand import pod_demand
from glasslet.record.stations import WaitKind
from glasslet.record.store import Record
from glasslet.resources.cgroup_manager import CgroupManager, Slices
from glasslet.resources.layout import CgroupLayout
from glasslet.resources.pod_cgroups import PodCgroups
from glasslet.resources.pod_limits import PodRules
from glasslet.resources.qos_cgroups import QoSCgroups
from glasslet.resources.qos_limits import QoSRules
from tests.builders.podspec import pod_of
from tests.fakes.cgroups import FoldersV1

T = TypeVar("T")


class TurnTaking:
    """Threads in one: a call happens at once, its answer comes a turn of the loop later."""

    async def run(
        self,
        call: Callable[[], T],
        *,
        on: str,
        key: str = "",
        kind: WaitKind = WaitKind.VOLUME,
        within: float = 30.0,
        place: ThreadPlace = HERE,
    ) -> T:
        assert on
        answer = call()
        await asyncio.sleep(0)
        return answer


class Durations:
    """What was measured, by kind."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def operation(self, kind: str, seconds: float) -> None:
        assert seconds >= 0
        self.kinds.append(kind)


class World:
    """A machine with version 1; `agent()` is a new agent on it."""

    def __init__(self, folder: Path, layout: CgroupLayout | None = None, *, slices: Slices | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.slices = slices
        self.machine = FoldersV1(folder)
        self.layout = layout or CgroupLayout()
        self.active: list[Pod] = []
        self.record = Record(clock=LoopClock())
        self.durations = Durations()
        self.manager = self.agent_manager()
        self.classes = self.qos(QoSRules())
        self.pods = self.agent()

    def agent_manager(self) -> CgroupManager:
        return CgroupManager(
            tree=self.machine.tree,
            threads=TurnTaking(),
            recorder=self.record,
            metrics=self.durations,
            slices=self.slices,
        )

    def qos(self, rules: QoSRules) -> QoSCgroups:
        return QoSCgroups(
            manager=self.manager,
            layout=self.layout,
            rules=rules,
            pods=lambda: [pod_demand(pod) for pod in self.active],
            recorder=self.record,
        )

    def agent(self) -> PodCgroups:
        """Knows nothing of what another did."""
        return PodCgroups(
            manager=self.manager,
            layout=self.layout,
            rules=PodRules(),
            demand=pod_demand,
            recorder=self.record,
            changed=self.classes.changed,
        )

    def shares(self, name: str) -> str:
        return self.machine.get("cpu", name, "cpu.shares")

    def writes_to(self, end: str) -> list[str]:
        """Values that were written to a file."""
        return [value for path, value in self.machine.writes if path.endswith(end)]


def burstable(uid: str, cpu: str = "500m") -> Pod:
    """A pod that requests CPU."""
    return pod_of({"resources": {"requests": {"cpu": cpu}}}, meta={"uid": uid})


def best_effort(uid: str) -> Pod:
    """A pod that requests nothing."""
    return pod_of(meta={"uid": uid})


class KnownPods:
    """What the orphans' cleaner asks for."""

    def __init__(self) -> None:
        self.ready = True
        self.living: set[str] = set()
        self.with_volumes: set[str] = set()

    def all_known(self) -> bool:
        return self.ready

    def alive(self, uid: PodUID) -> bool:
        return uid in self.living

    async def holds_volumes(self, uid: PodUID) -> bool:
        await asyncio.sleep(0)
        return uid in self.with_volumes
