"""Narrow protocols of everything that pod workers need from other rooms."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from glasslet.api.container import Container
from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.pod_status import PodStatus
from glasslet.exchange.admission import Admitted, Rejected
from glasslet.exchange.facts import ProbeOutcome, StatusFacts
from glasslet.exchange.shares import ContainerShare
from glasslet.exchange.volume import MountedVolume, SubPath
from glasslet.host.files.env_files import EnvFile
from glasslet.podspec.object_environment import ResolvedEnvironment
from glasslet.podspec.request import UserNamespace
from glasslet.runtime.model import Image, ObservedContainer, ObservedPod
from glasslet.runtime.protocols import RegistryAuth
from glasslet.runtime.spec import ContainerDevices, SandboxSpec


class Observed(Protocol):
    """The observed pods (`runtime.observed`)."""

    synced: asyncio.Event

    def get(self, uid: PodUID) -> ObservedPod | None: ...
    def all(self) -> tuple[ObservedPod, ...]: ...
    def settled(self, uid: PodUID) -> bool:
        """Whether `get(uid)` is up to date."""

    async def refresh(self, uid: PodUID) -> ObservedPod | None:
        """A read that began after this call. Raises RuntimeCallError."""

    async def refresh_sandbox(self, pod: PodRef, sandbox: SandboxID) -> ObservedPod | None:
        """Reads one sandbox; the rest of the pod stays as known. Raises RuntimeCallError."""

    async def refresh_container(
        self, pod: PodRef, container: ContainerID, sandbox: SandboxID | None = None
    ) -> ObservedPod | None:
        """Reads one container, which runs in that sandbox, if it is known. Raises RuntimeCallError."""

    def changing(self, uid: PodUID, *ids: str) -> AbstractContextManager[None]:
        """The body creates something of this pod in the runtime, or changes these ids, and reads it back."""

    def subscribe(
        self, callback: Callable[[PodUID, ObservedPod | None, ObservedPod | None], None]
    ) -> Callable[[], None]: ...


class ImageUnavailable(Protocol):
    """The reason why there is no image: waiting reason and message in the API."""

    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def retry_at(self) -> float | None:
        """Loop time of the next try; None: not without news."""


class Images(Protocol):
    """Brings images onto the node (`runtime.images`)."""

    async def ensure(
        self,
        pod: Pod,
        container: Container,
        *,
        sandbox: SandboxSpec | None,
        auths: tuple[RegistryAuth, ...],
        ask_plugins: Callable[[], Awaitable[tuple[RegistryAuth, ...]]],
    ) -> Image | ImageUnavailable: ...


class SubPaths(Protocol):
    """Shows parts of mounted volumes on the host."""

    async def bind_sub_paths(
        self, ref: PodRef, container: str, volumes: Mapping[str, MountedVolume], wanted: Iterable[SubPath]
    ) -> Mapping[int, str]:
        """The path of each part, by the mount's position in the container; one that failed is left out."""


class PodVolumes(SubPaths, Protocol):
    """Mounts a pod's volumes (`volumes`)."""

    async def prepare(self, pod: Pod) -> Mapping[str, MountedVolume]:
        """All volumes by name. Raises VolumeNotReady."""

    async def refresh(self, pod: Pod) -> None:
        """Brings changed data into mounted volumes. Raises VolumeNotReady; then they stay as they were."""

    async def tear_down(self, ref: PodRef) -> None:
        """Unmounts everything of the pod; idempotent. Raises VolumeNotReady while an unmount fails."""


