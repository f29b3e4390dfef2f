"""Refreshes the volumes of running pods, whose data may have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from glasslet.api.pod import Pod
from glasslet.pods.collaborators import Observed
from glasslet.pods.executor import Executor
from glasslet.pods.memory import PodMemory


class VolumeRefresher:
    """Brings changed data into volumes, for any number of workers. `every`: seconds between refreshes without news."""

    def __init__(self, *, executor: Executor, observed: Observed, every: float) -> None:
        self._executor = executor
        self._observed = observed
        self._every = every

    def due(self, memory: PodMemory, *, now: float) -> bool:
        """Whether the pod has volumes to refresh; `now`: monotonic seconds."""
        seen = self._observed.get(memory.ref.uid)
        return seen is not None and seen.ready_sandbox() is not None and refresh_due(memory, now=now, every=self._every)

    async def run(self, memory: PodMemory, other_work: Coroutine[None, None, object]) -> None:
        """Refreshes them until there is other work: that goes first, as a server that does not answer must not delay
        the restart of a container. A refresh that is cut short stays due."""
        async with asyncio.TaskGroup() as group:
            refreshing = group.create_task(self._executor.refresh(memory), name=f"{memory.ref} refresh")
            news = group.create_task(other_work, name=f"{memory.ref} mail")
            await asyncio.wait((refreshing, news), return_when=asyncio.FIRST_COMPLETED)
            if refreshing.cancel():
                memory.stale = True
            news.cancel()


def refresh_due(memory: PodMemory, *, now: float, every: float) -> bool:
    """Whether data changed, the pod changed, or the last refresh is `every` seconds ago."""
    if memory.refreshed_at is None or memory.stale or memory.refreshed_for is None:
        return True
    return now >= memory.refreshed_at + every or _differs(memory.pod, memory.refreshed_for)


def _differs(pod: Pod, earlier: Pod) -> bool:
    if pod is earlier:
        return False
    new, old = pod.metadata, earlier.metadata
    return new.labels != old.labels or new.annotations != old.annotations or pod.spec != earlier.spec
