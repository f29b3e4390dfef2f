"""Whether what is left of a pod may be removed: answered from its worker, the sources and the runtime together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.exchange.facts import EVICTED
from glasslet.pods.census import PodCensus
from glasslet.pods.collaborators import Observed
from glasslet.pods.lifecycle import Finished, Terminated


class WantedPods(Protocol):
    """The pods that sources want (`sources.desired.DesiredPods`)."""

    def ready(self) -> bool: ...
    def get(self, uid: PodUID) -> Pod | None: ...


class Remains:
    """Implements `PodStates` of garbage collection and `Pods` of orphaned folders and cgroups. `mounted`: whether
    something is mounted in the pod's directory."""

    def __init__(
        self,
        *,
        census: PodCensus,
        desired: WantedPods,
        observed: Observed,
        mounted: Callable[[PodUID], Awaitable[bool]],
    ) -> None:
        self._census = census
        self._desired = desired
        self._observed = observed
        self._mounted = mounted

    def sources_ready(self) -> bool:
        """Whether every source has reported its pods: only then an unknown pod is a deleted one."""
        return self._desired.ready()

    def all_known(self) -> bool:
        """Whether every source has reported its pods, and the runtime what it runs."""
        return self._desired.ready() and self._observed.synced.is_set()

    def alive(self, uid: PodUID) -> bool:
        """Whether a source wants the pod, a worker has it, or the runtime holds something of it."""
        wanted = self._census.knows(uid) or self._desired.get(uid) is not None
        return wanted or self._observed.get(uid) is not None

    def wanted(self, uid: PodUID) -> bool:
        """Whether a source wants the pod, though its worker may not have begun."""
        return self._desired.get(uid) is not None

    def content_removable(self, uid: PodUID) -> bool:
        """Whether logs and dead containers of the pod may go: it has no worker, or was evicted and has ended."""
        state = self._census.lifecycle(uid)
        evicted = isinstance(state, Finished) and state.verdict is not None and state.verdict.reason == EVICTED
        return state is None or evicted

    def runtime_removable(self, uid: PodUID) -> bool:
        """Whether nothing of the pod runs, now or later."""
        state = self._census.lifecycle(uid)
        return state is None or isinstance(state, Terminated | Finished)

    async def holds_volumes(self, uid: PodUID) -> bool:
        """Whether something is mounted in the pod's directory."""
        return await self._mounted(uid)
