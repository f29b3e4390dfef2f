"""What the servers show, read from the components: pods, logs, sessions, and the answers under /glass."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from glasslet.answers.agent import AgentAnswer
from glasslet.answers.pods import ProbeRow
from glasslet.answers.requests import ExecRequest, LogRequest
from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_log_options import PodLogOptions
from glasslet.api.pod_ref import pod_ref
from glasslet.assembly.node_view import NodeSituations
from glasslet.assembly.pods import PodSide
from glasslet.assembly.runtime import RuntimeSide
from glasslet.assembly.sides import Sides
from glasslet.glass.handlers import LogsRefused, SeenPod
from glasslet.glass.stuck import Stuck
from glasslet.probes.rows import probe_rows
from glasslet.runtime.logs.container_logs import ContainerLogs, LogsNotAvailable
from glasslet.runtime.model import ContainerPhase, ObservedPod
from glasslet.server.protocols import SessionStreams, StreamRefused
from glasslet.version import KUBELET_VERSION


class NodeView:
    """Implements `PodSource` and `StreamSource`."""

    def __init__(self, *, runtime: RuntimeSide, pods: PodSide) -> None:
        self._runtime = runtime
        self._pods = pods

    def pods(self) -> Sequence[Pod]:
        """Desired pods, each with the status that this agent tells."""
        return [self.with_status(pod) for pod in self._pods.desired.all()]

    def pod(self, namespace: str, name: str) -> Pod | None:
        """A desired pod; of two with one name the one that runs, which is the older."""
        for view in self._pods.workers.snapshot():
            meta = view.pod.metadata
            if (meta.namespace, meta.name) == (namespace, name):
                return replace(view.pod, status=view.status)
        return None

    def running_pods(self) -> Sequence[ObservedPod]:
        """Pods of which the runtime runs something."""
        return [pod for pod in self._runtime.observed.all() if pod.running()]

    async def exec_url(self, pod: Pod, container: str, command: Sequence[str], streams: SessionStreams) -> str:
        """Where a command's session is."""
        instance = self._running(pod, container)
        return await self._runtime.connection.runtime.exec_url(
            instance,
            tuple(command),
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr and not streams.tty,
            tty=streams.tty,
        )

    async def attach_url(self, pod: Pod, container: str, streams: SessionStreams) -> str:
        """Where the main process's session is; whether it has a terminal is the container's own matter."""
        spec = pod.spec
        tty = any(c.tty for c in (*spec.containers, *spec.init_containers) if c.name == container)
        tty = tty or any(c.tty for c in spec.ephemeral_containers if c.name == container)
        return await self._runtime.connection.runtime.attach_url(
            self._running(pod, container),
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr and not tty,
            tty=tty,
        )

    async def port_forward_url(self, pod: Pod, ports: Sequence[int]) -> str:
        """Where the pod's ports are."""
        observed = self._runtime.observed.get(PodUID(pod.metadata.uid))
        sandbox = observed.ready_sandbox() if observed is not None else None
        if sandbox is None:
            raise StreamRefused(f"pod not running: {pod.metadata.name}_{pod.metadata.namespace}")
        return await self._runtime.connection.runtime.port_forward_url(sandbox.id, tuple(ports))

    async def run(self, pod: Pod, container: str, command: Sequence[str]) -> bytes:
        """A command's whole output; one that fails is refused with what it said."""
        result = await self._runtime.connection.runtime.exec_sync(
            self._running(pod, container), tuple(command), timeout=0
        )
        output = result.stdout + result.stderr
        if result.exit_code != 0:
            words = output.decode("utf-8", "replace")
            raise StreamRefused(f"command '{' '.join(command)}' exited with {result.exit_code}: {words}")
        return output

    def _running(self, pod: Pod, container: str) -> ContainerID:
        observed = self._runtime.observed.get(PodUID(pod.metadata.uid))
        newest = observed.newest(container) if observed is not None else None
        if newest is None or newest.phase is not ContainerPhase.RUNNING:
            raise StreamRefused(f'container not found ("{container}")')
        return newest.id

    def with_status(self, pod: Pod) -> Pod:
        """The pod with the status that this agent tells."""
        view = self._pods.workers.view(PodUID(pod.metadata.uid))
        return replace(pod, status=view.status) if view is not None else pod


class GlassView:
    """Implements `GlassSource`."""

    def __init__(
        self,
        *,
        sides: Sides,
        pods: PodSide,
        node: NodeView,
        logs: ContainerLogs,
    ) -> None:
        self.node = NodeSituations(sides=sides, pods=pods)
        self._foundation = sides.foundation
        self._runtime = sides.runtime
        self._pods = pods
        self._node = node
        self._logs = logs

    def pods(self) -> Sequence[SeenPod]:
        """Every pod that has a worker."""
        return self._pods.workers.snapshot()

    def agent(self) -> AgentAnswer:
        """The agent itself."""
        runtime, foundation = self._runtime, self._foundation
        info = runtime.connection.info
        runtime_error, network_error = runtime.conditions.runtime_error(), runtime.conditions.network_error()
        return AgentAnswer(
            version=KUBELET_VERSION,
            pid=os.getpid(),
            started_at=datetime.fromtimestamp(foundation.metrics.started, UTC),
            node=foundation.node_name,
            root_dir=foundation.root.root_dir,
            runtime=f"{info.name} {info.version}",
            runtime_endpoint=foundation.configuration.container_runtime_endpoint,
            runtime_error=runtime_error or "",
            network_error=network_error or "",
            ready=not runtime_error and not network_error and self._pods.desired.ready(),
            desired_pods=len(self._pods.desired.all()),
            runtime_pods=len(runtime.observed.all()),
        )

    def probes(self, pod: Pod) -> tuple[ProbeRow, ...]:
        """The last results of the pod's probes."""
        return probe_rows(self._pods.probes.manager.last(pod_ref(pod)))

    def stuck(self, pod: Pod) -> Stuck | None:
        """What hangs of the pod."""
        return self._pods.upkeep.progress.stuck(PodUID(pod.metadata.uid))

    async def read_logs(self, pod: Pod, request: LogRequest) -> AsyncIterator[bytes]:
        """One container's log."""
        options = PodLogOptions(
            follow=request.follow,
            previous=request.previous,
            timestamps=request.timestamps,
            since_time=request.since,
            tail_lines=request.tail,
            limit_bytes=request.limit_bytes,
        )
        try:
            async for chunk in self._logs.read_logs(self._node.with_status(pod), request.container, options):
                yield chunk
        except LogsNotAvailable as error:
            raise LogsRefused(str(error)) from error

    async def exec_url(self, pod: Pod, request: ExecRequest) -> str:
        """The runtime's streaming URL."""
        streams = SessionStreams(stdin=request.stdin, stdout=True, stderr=not request.tty, tty=request.tty)
        return await self._node.exec_url(pod, request.container, request.command, streams)
