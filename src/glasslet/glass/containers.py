"""Logs of containers and commands in them, for the handlers of the Unix socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from glasslet.answers.requests import ExecRequest, LogRequest
from glasslet.answers.wire import ErrorAnswer
from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_log_options import PodLogOptions
from glasslet.glass.requests import RequestRefused
from glasslet.runtime.logs.container_logs import ContainerLogs
from glasslet.runtime.model import ContainerPhase, ObservedPod


class ExecRuntime(Protocol):
    """The one runtime call that is needed here (`RuntimeService`)."""

    async def exec_url(
        self, container: ContainerID, command: tuple[str, ...], *, stdin: bool, stdout: bool, stderr: bool, tty: bool
    ) -> str: ...


class ContainerAccess:
    """`observed` returns the newest observation of a pod."""

    def __init__(
        self, *, runtime: ExecRuntime, observed: Callable[[PodUID], ObservedPod | None], logs: ContainerLogs
    ) -> None:
        self._runtime = runtime
        self._observed = observed
        self._logs = logs

    def read_logs(self, pod: Pod, request: LogRequest) -> AsyncIterator[bytes]:
        """See `GlassSource.read_logs`."""
        options = PodLogOptions(
            follow=request.follow,
            previous=request.previous,
            timestamps=request.timestamps,
            since_time=request.since,
            tail_lines=request.tail,
            limit_bytes=request.limit_bytes,
        )
        return self._logs.read_logs(pod, request.container, options)

    async def exec_url(self, pod: Pod, request: ExecRequest) -> str:
        """See `GlassSource.exec_url`."""
        observed = self._observed(PodUID(pod.metadata.uid))
        newest = observed.newest(request.container) if observed is not None else None
        if newest is None or newest.phase is not ContainerPhase.RUNNING:
            answer = ErrorAnswer(error="the container does not run", field="container", value=request.container)
            raise RequestRefused(409, answer)
        return await self._runtime.exec_url(
            newest.id,
            request.command,
            stdin=request.stdin,
            stdout=True,
            stderr=not request.tty,
            tty=request.tty,
        )
