"""Checkpoints of containers: which instance, which file, and the runtime's call."""

from __future__ import annotations

import os
from collections.abc import Callable

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.concurrency.clock import Clock
from glasslet.host.files.small_files import make_directory
from glasslet.runtime.errors import RuntimeCallError, rpc_words
from glasslet.runtime.model import ContainerPhase, ObservedPod
from glasslet.runtime.protocols import Checkpoints
from glasslet.server.protocols import CheckpointFailed

_PRIVATE = 0o700


class ContainerCheckpoints:
    """Implements `CheckpointSource`. Archives are for root only: they hold the memory of a process."""

    def __init__(
        self, *, runtime: Checkpoints, observed: Callable[[PodUID], ObservedPod | None], folder: str, clock: Clock
    ) -> None:
        self._runtime = runtime
        self._observed = observed
        self._folder = folder
        self._clock = clock

    async def checkpoint(self, pod: Pod, container: str, timeout: int) -> str:
        """Writes an archive of the running instance and gives its path. Raises CheckpointFailed."""
        observed = self._observed(PodUID(pod.metadata.uid))
        newest = observed.newest(container) if observed is not None else None
        if newest is None or newest.phase is not ContainerPhase.RUNNING:
            raise CheckpointFailed(f"container {container} not found")
        if timeout < 0:
            raise CheckpointFailed("CheckpointContainer requires the timeout value to be > 0")
        path = f"{self._folder}/{self._name(pod, container)}"
        try:
            make_directory(self._folder, _PRIVATE)
            await self._runtime.checkpoint(newest.id, path, timeout)
        except RuntimeCallError as error:
            raise CheckpointFailed(rpc_words(error)) from error
        except OSError as error:
            raise CheckpointFailed(f"{self._folder}: {os.strerror(error.errno or 0)}") from error
        return path

    def _name(self, pod: Pod, container: str) -> str:
        meta = pod.metadata
        now = self._clock.now().astimezone().isoformat(timespec="seconds").replace("+00:00", "Z")
        return f"checkpoint-{meta.name}_{meta.namespace}-{container}-{now}.tar"
