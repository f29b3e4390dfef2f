"""What may be removed of a pod, as far as its worker is concerned."""

from __future__ import annotations

from collections.abc import Callable

from glasslet.api.object import PodUID
from glasslet.pods.lifecycle import Finished, Terminated
from glasslet.pods.workers import PodWorkers


class Remains:
    """Answers of the pod workers to whoever cleans up (`runtime.garbage.PodStates`)."""

    def __init__(self, *, workers: PodWorkers, sources_ready: Callable[[], bool]) -> None:
        self._workers = workers
        self._sources_ready = sources_ready

    def sources_ready(self) -> bool:
        """Whether every source has told all its pods: only then an unknown pod is a deleted one."""
        return self._sources_ready()

    def content_removable(self, uid: PodUID) -> bool:
        """Nobody wants the pod and nobody works on it."""
        return not self._workers.knows(uid)

    def runtime_removable(self, uid: PodUID) -> bool:
        """The pod runs nothing any more and never will."""
        state = self._workers.lifecycle(uid)
        return state is None or isinstance(state, Terminated | Finished)
