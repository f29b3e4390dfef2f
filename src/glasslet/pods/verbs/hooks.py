"""Lifecycle hooks: exec, httpGet, sleep. A tcpSocket hook is accepted by the API but cannot be run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from glasslet.api.container import Container
from glasslet.api.lifecycle import HTTPGetAction, LifecycleHandler
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.pods.reporting import WorkMetrics
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.protocols import RuntimeService

SHOWN_BYTES = 1024
"""Of a command's output, in the message of a failed postStart."""


class HookFailed(Exception):
    """The hook did not succeed; the text is upstream's."""


class HookRunner:
    """Runs the hooks of containers. Without time limit: the caller's grace period is the limit."""

    def __init__(
        self,
        *,
        runtime: RuntimeService,
        recorder: Recorder,
        pod_ip: Callable[[Pod], str],
        metrics: WorkMetrics,
    ) -> None:
        self._metrics = metrics
        self._runtime = runtime
        self._recorder = recorder
        self._pod_ip = pod_ip

    async def run(
        self, handler: LifecycleHandler, *, name: str, pod: Pod, container: Container, instance: ContainerID
    ) -> None:
        """Runs the hook (`name`: preStop or postStart) of this instance. Raises HookFailed."""
        with self._recorder.wait(WaitKind.HOOK, on=f"{name} hook of {container.name}", container=container.name):
            if handler.exec is not None:
                await self._exec(handler.exec.command, pod, container, instance)
            elif handler.http_get is not None:
                await self._http(handler.http_get, pod, container)
            elif handler.sleep is not None:
                await self._sleep(handler.sleep.seconds)
            else:
                raise HookFailed(f"invalid {name} handler: want exec, httpGet or sleep")

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self._metrics.sleep_cut()
            raise

    async def _exec(self, command: tuple[str, ...], pod: Pod, container: Container, instance: ContainerID) -> None:
        what = f"Exec lifecycle hook ([{' '.join(command)}]) {_subject(pod, container)} failed"
        try:
            result = await self._runtime.exec_sync(instance, command, 0)
        except RuntimeCallError as error:
            raise HookFailed(f'{what} - error: {error}, message: ""') from error
        if (failure := result.failure(command, shown=SHOWN_BYTES)) is not None:
            raise HookFailed(f'{what} - error: {failure}, message: "{result.text(SHOWN_BYTES)}"')

    async def _http(self, action: HTTPGetAction, pod: Pod, container: Container) -> None:
        what = f"HTTP lifecycle hook ({action.path}) {_subject(pod, container)} failed"
        host = action.host or self._pod_ip(pod)
        port = _port(action.port, container)
        if not host or port is None:
            missing = f"no port named {action.port}" if port is None else "the pod has no IP address"
            raise HookFailed(f"{what} - error: {missing}")
        import aiohttp

        from glasslet.pods.verbs.http_hook import get

        try:
            if await get(action, host=host, port=port):
                self._metrics.hook_fell_back()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise HookFailed(f"{what} - error: {_connection_words(error, host, port)}") from error


def _connection_words(error: Exception, host: str, port: int) -> str:
    """Without the library's own objects, which its text shows."""
    if isinstance(error, OSError) and error.errno:
        return f"no connection to {host}:{port}: {os.strerror(error.errno)}"
    return str(error)


def _subject(pod: Pod, container: Container) -> str:
    meta = pod.metadata
    return f'for Container "{container.name}" in Pod "{meta.name}_{meta.namespace}({meta.uid})"'


def _port(port: int | str, container: Container) -> int | None:
    """A number, a number as text, or the name of one of the container's ports."""
    if isinstance(port, int):
        return port
    if port.isdigit():
        return int(port)
    return next((known.container_port for known in container.ports if known.name == port), None)
