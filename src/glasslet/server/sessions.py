"""Sessions in containers (exec, attach, port-forward): finds the instance or sandbox, gets a URL from the runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod import Pod
from glasslet.runtime.model import ContainerPhase, ObservedPod
from glasslet.runtime.protocols import RuntimeService
from glasslet.server.protocols import SessionStreams, StreamRefused


class RuntimeSessions:
    """Implements `StreamSource`. `observed` returns the newest observation of a pod."""

    def __init__(self, *, runtime: RuntimeService, observed: Callable[[PodUID], ObservedPod | None]) -> None:
        self._runtime = runtime
        self._observed = observed

    async def exec_url(self, pod: Pod, container: str, command: Sequence[str], streams: SessionStreams) -> str:
        """The URL of a command's session."""
        return await self._runtime.exec_url(
            self._running(pod, container),
            tuple(command),
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr and not streams.tty,
            tty=streams.tty,
        )

    async def attach_url(self, pod: Pod, container: str, streams: SessionStreams) -> str:
        """The URL of the main process's session. The container's specification says whether it has a terminal."""
        spec = pod.spec
        tty = any(c.tty for c in (*spec.containers, *spec.init_containers) if c.name == container)
        tty = tty or any(c.tty for c in spec.ephemeral_containers if c.name == container)
        return await self._runtime.attach_url(
            self._running(pod, container),
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr and not tty,
            tty=tty,
        )

    async def port_forward_url(self, pod: Pod, ports: Sequence[int]) -> str:
        """The URL that reaches the pod's ports."""
        observed = self._observed(PodUID(pod.metadata.uid))
        sandbox = observed.ready_sandbox() if observed is not None else None
        if sandbox is None:
            raise StreamRefused(f"pod not running: {pod.metadata.name}_{pod.metadata.namespace}")
        return await self._runtime.port_forward_url(sandbox.id, tuple(ports))

    async def run(self, pod: Pod, container: str, command: Sequence[str]) -> bytes:
        """A command's whole output. One that fails is refused, with its output as the reason."""
        result = await self._runtime.exec_sync(self._running(pod, container), tuple(command), timeout=0)
        if (failure := result.failure(command)) is not None:
            raise StreamRefused(failure)
        return result.output

    def _running(self, pod: Pod, container: str) -> ContainerID:
        observed = self._observed(PodUID(pod.metadata.uid))
        newest = observed.newest(container) if observed is not None else None
        if newest is None or newest.phase is not ContainerPhase.RUNNING:
            raise StreamRefused(f'container not found ("{container}")')
        return newest.id
