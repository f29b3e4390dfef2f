"""Each pod's own cgroup: created before its sandbox, removed after its volumes (`pods.collaborators.Cgroups`).

The kernel's files are the only state. A new agent writes a pod's values again when the pod first needs its cgroup: a
crash between creation and writing leaves no pod without limits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.host.cgroups.kernel_amounts import MIN_SHARES
from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFindings
from glasslet.resources.cgroup_manager import CgroupManager
from glasslet.resources.layout import CgroupLayout, CgroupNameInvalid
from glasslet.resources.pod_limits import PodDemand, PodRules, limits_of_pod, unlimited_where_silent, widest

logger = logging.getLogger(__name__)


class PodCgroups:
    """`demand`: a pod's requests and limits; `changed` is called after a pod came or went, so that its class is
    updated. Methods raise OSError."""

    def __init__(
        self,
        *,
        manager: CgroupManager,
        layout: CgroupLayout,
        rules: PodRules,
        demand: Callable[[Pod], PodDemand],
        recorder: Recorder,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._manager = manager
        self._layout = layout
        self._rules = rules
        self._demand = demand
        self._refused: StandingFindings[PodUID] = StandingFindings(recorder)
        self._changed = changed
        self._set: dict[PodUID, str] = {}
        """Paths whose values this agent has written."""
        self._busy: dict[PodUID, tuple[asyncio.Lock, int]] = {}
        """Locks of pods whose cgroup is being created or removed, and how many callers want each."""

    async def ensure(self, pod: Pod) -> str:
        """Creates the pod's cgroup with its limits. Returns the path for the sandbox."""
        ref, demand = pod_ref(pod), self._demand(pod)
        path = self._layout.pod(demand.qos, ref.uid)
        async with self._alone(ref.uid):
            if self._set.get(ref.uid) == path and self._manager.exists(path):
                return path
            refused = await self._manager.create(path, limits_of_pod(demand, self._rules))
            if refused is not None:
                self._refused.is_(ref.uid, f"limits of the pod's cgroup not set: {refused}", pod=ref)
            self._set[ref.uid] = path
        self._changed()
        return path

    async def widen(self, old: Pod, new: Pod) -> None:
        """Limits the pod to the larger values of both."""
        before, after = (limits_of_pod(self._demand(pod), self._rules) for pod in (old, new))
        await self._change(new, widest(before, after))

    async def adjust(self, pod: Pod) -> None:
        """Limits the pod to its present values."""
        await self._change(pod, unlimited_where_silent(limits_of_pod(self._demand(pod), self._rules)))
        self._refused.over(pod_ref(pod).uid)
        self._changed()

    async def _change(self, pod: Pod, limits: CgroupLimits) -> None:
        path = self.path(pod)
        async with self._alone(pod_ref(pod).uid):
            await self._manager.update(path, limits)

    def lost(self, pod: Pod) -> bool:
        """Whether the pod's cgroup does not exist, so that its containers are not limited."""
        try:
            path = self.path(pod)
        except CgroupNameInvalid:
            return False
        return not self._manager.exists(path)

    def path(self, pod: Pod) -> str:
        """The path of the pod's cgroup, existing or not. Raises CgroupNameInvalid."""
        uid = pod_ref(pod).uid
        return self._set.get(uid) or self._layout.pod(self._demand(pod).qos, uid)

    @property
    def top(self) -> str:
        """The cgroup above all pods."""
        return self._layout.path(self._layout.kubepods)

    async def remove(self, ref: PodRef) -> None:
        """Removes the pod's cgroup, whatever its class, and kills the processes left there."""
        async with self._alone(ref.uid):
            known = self._set.get(ref.uid)
            await self._manager.destroy(*([known] if known else self._any_class(ref.uid)))
            self._set.pop(ref.uid, None)
            self._refused.over(ref.uid)
        self._changed()

    async def found(self) -> dict[PodUID, str]:
        """The path by pod, for all pods that have a cgroup."""
        classes = self._layout.class_paths()
        children = await self._manager.children(classes.values())
        return {
            uid: f"{path}/{name}"
            for path in classes.values()
            for name in children[path]
            if (uid := self._layout.uid_of(name)) is not None
        }

    async def remove_orphan(self, uid: PodUID, path: str, is_orphan: Callable[[], bool]) -> None:
        """Removes a cgroup that belongs to no pod, unless a pod of that UID came meanwhile."""
        async with self._alone(uid):
            if not is_orphan():
                return
            logger.info("orphaned pod cgroup", extra={"cgroup": path, "podUID": uid})
            await self._manager.destroy(path)
            self._set.pop(uid, None)

    async def reduce(self, path: str) -> None:
        """Reduces the cgroup to the smallest CPU share."""
        await self._manager.update(path, CgroupLimits(cpu_shares=MIN_SHARES))

    def _any_class(self, uid: PodUID) -> list[str]:
        """The paths that the pod's cgroup may have: an agent that did not create it does not know the class."""
        return [self._layout.pod(qos, uid) for qos in self._layout.class_paths()]

    @asynccontextmanager
    async def _alone(self, uid: PodUID) -> AsyncIterator[None]:
        lock, users = self._busy.get(uid, (asyncio.Lock(), 0))
        self._busy[uid] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._busy.pop(uid)
            if users > 1:
                self._busy[uid] = lock, users - 1


class RuntimeDefaultCgroups:
    """Pods whose cgroups the runtime makes, below its own default parent (cgroupsPerQOS false)."""

    async def ensure(self, pod: Pod) -> str:
        """No parent is given to the sandbox."""
        return ""

    async def widen(self, old: Pod, new: Pod) -> None:
        """Only the containers have limits."""

    async def adjust(self, pod: Pod) -> None:
        """Only the containers have limits."""

    async def remove(self, ref: PodRef) -> None:
        """The runtime removes its own cgroups."""
