"""A node under one kind of real pressure, with either kubelet: its pods come up, then one of them takes more.

Pods write files when they are told to end, so the order does not depend on what a kubelet says."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from benchmarks.contender import contender
from msgspec import Struct

from glasslet.host.cgroups.figures import Part
from glasslet.host.cgroups.figures_v1 import FiguresV1
from glasslet.host.cgroups.figures_v2 import FiguresV2
from glasslet.host.cgroups.tree import UNIFIED
from glasslet.host.cgroups.v1 import CgroupV1
from glasslet.stats.node_figures import task_limit
from tests.e2e.test_api_pods import wait_until
from tests.fakes.agent import NODE, Agent
from tests.fakes.cgroups import real_tree
from tests.fakes.containerd import PrivateContainerd
from tests.fakes.control_plane import ControlPlane, condition, is_ready
from tests.pressure.pods import ALL, PODS, Hunger, pods, priority_classes

POD_MEMORY = 4 * 2**30
"""Bytes that all pods together may have."""
SETTLED = 15.0
"""Seconds after its start in which a kubelet has read its figures at least once."""
CALM = 35.0
"""Seconds without a further end after which there is none to come: three of the slower kubelet's rounds."""
LONGEST = 240.0
CONDITIONS = {
    "memory": "MemoryPressure",
    "pids": "PIDPressure",
    "inodes": "DiskPressure",
    "ephemeral-storage": "DiskPressure",
}
"""The node condition of each resource."""


class Went(Struct, frozen=True, kw_only=True):
    """`order`: pods in the order in which they were told to end; `messages`: of those that were evicted; `reaction`:
    seconds from the crossing of the threshold to the first TERM; `recovery`: until the minimum reclaim was free;
    `pressures`: how often the node's condition became true."""

    order: tuple[str, ...]
    messages: dict[str, str]
    reaction: float
    recovery: float
    pressures: int
    under_pressure: bool


@contextlib.contextmanager
def pressed_node(
    plane: ControlPlane, runtime: PrivateContainerd, folder: Path, hunger: Hunger, program: tuple[str, ...] = ()
) -> Iterator[PressedNode]:
    """A kubelet (glasslet, if no program is given) whose pods and files are on a disk of their own."""
    with _small_disk(folder) as disk, contender(disk / "k", plane, runtime, program) as agent:
        yield PressedNode(plane, agent, hunger, disk)