class ConfigurationData(Protocol):
    """Data that pods take from objects of the API server: ConfigMaps, Secrets, services."""

    def register(self, pod: Pod) -> None:
        """The pod needs what it names from now on; again and again is fine."""

    def forget(self, ref: PodRef) -> None:
        """The pod needs no data any more."""

    async def environment(self, pod: Pod, container: Container) -> ResolvedEnvironment:
        """The part of the container's environment that is not in the pod. Raises ConfigError."""

    async def credentials(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """Credentials for a pull, in the order in which they are to be tried."""

    async def plugin_credentials(self, pod: Pod, image: str) -> tuple[RegistryAuth, ...]:
        """Those of credential provider plugins, tried after the others. Called only when an image is pulled: it
        starts processes."""


class FilesOfPods(Protocol):
    """Directories and files of a pod on this node (`host.pod_files`). All raise OSError."""

    async def prepare(self, pod: Pod) -> None:
        """Makes the pod's directories."""

    async def etc_hosts(self, pod: Pod, ips: tuple[str, ...]) -> str:
        """Writes the hosts file; its path, "" where the pod gets none."""

    async def env_files(
        self, pod: Pod, wanted: Mapping[tuple[str, str], Collection[str]]
    ) -> Mapping[tuple[str, str], EnvFile]:
        """Variables from files in the pod's volumes: names, by the volume's path and the file's path in it."""

    async def termination_log(self, pod: Pod, container: Container) -> str:
        """Makes a fresh termination log; its path, "" where the container has none."""

    async def termination_message(self, pod: Pod, container: Container, instance: ObservedContainer) -> str:
        """The termination message of an exited instance."""

    def last_attempt(self, ref: PodRef, container: str) -> int | None:
        """The highest attempt that has a log, None without any."""

    async def link_log(self, ref: PodRef, container: str, instance: ContainerID, log_path: str) -> None:
        """Links the log for collectors, if there is one."""

    async def remove_log(self, ref: PodRef, instance: ObservedContainer) -> None:
        """Removes the instance's log files and link."""

    async def remove(self, ref: PodRef) -> None:
        """Removes all of the pod's directories and logs."""


class Cgroups(Protocol):
    """Pod cgroups (`resources`)."""

    async def ensure(self, pod: Pod) -> str:
        """Creates the pod's cgroup; the cgroup parent for its sandbox, "" where the runtime's default applies."""

    async def widen(self, old: Pod, new: Pod) -> None:
        """Widens the pod's cgroup to what either needs, before its containers change from one to the other. OSError."""

    async def adjust(self, pod: Pod) -> None:
        """Sets the pod's cgroup to what it says now. Raises OSError."""

    async def remove(self, ref: PodRef) -> None: ...


class RuntimeHandlers(Protocol):
    """The handler that a pod runs under, and the ids that it gets there (`pods.runtime_handlers`)."""

    async def handler(self, pod: Pod) -> str:
        """The name of the pod's handler, "" for the default one. Raises ConfigError."""

    def user_namespace(self, pod: Pod, handler: str) -> UserNamespace | None:
        """The pod's own ids, the same while it lives; None for a pod that uses the node's. Raises ConfigError."""

    def release(self, ref: PodRef) -> None:
        """The pod ended: its ids are free again."""


class Devices(Protocol):
    """Devices of device plugins (`devices`)."""

    async def allocate(self, pod: Pod) -> Rejected | None:
        """Allocates the devices that the pod was admitted with; may wait long for a plugin. A refusal is final."""

    async def prepare(self, pod: Pod, container: Container) -> ContainerDevices:
        """Before a container is created: what it is given for its devices. Raises DeviceProblem."""


class ResourceClaims(Protocol):
    """Claims of devices that DRA drivers prepare (`dra`). All raise DeviceClaimProblem."""

    async def prepare(self, pod: Pod) -> None:
        """Before a sandbox is created: has all claims of the pod prepared; may wait long for a driver."""

    def used_by(self, pod: PodRef) -> bool:
        """Whether the pod has claims that were, or may be, prepared."""

    async def unprepare(self, pod: PodRef) -> None:
        """Once nothing of the pod runs: gives its claims back; idempotent."""

    def cdi_ids(self, pod: Pod, container: Container) -> tuple[str, ...]:
        """The container's devices by their CDI names."""


class Shares(Protocol):
    """CPUs and memory that containers have for themselves (`managers`)."""

    async def share(self, pod: Pod, container: Container) -> ContainerShare:
        """Before a container is created: what it may use."""

    def without_quota(self, uid: str, container: str = "") -> bool:
        """Whether the pod's, or the container's, time on its CPUs is not limited."""


class PodEventSink(Protocol):
    """Takes events for the API (`kubeapi`); without an API server they are logged. Never blocks, never raises."""

    def __call__(self, pod: PodRef, type_: str, reason: str, message: str, field_path: str = "", /) -> None:
        """`type_` is Normal or Warning; `field_path` names a container, "" for the pod."""


NodeEventSink = Callable[[str, str, str], None]
"""Takes events about the node: type, reason, message. Never blocks, never raises."""

Admit = Callable[[Pod, Sequence[Pod]], Admitted | Rejected]
"""`admission`: may this pod run here, beside those that occupy the node?"""

StatusBuilder = Callable[[StatusFacts], PodStatus]
"""`status.builder`."""

Publish = Callable[[Pod, PodStatus], None]
"""Takes a pod's newest status; called only when it changed."""


class StatusFollower(Protocol):
    """Follows each status as it is built (`probes`)."""

    def begin(self, facts: StatusFacts) -> StatusFacts:
        """The facts, with what is known of container instances that are new."""

    def follow(self, facts: StatusFacts, status: PodStatus) -> None:
        """This status was built from these facts."""


ProbeOutcomes = Callable[[PodRef], Mapping[ContainerID, ProbeOutcome]]
"""The newest probe results of a pod, by container instance."""

NORMAL = "Normal"
WARNING = "Warning"
