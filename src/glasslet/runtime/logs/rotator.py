"""Rotates the logs of running containers before they grow too large."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import os
import shutil
from collections.abc import Callable, Iterable
from typing import Protocol

from glasslet.api.object import ContainerID
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import Clock
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.record.recorder import Recorder, working_for
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.logs.rotation import COMPRESSED, TEMPORARY, RotationPolicy, plan_rotation, rotated_name
from glasslet.runtime.model import ObservedContainer, ObservedPod
from glasslet.runtime.observed.gate import ReadGate

logger = logging.getLogger(__name__)

_SLOW_AFTER = 30.0
_COPY = 256 * 1024


class LogReopener(Protocol):
    """The part of the runtime that rotation needs."""

    async def reopen_log(self, container: ContainerID) -> None: ...


class LogRotator:
    """Checks the logs of all running containers every interval. `pods`: `ObservedPods.all`.

    Logs of stopped containers are left alone: an empty last log would help no reader.
    """

    def __init__(
        self,
        *,
        runtime: LogReopener,
        pods: Callable[[], Iterable[ObservedPod]],
        recorder: Recorder,
        clock: Clock,
        policy: RotationPolicy | None = None,
    ) -> None:
        self._runtime = runtime
        self._pods = pods
        self._recorder = recorder
        self._clock = clock
        self._policy = policy or RotationPolicy()
        self._gate = ReadGate(limit=max(1, self._policy.container_log_max_workers), slow_after=_SLOW_AFTER)
        self._threads = OwnThreads("sizes of container logs")
        self._packers = OwnThreads("log rotation", limit=max(1, self._policy.container_log_max_workers))
        self._busy: set[ContainerID] = set()

    async def run(self) -> None:
        """Until cancelled; returns at once where rotation is switched off."""
        if self._policy.container_log_max_size < 0:
            return
        async with asyncio.TaskGroup() as group:
            while True:
                for pod, container in await self._due():
                    self._busy.add(container.id)
                    group.create_task(self._rotate(pod, container), name=f"rotate log: {container.name} of {pod}")
                await asyncio.sleep(self._policy.container_log_monitor_interval)

    async def rotate_now(self) -> None:
        """One round, to its end."""
        due = await self._due()
        self._busy.update(container.id for _, container in due)
        async with asyncio.TaskGroup() as group:
            for pod, container in due:
                group.create_task(self._rotate(pod, container))

    async def _due(self) -> list[tuple[PodRef, ObservedContainer]]:
        found = [
            (PodRef(pod.namespace, pod.name, pod.uid), container)
            for pod in self._pods()
            for container in pod.running()
            if container.log_path and container.id not in self._busy
        ]
        sizes = await self._threads.run(_sizes, [container.log_path for _, container in found])
        limit = self._policy.container_log_max_size
        return [one for one, size in zip(found, sizes, strict=True) if size is None or size >= limit]

    async def _rotate(self, pod: PodRef, container: ObservedContainer) -> None:
        try:
            with working_for(pod, container=container.name):
                async with self._gate.enter():
                    await self._rotate_one(container)
        except (OSError, RuntimeCallError) as error:
            # The next round tries again.
            fields = {"pod": str(pod), "container": container.name, "path": container.log_path, "error": str(error)}
            logger.warning("container log could not be rotated", extra=fields)
        finally:
            self._busy.discard(container.id)

    async def _rotate_one(self, container: ObservedContainer) -> None:
        path = container.log_path
        (size,) = await self._threads.run(_sizes, [path])
        if size is None:
            self._recorder.decided("log reopened", container=container.name, because="the file is missing", path=path)
            await self._runtime.reopen_log(container.id)
            return
        await self._packers.run(_make_room, path, self._policy.container_log_max_files)
        rotated = rotated_name(path, self._clock.now().astimezone())
        if os.path.lexists(rotated) or os.path.lexists(rotated + COMPRESSED):
            return  # a second rotation within a second would cost the first one its file: the next round will do
        self._recorder.decided("log rotated", container=container.name, size=size, path=path)
        os.rename(path, rotated)
        try:
            await self._runtime.reopen_log(container.id)
        except BaseException:
            # The runtime still writes into the renamed file: give it its name back.
            if not os.path.lexists(path):
                os.rename(rotated, path)
            raise


def _sizes(paths: list[str]) -> list[int | None]:
    """Sizes in bytes; None: no such file."""
    sizes: list[int | None] = []
    for path in paths:
        try:
            sizes.append(os.stat(path).st_size)
        except FileNotFoundError:
            sizes.append(None)
        except OSError as error:
            logger.warning("container log cannot be checked", extra={"path": path, "error": str(error)})
            sizes.append(0)
    return sizes


def _make_room(path: str, max_files: int) -> None:
    """Removes and compresses what was rotated earlier. Blocks; raises OSError."""
    directory, base = os.path.split(path)
    plan = plan_rotation([name for name in os.listdir(directory) if name.startswith(f"{base}.")], max_files)
    for name in plan.remove:
        os.unlink(f"{directory}/{name}")
    for name in plan.compress:
        _compress(f"{directory}/{name}")


def _compress(path: str) -> None:
    """`path` -> `path.gz`, over a temporary name, with the same permissions."""
    temporary = path + TEMPORARY
    try:
        with open(path, "rb") as plain, gzip.open(temporary, "wb", compresslevel=6) as packed:
            os.chmod(temporary, os.fstat(plain.fileno()).st_mode & 0o777)
            shutil.copyfileobj(plain, packed, _COPY)
        os.rename(temporary, path + COMPRESSED)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    os.unlink(path)