class PressedNode:
    """One kubelet, not started yet."""

    def __init__(self, plane: ControlPlane, agent: Agent, hunger: Hunger, disk: Path) -> None:
        self.plane, self.agent, self.hunger = plane, agent, hunger
        self.line = 0
        self._disk = disk
        self.report = disk / "report"
        self.report.mkdir()
        self._group = f"{self._configuration()['cgroupRoot']}/kubepods"
        tree = real_tree()
        self._figures = FiguresV1(UNIFIED, mounts=tree.mounts) if isinstance(tree, CgroupV1) else FiguresV2(UNIFIED)

    def free(self) -> int:
        """What is left of the resource: bytes, inodes or process ids."""
        if self.hunger is ALL["memory"]:
            found = self._figures.read(self._group, Part.NOTHING_MORE)
            return POD_MEMORY - (found.memory.working_set if found and found.memory else 0)
        if self.hunger is ALL["pids"]:
            tasks = task_limit()
            return (tasks.maximum or 0) - (tasks.current or 0)
        disk = os.statvfs(self._disk)
        return disk.f_ffree if self.hunger is ALL["inodes"] else disk.f_bavail * disk.f_frsize

    def bring_up(self) -> None:
        """All pods run and use what they shall; then the threshold is set, below what is left."""
        self.set_room()
        self.agent.start()
        self.plane.wait_for(NODE, is_ready, kind="node")
        self.plane.apply(*priority_classes())
        self.plane.apply(*pods(self.hunger, str(self.report)))
        wait_until(lambda: len(self._named("up.")) == PODS, 180)
        wait_until(self._is_steady)
        hunger = self.hunger
        self.set_threshold(evictionMinimumReclaim={hunger.signal: str(hunger.reclaim * hunger.unit)})
        assert not self._named("term."), "a pod was told to end too early"

    def set_room(self, **more: Any) -> None:
        """All pods together have a share of the node's memory, and no threshold is set. `more`: fields of the
        configuration."""
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.configure(
            evictionHard={"memory.available": "0%"},
            kubeReserved={"memory": str(total - POD_MEMORY)},
            evictionPressureTransitionPeriod="10s",
            volumeStatsAggPeriod="1s",
            **more,
        )

    def set_threshold(self, **more: Any) -> None:
        """The kubelet starts again, with a threshold a margin below what is left now. `more`: as in `set_room`."""
        self.agent.terminate()
        self.line = self.free() - self.hunger.margin * self.hunger.unit
        self.configure(evictionHard={self.hunger.signal: str(self.line)}, **more)
        self.agent.start()
        time.sleep(SETTLED)

    def press(self, on_end: Callable[[int], None] = lambda _number: None) -> Went:
        """The trigger takes more. Returns when the node has recovered and no further pod ends. `on_end`: called after
        each pod that was told to end, with its number."""
        crossed = recovered = 0.0
        ended: list[str] = []
        calm = deadline = time.time() + LONGEST
        with _Conditions(self.plane, CONDITIONS[self.hunger.resource]) as seen:
            (self.report / "go").touch()
            while time.time() < min(calm, deadline):
                free = self.free()
                if not crossed and free < self.line:
                    crossed = time.time()
                if crossed and not recovered and free >= self.line + self.hunger.reclaim * self.hunger.unit:
                    recovered = time.time()
                for name in self._named("term."):
                    if name not in ended:
                        ended.append(name)
                        on_end(len(ended))
                        calm = time.time() + CALM
                time.sleep(0.01)
        order = sorted(ended, key=lambda name: self._told(name))
        assert order, f"no pod was evicted: {self.agent.tail_of_log()}"
        evicted = {
            name: pod["status"] for name, pod in self.plane.pods().items() if pod["status"].get("reason") == "Evicted"
        }
        return Went(
            order=tuple(order),
            messages={name: status["message"] for name, status in evicted.items()},
            reaction=self._told(order[0]) - crossed,
            recovery=recovered - crossed,
            pressures=seen.times,
            under_pressure=seen.last == "True",
        )

    def _is_steady(self) -> bool:
        """Whether no pod takes more any longer."""
        before = self.free()
        time.sleep(3)
        return abs(self.free() - before) < self.hunger.margin * self.hunger.unit / 10

    def _named(self, prefix: str) -> list[str]:
        return [name.removeprefix(prefix) for name in os.listdir(self.report) if name.startswith(prefix)]

    def _told(self, name: str) -> float:
        return (self.report / f"term.{name}").stat().st_mtime

    def _configuration(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load((self.agent.folder / "config.yaml").read_text())
        return found

    def configure(self, **changed: Any) -> None:
        """Changes fields of the configuration. It counts from the next start on."""
        (self.agent.folder / "config.yaml").write_text(yaml.safe_dump(self._configuration() | changed))


class _Conditions:
    """Looks at a condition of the node every second. `times`: how often it became true."""

    def __init__(self, plane: ControlPlane, kind: str) -> None:
        self.times, self.last = 0, "False"
        self._plane, self._kind = plane, kind
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> _Conditions:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(1.0):
            now = condition(self._plane.get("node", NODE), self._kind)
            self.times += (self.last, now) == ("False", "True")
            self.last = now


@contextlib.contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    """An ext4 file system of 6 GiB and 80,000 inodes."""
    image, place = folder / "disk.img", folder / "d"
    place.mkdir(exist_ok=True)
    with image.open("wb") as file:
        file.truncate(6 * 2**30)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-N", "80000", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        image.unlink()
