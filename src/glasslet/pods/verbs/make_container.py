"""Making one container, not yet running: image, configuration, CreateContainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.container import Container
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.exchange.claims import DeviceClaimProblem
from glasslet.exchange.devices import DeviceProblem
from glasslet.exchange.facts import Waiting
from glasslet.exchange.volume import MountedVolume
from glasslet.pods.collaborators import (
    WARNING,
    ConfigurationData,
    Devices,
    FilesOfPods,
    Images,
    Observed,
    ResourceClaims,
    Shares,
    SubPaths,
)
from glasslet.pods.failures import StepFailed, runtime_failed
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner import StartContainer
from glasslet.pods.reporting import Reporting
from glasslet.pods.verbs.container_images import ContainerImages
from glasslet.pods.verbs.create_sandbox import SandboxCreator
from glasslet.pods.verbs.earlier_agent import while_unsettled
from glasslet.pods.verbs.env_files import file_keys
from glasslet.podspec.container import container_spec
from glasslet.podspec.errors import ConfigError, container_error
from glasslet.podspec.labels import RESTART_COUNT
from glasslet.podspec.mounts import sub_paths
from glasslet.podspec.request import ContainerRequest, NodeFacts
from glasslet.record.stations import UNUSABLE, Station
from glasslet.runtime.errors import NameReserved, RuntimeCallError
from glasslet.runtime.model import Image, ObservedPod, ObservedSandbox
from glasslet.runtime.protocols import RuntimeService
from glasslet.runtime.spec import ContainerDevices, ContainerSpec, SandboxSpec

MAX_TAKEN_NAMES = 5
"""Attempts in a row whose name is reserved without a visible owner, before the start counts as failed."""


class _Home(Struct, frozen=True, kw_only=True):
    """The sandbox that the container is to live in, its specification, and its pod as last observed."""

    sandbox: ObservedSandbox
    spec: SandboxSpec
    pod: ObservedPod


class _Made(Struct, frozen=True):
    """What a container is created from: its sandbox, image, volumes and attempt."""

    home: _Home
    image: Image
    volumes: Mapping[str, MountedVolume]
    attempt: int


class ContainerMaker:
    """Makes containers."""

    def __init__(
        self,
        *,
        runtime: RuntimeService,
        observed: Observed,
        images: Images,
        data: ConfigurationData,
        devices: Devices,
        shares: Shares,
        claims: ResourceClaims,
        volumes: SubPaths,
        files: FilesOfPods,
        sandboxes: SandboxCreator,
        node: Callable[[], NodeFacts],
        report: Reporting,
    ) -> None:
        self._runtime = runtime
        self._observed = observed
        self._images = ContainerImages(images=images, data=data, report=report)
        self._data = data
        self._devices = devices
        self._shares = shares
        self._claims = claims
        self._volumes = volumes
        self._files = files
        self._sandboxes = sandboxes
        self._node = node
        self._report = report
        self._recorder = report.recorder
        self._events = report.events
        self._clock = report.clock

    async def make(self, memory: PodMemory, action: StartContainer) -> ContainerID:
        """The created container. Raises StepFailed, and NameReserved for an instance that the caller should look at."""
        home = self._home(memory, action)
        began = self._clock.monotonic()
        try:
            image = await self._images.own(memory, action.container, home.spec)
            volumes = await self._images.mounted(memory, action.container, home.spec)
        finally:
            if memory.images is not None:
                memory.images.append((began, self._clock.monotonic()))
        attempt = action.attempt
        if attempt is None:
            logged = self._files.last_attempt(memory.ref, action.name)
            attempt = 0 if logged is None else logged + 1
        async with self._report.at(Station.CREATED, container=action.name, detail=f"attempt {attempt}"):
            try:
                spec = await self._spec(memory, action, _Made(home, image, volumes, attempt))
                return await self._create(home, spec)
            except ConfigError as error:
                self._failed(memory, action, error.message)
                waiting = Waiting(reason=error.reason, message=error.message)
                raise StepFailed(action.name, f"{error.reason}: {error.message}", waiting=waiting) from error
            except OSError as error:
                place = f" ({error.filename})" if error.filename else ""
                message = f"files of the container could not be made{place}: {error.strerror}"
                self._failed(memory, action, message)
                waiting = Waiting(reason="CreateContainerConfigError", message=message)
                raise StepFailed(action.name, message, waiting=waiting) from error
            except NameReserved:
                raise
            except RuntimeCallError as error:
                self._failed(memory, action, error.message)
                with suppress(RuntimeCallError):
                    # It may have been created nevertheless, or the sandbox may have ended: the next plan should know.
                    await self._observed.refresh(memory.ref.uid)
                waiting = Waiting(reason="CreateContainerError", message=error.message)
                raise runtime_failed(action.name, error, waiting=waiting) from error

    def _home(self, memory: PodMemory, action: StartContainer) -> _Home:
        observed = self._observed.get(memory.ref.uid)
        sandbox = observed.ready_sandbox() if observed else None
        if observed is None or sandbox is None:
            raise StepFailed(action.name, "the sandbox is gone")
        try:
            return _Home(sandbox=sandbox, spec=self._sandboxes.spec(memory, sandbox), pod=observed)
        except (ConfigError, OSError) as error:
            raise StepFailed(action.name, f"the sandbox {UNUSABLE}{error}") from error

    async def _spec(self, memory: PodMemory, action: StartContainer, made: _Made) -> ContainerSpec:
        home, volumes = made.home, made.volumes
        pod, container, node = memory.pod, action.container, self._node()
        ips = node.host_ips if pod.spec.host_network else home.sandbox.ips
        environment = await self._data.environment(pod, container)
        request = ContainerRequest(
            pod=pod,
            container=container,
            attempt=made.attempt,
            image=made.image,
            node=node,
            pod_ips=ips,
            volumes=volumes,
            envs_from=environment.envs_from,
            key_refs=environment.key_refs,
            references_resolved=environment.resolved,
            etc_hosts=await self._files.etc_hosts(pod, ips),
            termination_log=await self._files.termination_log(pod, container),
            target_id=_target(memory, action, home),
            file_keys=await file_keys(self._files, pod, container, volumes),
            runtime_handler=home.spec.runtime_handler,
            user_namespace=self._sandboxes.user_namespace(memory, home.sandbox),
            devices=await self._prepare_devices(pod, container),
            share=await self._shares.share(pod, container),
        )
        if wanted := sub_paths(request):
            bound = await self._volumes.bind_sub_paths(memory.ref, container.name, volumes, wanted)
            request = replace(request, sub_paths=bound)
        return container_spec(request)

    async def _prepare_devices(self, pod: Pod, container: Container) -> ContainerDevices:
        try:
            claimed = self._claims.cdi_ids(pod, container)
            given = await self._devices.prepare(pod, container)
        except (DeviceClaimProblem, DeviceProblem) as error:
            raise container_error(str(error)) from error
        return replace(given, cdi_devices=(*claimed, *given.cdi_devices)) if claimed else given

    async def _create(self, home: _Home, spec: ContainerSpec) -> ContainerID:
        """Creates it, past names that are reserved without a visible owner. Raises NameReserved for a visible one."""
        for _ in range(MAX_TAKEN_NAMES):
            async for _ in while_unsettled(self._recorder, on="a container under the same name"):
                try:
                    with self._observed.changing(home.pod.uid):
                        return await self._runtime.create_container(home.sandbox.id, spec, home.spec)
                except NameReserved:
                    found = await self._observed.refresh(home.pod.uid)
                    if found and any(c.name == spec.name and c.attempt == spec.attempt for c in found.containers):
                        raise
            self._recorder.decided(
                "container name is reserved without a visible owner: next attempt", attempt=spec.attempt
            )
            spec = _with_attempt(spec, spec.attempt + 1)
        return await self._runtime.create_container(home.sandbox.id, spec, home.spec)

    def _failed(self, memory: PodMemory, action: StartContainer, message: str) -> None:
        self._events(memory.ref, WARNING, "Failed", f"Error: {message}", action.role.field_path(action.name))


def _with_attempt(spec: ContainerSpec, attempt: int) -> ContainerSpec:
    """The container as another attempt; attempt, restart count and log name go together."""
    log_path = f"{spec.log_path.rpartition('/')[0]}/{attempt}.log" if spec.log_path else ""
    annotations = {**spec.annotations, RESTART_COUNT: str(attempt)}
    return replace(spec, attempt=attempt, log_path=log_path, annotations=annotations)


def _target(memory: PodMemory, action: StartContainer, home: _Home) -> ContainerID | None:
    """The container whose processes an ephemeral container wants to see. Raises ConfigError if there is none of its
    name: seeing nothing instead would look like success."""
    names = {c.name: c.target_container_name for c in memory.pod.spec.ephemeral_containers}
    target = names.get(action.name)
    if not target:
        return None
    instance = home.pod.newest(target)
    if instance is None:
        raise container_error(f"unable to find target container {target}")
    return instance.id
