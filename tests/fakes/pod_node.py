"""The node's side of pods, in memory: volumes, files, cgroups, events, published statuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from glasslet.api.container import Container
from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.pod_status import PodStatus
from glasslet.exchange.admission import Rejected
from glasslet.exchange.volume import MountedVolume, SubPath
from glasslet.host.files.env_files import EnvFile, read_env_values
from glasslet.runtime.model import ObservedContainer
from glasslet.runtime.spec import ContainerDevices
from glasslet.telemetry.metrics.pods import PodWork
from glasslet.volumes.errors import VolumeNotReady


class NoDevices:
    """Implements `collaborators.Devices` of an agent without device plugins."""

    async def allocate(self, pod: Pod) -> Rejected | None:
        return None

    async def prepare(self, pod: Pod, container: Container) -> ContainerDevices:
        return ContainerDevices()


class Nothing:
    """Implements `remains.Desired` for updates that tests give to the workers themselves. `told`: whether every source
    counts as having reported."""

    def __init__(self, told: Callable[[], bool]) -> None:
        self._told = told

    def ready(self) -> bool:
        return self._told()

    def get(self, uid: PodUID) -> Pod | None:
        return None


async def no_mounts(uid: PodUID) -> bool:
    """Nothing is mounted for any pod."""
    return False


class Uncounted:
    """Implements `reporting.WorkMetrics` and `reporting.StartMetrics`; counts nothing."""

    def worked(self, work: PodWork, seconds: float) -> None: ...
    def worker_started(self, seconds_since_seen: float, *, containers: int) -> None: ...
    def sandbox_attempted(self, *, user_namespace: bool) -> None: ...
    def sandbox_failed(self, *, user_namespace: bool) -> None: ...
    def container_attempted(self, kind: str) -> None: ...
    def image_volumes(self, requested: int, mounted: int, *, failed: bool) -> None: ...
    def container_failed(self, kind: str, reason: str) -> None: ...
    def pod_restarted(self, *, static: bool) -> None: ...
    def orphan_found(self) -> None: ...
    def hook_fell_back(self) -> None: ...
    def sleep_cut(self) -> None: ...
    def running(self, seconds: float) -> None: ...
    def started(self, total_seconds: float, *, sli_seconds: float | None, host_network: bool = False) -> None: ...


UNCOUNTED = Uncounted()


class FakeVolumes:
    """Volumes are ready at once, unless `problem` says why not. Tearing down what is in use is refused."""

    def __init__(self) -> None:
        self.problem = ""
        self.problems: tuple[str, ...] = ()
        self.takes = 0.0
        self.mounted: dict[PodUID, Mapping[str, MountedVolume]] = {}
        self.prepared = 0
        self.refreshed: list[Pod] = []

    async def prepare(self, pod: Pod) -> Mapping[str, MountedVolume]:
        self.prepared += 1
        await asyncio.sleep(self.takes)
        self._refuse()
        volumes = {v.name: MountedVolume(name=v.name, path=f"/volumes/{v.name}") for v in pod.spec.volumes}
        self.mounted[PodUID(pod.metadata.uid)] = volumes
        return volumes

    async def refresh(self, pod: Pod) -> None:
        self.refreshed.append(pod)
        await asyncio.sleep(self.takes)
        self._refuse()

    async def bind_sub_paths(
        self, ref: PodRef, container: str, volumes: Mapping[str, MountedVolume], wanted: Iterable[SubPath]
    ) -> Mapping[int, str]:
        await asyncio.sleep(0)
        return {part.index: f"{volumes[part.volume].path}/{part.path}" for part in wanted}

    async def tear_down(self, ref: PodRef) -> None:
        await asyncio.sleep(0)
        self._refuse()
        self.mounted.pop(ref.uid, None)

    def _refuse(self) -> None:
        if problems := (self.problem,) if self.problem else self.problems:
            raise VolumeNotReady(*problems)


class FakePodFiles:
    """Directories, logs and links by name only. `logged`: highest attempt per container that left a log."""

    def __init__(self) -> None:
        self.pods: set[PodUID] = set()
        self.logged: dict[str, int] = {}
        self.links: set[ContainerID] = set()
        self.messages: dict[ContainerID, str] = {}
        self.removed: list[PodRef] = []
        self.log_problem: OSError | None = None
        """Links and messages of ended containers cannot be had."""

    async def prepare(self, pod: Pod) -> None:
        await asyncio.sleep(0)
        self.pods.add(PodUID(pod.metadata.uid))

    async def etc_hosts(self, pod: Pod, ips: tuple[str, ...]) -> str:
        await asyncio.sleep(0)
        return f"/pods/{pod.metadata.uid}/etc-hosts" if ips else ""

    async def env_files(
        self, pod: Pod, wanted: Mapping[tuple[str, str], Collection[str]]
    ) -> Mapping[tuple[str, str], EnvFile]:
        return {(volume, path): read_env_values(volume, path, keys) for (volume, path), keys in wanted.items()}

    async def termination_log(self, pod: Pod, container: Container) -> str:
        await asyncio.sleep(0)
        return f"/pods/{pod.metadata.uid}/containers/{container.name}/log"

    async def termination_message(self, pod: Pod, container: Container, instance: ObservedContainer) -> str:
        if self.log_problem is not None:
            raise self.log_problem
        return self.messages.get(instance.id, "")

    def last_attempt(self, ref: PodRef, container: str) -> int | None:
        return self.logged.get(container)

    async def link_log(self, ref: PodRef, container: str, instance: ContainerID, log_path: str) -> None:
        if self.log_problem is not None:
            raise self.log_problem
        self.links.add(instance)

    async def remove_log(self, ref: PodRef, instance: ObservedContainer) -> None:
        await asyncio.sleep(0)
        self.links.discard(instance.id)

    async def remove(self, ref: PodRef) -> None:
        await asyncio.sleep(0)
        self.pods.discard(ref.uid)
        self.removed.append(ref)


class FakeCgroups:
    """Pod cgroups by uid."""

    def __init__(self) -> None:
        self.made: set[PodUID] = set()
        self.given: list[Pod] = []
        """What pods were let have, one after the other."""
        self.problem: OSError | None = None

    async def ensure(self, pod: Pod) -> str:
        self.made.add(PodUID(pod.metadata.uid))
        return f"/kubepods/pod{pod.metadata.uid}"

    async def widen(self, old: Pod, new: Pod) -> None:
        await asyncio.sleep(0)
        if self.problem is not None:
            raise self.problem

    async def adjust(self, pod: Pod) -> None:
        await asyncio.sleep(0)
        self.given.append(pod)

    async def remove(self, ref: PodRef) -> None:
        self.made.discard(ref.uid)


@dataclass(frozen=True)
class ToldEvent:
    """One event."""

    type_: str
    reason: str
    message: str
    field_path: str


@dataclass
class EventLog:
    """Takes events."""

    told: list[ToldEvent] = field(default_factory=list)

    def __call__(self, pod: PodRef, type_: str, reason: str, message: str, field_path: str = "", /) -> None:
        self.told.append(ToldEvent(type_, reason, message, field_path))

    def reasons(self) -> list[str]:
        """The reasons in order."""
        return [event.reason for event in self.told]

    def of(self, reason: str) -> list[ToldEvent]:
        """All events of that reason."""
        return [event for event in self.told if event.reason == reason]


@dataclass
class StatusBoard:
    """Takes published statuses."""

    told: list[tuple[str, PodStatus]] = field(default_factory=list)
    finished: dict[str, PodStatus] = field(default_factory=dict)

    def publish(self, pod: Pod, status: PodStatus) -> None:
        self.told.append((pod.metadata.uid, status))

    def finish(self, pod: Pod, status: PodStatus) -> None:
        self.finished[pod.metadata.uid] = status

    def of(self, uid: str) -> list[PodStatus]:
        """All statuses of a pod in order."""
        return [status for told, status in self.told if told == uid]

    def newest(self, uid: str) -> PodStatus:
        """The last status of a pod."""
        return self.of(uid)[-1]

    def phases(self, uid: str) -> list[str]:
        """The phases that a pod went through, without repetition."""
        found: list[str] = []
        for status in self.of(uid):
            if not found or found[-1] != status.phase:
                found.append(status.phase)
        return found
