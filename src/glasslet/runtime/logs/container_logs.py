"""The log of one container of a pod: chooses the instance, then reads its file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import cast

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_log_options import PodLogOptions
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.runtime.logs.choice import NoLog, choose_log
from glasslet.runtime.logs.lines import UnknownLogFormat
from glasslet.runtime.logs.options import LogOptions, LogStream
from glasslet.runtime.logs.reader import read_logs
from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod

READERS = 8
"""Logs that are read at the same moment; others wait for a moment."""


class LogsNotAvailable(Exception):
    """There is no log to read. The text is the Go kubelet's (`container "c" in pod "p" is terminated`)."""


class ContainerLogs:
    """Reads the files that the runtime names. `observed` returns the newest observation of a pod."""

    def __init__(self, *, observed: Callable[[PodUID], ObservedPod | None], now: Callable[[], datetime]) -> None:
        self._observed = observed
        self._now = now
        self._threads = OwnThreads("container logs", limit=READERS)

    async def read_logs(self, pod: Pod, container: str, options: PodLogOptions) -> AsyncIterator[bytes]:
        """Chunks of text. The pod carries its status. Raises LogsNotAvailable, or OSError while reading."""
        uid = PodUID(pod.metadata.uid)
        chosen = choose_log(pod.metadata.name, pod.status, container, previous=options.previous)
        if isinstance(chosen, NoLog):
            raise LogsNotAvailable(chosen.message)
        instance = self._instance(uid, chosen)
        if instance is None or not instance.log_path:
            raise LogsNotAvailable(f'failed to get container status "{chosen}": the container is gone')

        def running() -> bool:
            now = self._instance(uid, chosen)
            return now is not None and now.phase is ContainerPhase.RUNNING

        chunks = read_logs(instance.log_path, reading(options, self._now()), running=running, threads=self._threads)
        try:
            async with aclosing(cast("AsyncGenerator[bytes, None]", chunks)):
                async for chunk in chunks:
                    yield chunk
        except FileNotFoundError as error:
            raise LogsNotAvailable(f'container "{container}": there is no log file {error.filename}') from error
        except UnknownLogFormat as error:
            raise LogsNotAvailable(str(error)) from error

    def _instance(self, uid: PodUID, wanted: ContainerID) -> ObservedContainer | None:
        observed = self._observed(uid)
        return next((c for c in observed.containers if c.id == wanted), None) if observed is not None else None


def reading(options: PodLogOptions, now: datetime) -> LogOptions:
    """The options as the log reader takes them; `sinceSeconds` becomes a time."""
    since = options.since_time
    if options.since_seconds is not None:
        since = now - timedelta(seconds=min(options.since_seconds, 10**9))
    return LogOptions(
        follow=options.follow,
        tail=options.tail_lines,
        since=since,
        timestamps=options.timestamps,
        limit_bytes=options.limit_bytes,
        stream=LogStream(options.stream),
    )
