"""RuntimeService over gRPC: each method is one verb, but for the two reads, which join several."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from glasslet.api.object import ContainerID, PodUID, SandboxID
from glasslet.record.standing import FindingRecorder, StandingFindings
from glasslet.runtime.cri._generated import container_pb2, pod_sandbox_pb2, runtime_pb2, stats_pb2
from glasslet.runtime.cri.calls import Calls, refusing_unencodable
from glasslet.runtime.cri.cgroup_driver import driver_in_settings
from glasslet.runtime.cri.decode import (
    decode_container,
    decode_listed_container,
    decode_listed_sandbox,
    decode_runtime_status,
    decode_sandbox,
    decode_sandbox_image,
    lacking,
)
from glasslet.runtime.cri.decode_stats import decode_container_usage, decode_sandbox_usage
from glasslet.runtime.cri.encode_container import encode_container
from glasslet.runtime.cri.encode_linux import encode_resources
from glasslet.runtime.cri.encode_sandbox import encode_sandbox
from glasslet.runtime.cri.hints import HintSource
from glasslet.runtime.cri.labels import POD_UID
from glasslet.runtime.cri.pod_reading import join_pod, join_pods, needs_status
from glasslet.runtime.cri.verbs import Timeouts, Verb
from glasslet.runtime.errors import INCOMPLETE, NotInRuntime, RuntimeCallError, RuntimeRejected
from glasslet.runtime.model import ObservedContainer, ObservedPod, ObservedSandbox, RuntimeInfo, RuntimeStatus
from glasslet.runtime.protocols import RuntimeHint
from glasslet.runtime.spec import ContainerSpec, ExecResult, Resources, SandboxSpec
from glasslet.runtime.usage import ContainerUsage, SandboxUsage

Listed = TypeVar("Listed", pod_sandbox_pb2.PodSandbox, container_pb2.Container)

KUBELET_API_VERSION = "0.1.0"
"""The version in a kubelet's Version request; runtimes of v1 ignore it."""


def _everything(_: RuntimeHint) -> bool:
    return True


async def ask_version(calls: Calls, *, timeout: float) -> RuntimeInfo:
    """Version; an answer without any of its four fields is an error."""
    request = runtime_pb2.VersionRequest(version=KUBELET_API_VERSION)
    answer: runtime_pb2.VersionResponse = await calls.call(Verb.VERSION, request, timeout=timeout)
    for field in ("version", "runtime_name", "runtime_version", "runtime_api_version"):
        if not getattr(answer, field):
            raise lacking(Verb.VERSION, field)
    return RuntimeInfo(name=answer.runtime_name, version=answer.runtime_version, api_version=answer.runtime_api_version)


class SandboxMetrics(Protocol):
    """Counts and times new sandboxes by handler (`kubelet_run_podsandbox*`)."""

    def sandbox_run(self, seconds: float, *, runtime_handler: str, error: str | None) -> None:
        """One RunPodSandbox ended. `error`: the class of the error, None when it succeeded."""


class CRIRuntime:
    """`runtime.protocols.RuntimeService` over one gRPC channel."""

    def __init__(
        self,
        *,
        calls: Calls,
        timeouts: Timeouts,
        hint_source: HintSource,
        recorder: FindingRecorder,
        metrics: SandboxMetrics | None = None,
    ) -> None:
        self._nameless: StandingFindings[Verb] = StandingFindings(recorder)
        self._calls = calls
        self._metrics = metrics
        self._timeouts = timeouts
        self._hint_source = hint_source

    # -- the runtime itself ------------------------------------------------------------------------------------------

    async def version(self) -> RuntimeInfo:
        """Name and versions; an answer without any of them is an error."""
        return await ask_version(self._calls, timeout=self._timeouts.request)

    async def status(self, *, detailed: bool = False) -> RuntimeStatus:
        """RuntimeReady, NetworkReady and the runtime's other conditions. `detailed`: also why the network is not ready,
        where the runtime says so (containerd)."""
        request = runtime_pb2.StatusRequest(verbose=detailed)
        answer = await self._calls.call(Verb.STATUS, request, timeout=self._timeouts.request)
        return decode_runtime_status(answer)

    async def sandbox_image(self) -> str:
        """The image that the runtime makes sandboxes of, as its configuration names it; "" if it does not."""
        request = runtime_pb2.StatusRequest(verbose=True)
        answer = await self._calls.call(Verb.STATUS, request, timeout=self._timeouts.request)
        return decode_sandbox_image(answer)

    async def update_pod_cidr(self, cidr: str) -> None:
        """Sends the node's pod CIDR to the runtime."""
        config = runtime_pb2.RuntimeConfig(network_config=runtime_pb2.NetworkConfig(pod_cidr=cidr))
        request = runtime_pb2.UpdateRuntimeConfigRequest(runtime_config=config)
        await self._calls.call(Verb.UPDATE_RUNTIME_CONFIG, request, timeout=self._timeouts.request)

    async def cgroup_driver(self) -> str | None:
        """`systemd` or `cgroupfs`, as the runtime is set up, None if it does not say; runtimes without this verb answer
        UNIMPLEMENTED."""
        request = runtime_pb2.RuntimeConfigRequest()
        answer: runtime_pb2.RuntimeConfigResponse = await self._calls.call(
            Verb.RUNTIME_CONFIG, request, timeout=self._timeouts.request
        )
        if not answer.HasField("linux"):
            return None
        driver = answer.linux.cgroup_driver
        if driver not in (runtime_pb2.SYSTEMD, runtime_pb2.CGROUPFS):
            raise RuntimeRejected(
                Verb.RUNTIME_CONFIG, f"runtime returned an unknown cgroup driver {driver}", code=INCOMPLETE
            )
        return "systemd" if driver == runtime_pb2.SYSTEMD else "cgroupfs"

    async def cgroup_driver_in_settings(self) -> str | None:
        """The driver in the runtime's settings, as far as its status shows them."""
        request = runtime_pb2.StatusRequest(verbose=True)
        answer = await self._calls.call(Verb.STATUS, request, timeout=self._timeouts.request)
        return driver_in_settings(answer)

    # -- sandboxes ---------------------------------------------------------------------------------------------------

    async def run_sandbox(self, spec: SandboxSpec) -> SandboxID:
        """Creates and starts it, network included."""
        with refusing_unencodable(Verb.RUN_POD_SANDBOX):
            request = pod_sandbox_pb2.RunPodSandboxRequest(
                config=encode_sandbox(spec), runtime_handler=spec.runtime_handler
            )
        with self._sandbox_counted(spec.runtime_handler):
            answer = await self._calls.call(Verb.RUN_POD_SANDBOX, request, timeout=self._timeouts.run_sandbox)
        if not answer.pod_sandbox_id:
            raise lacking(Verb.RUN_POD_SANDBOX, "pod_sandbox_id")
        return SandboxID(answer.pod_sandbox_id)

    @contextmanager
    def _sandbox_counted(self, handler: str) -> Iterator[None]:
        began, error = time.perf_counter(), None
        try:
            yield
        except RuntimeCallError as failure:
            error = type(failure).__name__
            raise
        finally:
            if self._metrics is not None:
                self._metrics.sandbox_run(time.perf_counter() - began, runtime_handler=handler, error=error)

    async def stop_sandbox(self, sandbox: SandboxID) -> None:
        """Stops it and what runs in it, and gives its network back."""
        request = pod_sandbox_pb2.StopPodSandboxRequest(pod_sandbox_id=sandbox)
        await self._calls.call(Verb.STOP_POD_SANDBOX, request, timeout=self._timeouts.request)

    async def remove_sandbox(self, sandbox: SandboxID) -> None:
        """Removes it and what is in it."""
        request = pod_sandbox_pb2.RemovePodSandboxRequest(pod_sandbox_id=sandbox)
        await self._calls.call(Verb.REMOVE_POD_SANDBOX, request, timeout=self._timeouts.request)

    async def sandbox_status(self, sandbox: SandboxID) -> ObservedSandbox:
        """The sandbox in full detail."""
        request = pod_sandbox_pb2.PodSandboxStatusRequest(pod_sandbox_id=sandbox)
        answer: pod_sandbox_pb2.PodSandboxStatusResponse = await self._calls.call(
            Verb.POD_SANDBOX_STATUS, request, timeout=self._timeouts.request
        )
        return decode_sandbox(answer.status)

    # -- containers --------------------------------------------------------------------------------------------------

    async def create_container(self, sandbox: SandboxID, spec: ContainerSpec, pod: SandboxSpec) -> ContainerID:
        """Creates it, not yet started. `pod` is what the sandbox was made of."""
        with refusing_unencodable(Verb.CREATE_CONTAINER):
            request = runtime_pb2.CreateContainerRequest(
                pod_sandbox_id=sandbox, config=encode_container(spec), sandbox_config=encode_sandbox(pod)
            )
        answer = await self._calls.call(Verb.CREATE_CONTAINER, request, timeout=self._timeouts.request)
        if not answer.container_id:
            raise lacking(Verb.CREATE_CONTAINER, "container_id")
        return ContainerID(answer.container_id)

    async def start_container(self, container: ContainerID) -> None:
        """Starts it."""
        request = container_pb2.StartContainerRequest(container_id=container)
        await self._calls.call(Verb.START_CONTAINER, request, timeout=self._timeouts.request)

    async def stop_container(self, container: ContainerID, grace_seconds: int) -> None:
        """Sends the stop signal, and KILL when the grace is over; answers once it has ended."""
        request = container_pb2.StopContainerRequest(container_id=container, timeout=grace_seconds)
        timeout = self._timeouts.stop_container(grace_seconds)
        await self._calls.call(Verb.STOP_CONTAINER, request, timeout=timeout)

    async def remove_container(self, container: ContainerID) -> None:
        """Removes it."""
        request = container_pb2.RemoveContainerRequest(container_id=container)
        await self._calls.call(Verb.REMOVE_CONTAINER, request, timeout=self._timeouts.request)

    async def container_status(self, container: ContainerID, sandbox: SandboxID | None = None) -> ObservedContainer:
        """The container in full detail. A status does not name its sandbox: the caller does, or a list beside it."""
        if sandbox is not None:
            return decode_container(await self._container_status(container), sandbox)
        status, listed = await asyncio.gather(
            self._container_status(container), self._list_containers(container_pb2.ContainerFilter(id=container))
        )
        found = next((c.sandbox_id for c in listed if c.id == container), SandboxID(""))
        return decode_container(status, found)

    async def update_sandbox(self, sandbox: SandboxID, overhead: Resources, resources: Resources) -> None:
        """Updates the pod's resources that `run_sandbox` set first."""
        with refusing_unencodable(Verb.UPDATE_POD_SANDBOX_RESOURCES):
            request = pod_sandbox_pb2.UpdatePodSandboxResourcesRequest(
                pod_sandbox_id=sandbox, overhead=encode_resources(overhead), resources=encode_resources(resources)
            )
        await self._calls.call(Verb.UPDATE_POD_SANDBOX_RESOURCES, request, timeout=self._timeouts.request)

    async def update_container(self, container: ContainerID, resources: Resources) -> None:
        """Changes the resources of a container that is there."""
        with refusing_unencodable(Verb.UPDATE_CONTAINER_RESOURCES):
            request = container_pb2.UpdateContainerResourcesRequest(
                container_id=container, linux=encode_resources(resources)
            )
        await self._calls.call(Verb.UPDATE_CONTAINER_RESOURCES, request, timeout=self._timeouts.request)

    async def reopen_log(self, container: ContainerID) -> None:
        """Makes the runtime write to a new file under the old name, after the old file was moved away."""
        request = container_pb2.ReopenContainerLogRequest(container_id=container)
        await self._calls.call(Verb.REOPEN_CONTAINER_LOG, request, timeout=self._timeouts.request)

    async def checkpoint(self, container: ContainerID, archive: str, timeout: int) -> None:
        """Writes the state of a running container to an archive. `timeout` in seconds, at least the usual one. Many
        runtimes cannot: code UNIMPLEMENTED."""
        seconds = self._timeouts.checkpoint(timeout)
        request = container_pb2.CheckpointContainerRequest(container_id=container, location=archive, timeout=seconds)
        await self._calls.call(Verb.CHECKPOINT_CONTAINER, request, timeout=float(seconds))

    # -- inside ------------------------------------------------------------------------------------------------------

    async def exec_sync(self, container: ContainerID, command: tuple[str, ...], timeout: float) -> ExecResult:
        """Runs a command and returns its output (at most 16 MiB). The protocol counts whole seconds, so
        a fraction is rounded up."""
        with refusing_unencodable(Verb.EXEC_SYNC):
            request = container_pb2.ExecSyncRequest(container_id=container, cmd=command, timeout=math.ceil(timeout))
        deadline = self._timeouts.exec_sync(timeout)
        answer: container_pb2.ExecSyncResponse = await self._calls.call(Verb.EXEC_SYNC, request, timeout=deadline)
        return ExecResult(stdout=answer.stdout, stderr=answer.stderr, exit_code=answer.exit_code)

    async def exec_url(
        self, container: ContainerID, command: tuple[str, ...], *, stdin: bool, stdout: bool, stderr: bool, tty: bool
    ) -> str:
        """Where a streaming session can be opened, once."""
        request = container_pb2.ExecRequest(
            container_id=container, cmd=command, stdin=stdin, stdout=stdout, stderr=stderr, tty=tty
        )
        return self._url(Verb.EXEC, await self._calls.call(Verb.EXEC, request, timeout=self._timeouts.request))

    async def attach_url(self, container: ContainerID, *, stdin: bool, stdout: bool, stderr: bool, tty: bool) -> str:
        """Where the main process can be attached to, once."""
        request = container_pb2.AttachRequest(
            container_id=container, stdin=stdin, stdout=stdout, stderr=stderr, tty=tty
        )
        return self._url(Verb.ATTACH, await self._calls.call(Verb.ATTACH, request, timeout=self._timeouts.request))

    async def port_forward_url(self, sandbox: SandboxID, ports: tuple[int, ...]) -> str:
        """Where ports of the sandbox can be reached, once."""
        with refusing_unencodable(Verb.PORT_FORWARD):
            request = pod_sandbox_pb2.PortForwardRequest(pod_sandbox_id=sandbox, port=ports)
        answer = await self._calls.call(Verb.PORT_FORWARD, request, timeout=self._timeouts.request)
        return self._url(Verb.PORT_FORWARD, answer)

    # -- reading -----------------------------------------------------------------------------------------------------

    async def list_pods(self) -> tuple[ObservedPod, ...]:
        """All pods from two lists, without the details that only status calls know."""
        observed_at = asyncio.get_running_loop().time()
        sandboxes, containers = await asyncio.gather(self._list_sandboxes(None), self._list_containers(None))
        return join_pods(sandboxes, containers, observed_at=observed_at)

    async def read_pod(self, uid: PodUID) -> ObservedPod | None:
        """One pod: two lists by label, then all statuses at the same time. Objects removed in between are left out."""
        observed_at = asyncio.get_running_loop().time()
        of_pod = {POD_UID: uid}
        listed_sandboxes, listed_containers = await asyncio.gather(
            self._list_sandboxes(pod_sandbox_pb2.PodSandboxFilter(label_selector=of_pod)),
            self._list_containers(container_pb2.ContainerFilter(label_selector=of_pod)),
        )
        if not listed_sandboxes and not listed_containers:
            return None
        known = join_pod(uid, listed_sandboxes, listed_containers, observed_at=observed_at)
        detailed = needs_status(known.sandboxes)
        statuses = await asyncio.gather(
            *(self._sandbox_or_gone(sandbox) for sandbox in detailed),
            *(self._container_or_gone(container) for container in known.containers),
        )
        sandboxes = [part for part in statuses if isinstance(part, ObservedSandbox)]
        containers = [part for part in statuses if isinstance(part, ObservedContainer)]
        sandboxes.extend(sandbox for sandbox in known.sandboxes if sandbox not in detailed)
        if not sandboxes and not containers:
            return None
        return join_pod(uid, sandboxes, containers, observed_at=observed_at)

    async def container_stats(self, container: ContainerID) -> ContainerUsage:
        """The usage of one container."""
        request = stats_pb2.ContainerStatsRequest(container_id=container)
        answer: stats_pb2.ContainerStatsResponse = await self._calls.call(
            Verb.CONTAINER_STATS, request, timeout=self._timeouts.request
        )
        return decode_container_usage(answer.stats)

    async def list_container_stats(self, sandbox: SandboxID | None = None) -> tuple[ContainerUsage, ...]:
        """The usage of all containers, or of those of one sandbox."""
        chosen = stats_pb2.ContainerStatsFilter(pod_sandbox_id=sandbox) if sandbox else None
        request = stats_pb2.ListContainerStatsRequest(filter=chosen)
        answer: stats_pb2.ListContainerStatsResponse = await self._calls.call(
            Verb.LIST_CONTAINER_STATS, request, timeout=self._timeouts.request
        )
        return tuple(decode_container_usage(stats) for stats in answer.stats)

    async def sandbox_stats(self, sandbox: SandboxID) -> SandboxUsage:
        """The usage of one sandbox with all its containers."""
        request = stats_pb2.PodSandboxStatsRequest(pod_sandbox_id=sandbox)
        answer: stats_pb2.PodSandboxStatsResponse = await self._calls.call(
            Verb.POD_SANDBOX_STATS, request, timeout=self._timeouts.request
        )
        return decode_sandbox_usage(answer.stats)

    async def list_sandbox_stats(self) -> tuple[SandboxUsage, ...]:
        """The usage of all sandboxes."""
        request = stats_pb2.ListPodSandboxStatsRequest()
        answer: stats_pb2.ListPodSandboxStatsResponse = await self._calls.call(
            Verb.LIST_POD_SANDBOX_STATS, request, timeout=self._timeouts.request
        )
        return tuple(decode_sandbox_usage(stats) for stats in answer.stats)

    def hints(self, wanted: Callable[[RuntimeHint], bool] = _everything) -> AsyncIterator[RuntimeHint]:
        """Hints from this runtime's event source."""
        return self._hint_source(wanted)

    async def _list_sandboxes(self, only: pod_sandbox_pb2.PodSandboxFilter | None) -> list[ObservedSandbox]:
        request = pod_sandbox_pb2.ListPodSandboxRequest(filter=only)
        answer = await self._calls.call(Verb.LIST_POD_SANDBOX, request, timeout=self._timeouts.request)
        return [decode_listed_sandbox(item) for item in self._named(Verb.LIST_POD_SANDBOX, answer.items)]

    async def _list_containers(self, only: container_pb2.ContainerFilter | None) -> list[ObservedContainer]:
        request = container_pb2.ListContainersRequest(filter=only)
        answer = await self._calls.call(Verb.LIST_CONTAINERS, request, timeout=self._timeouts.request)
        return [decode_listed_container(item) for item in self._named(Verb.LIST_CONTAINERS, answer.containers)]

    def _named(self, verb: Verb, items: Iterable[Listed]) -> list[Listed]:
        """The items with an id, each id once. No call can be made about another, and it must not spoil the list."""
        found: dict[str, Listed] = {}
        left_out = 0
        for item in items:
            left_out += not item.id or item.id in found
            if item.id:
                found[item.id] = item
        if left_out:
            text = f"runtime: {verb} gives {left_out} items without an id of their own; they are left out"
            self._nameless.is_(verb, text)
        else:
            self._nameless.over(verb)
        return list(found.values())

    async def _container_status(self, container: ContainerID) -> container_pb2.ContainerStatus:
        request = container_pb2.ContainerStatusRequest(container_id=container)
        answer: container_pb2.ContainerStatusResponse = await self._calls.call(
            Verb.CONTAINER_STATUS, request, timeout=self._timeouts.request
        )
        return answer.status

    async def _sandbox_or_gone(self, listed: ObservedSandbox) -> ObservedSandbox | None:
        try:
            return await self.sandbox_status(listed.id)
        except NotInRuntime:
            return None

    async def _container_or_gone(self, listed: ObservedContainer) -> ObservedContainer | None:
        try:
            return decode_container(await self._container_status(listed.id), listed.sandbox_id)
        except NotInRuntime:
            return None

    def _url(self, verb: Verb, answer: container_pb2.ExecResponse) -> str:
        if not answer.url:
            raise lacking(verb, "url")
        return answer.url
