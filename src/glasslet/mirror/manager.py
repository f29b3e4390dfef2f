"""Keeps the mirror pods of this node's static pods up to date.

    MirrorPods(client=..., node=..., views=MirrorViews(...), recorder=...)

`wake()` whenever static pods, API objects of pods or the node changed; a failed request is repeated with back-off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable

from msgspec import Struct

from glasslet.api.meta import ObjectMeta
from glasslet.api.node import Node
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import MIRROR_ANNOTATION
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.jitter import jittered
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import AlreadyExists, APIError, Conflict, NotFound
from glasslet.kubeapi.protocols import APIClient
from glasslet.mirror.plan import Create, Delete, FullName, Step, full_name, plan
from glasslet.record.recorder import Recorder, working_for

logger = logging.getLogger(__name__)

_LOOK_AGAIN = 60.0
_BACK_OFF_MIN = 1.0
_BACK_OFF_MAX = 5.0
_WATCH_LAG = 10.0
"""Seconds that the watch may take to show a new mirror."""


class MirrorViews(Struct, frozen=True, kw_only=True):
    """The mirrors that exist and the pods that need one. `static`: static pods that sources want; `mirrors`: API
    objects as last seen, None while they are not known; `stopping`: names of static pods that are being stopped;
    `complete`: every source has reported."""

    static: Callable[[], Iterable[Pod]]
    mirrors: Callable[[], Iterable[Pod] | None]
    stopping: Callable[[], Collection[FullName]]
    complete: Callable[[], bool]


class MirrorPods:
    """Creates and deletes mirrors."""

    def __init__(
        self, *, client: APIClient, node: Callable[[], Node | None], views: MirrorViews, recorder: Recorder
    ) -> None:
        self._client = client
        self._node = node
        self._views = views
        self._recorder = recorder
        self._news = asyncio.Event()
        self._made: dict[FullName, tuple[Pod, float]] = {}

    def wake(self) -> None:
        """Something that mirrors depend on changed."""
        self._news.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        delay = _BACK_OFF_MIN
        while True:
            self._news.clear()
            if await self._settle():
                delay, pause = _BACK_OFF_MIN, _WATCH_LAG if self._made else _LOOK_AGAIN
            else:
                pause, delay = jittered(delay), min(delay * 2, _BACK_OFF_MAX)
            try:
                async with asyncio.timeout(pause):
                    await self._news.wait()
            except TimeoutError:
                # No news: the periodic check is due.
                continue

    async def _settle(self) -> bool:
        """Creates and deletes what the plan says; whether all succeeded."""
        views, mirrors = self._views, self._views.mirrors()
        if mirrors is None:
            return True
        steps = plan(
            views.static(),
            self._with_made({full_name(mirror): mirror for mirror in mirrors}),
            node=self._node(),
            stopping=views.stopping(),
            complete=views.complete(),
        )
        well = True
        for step in tuple(steps):
            try:
                with working_for(_shown(step.mirror)):
                    await self._do(step)
            except APIError as error:
                well = False
                logger.warning("mirror pod not as it should be", extra={"error": str(error)})
        return well

    def _with_made(self, mirrors: dict[FullName, Pod]) -> list[Pod]:
        """The mirrors as watched, and those just made that the watch does not show yet."""
        now = asyncio.get_running_loop().time()
        for name, (made, until) in tuple(self._made.items()):
            seen = mirrors.get(name)
            if now > until or (seen is not None and seen.metadata.uid == made.metadata.uid):
                del self._made[name]
            else:
                mirrors[name] = made
        return list(mirrors.values())

    async def _do(self, step: Step) -> None:
        match step:
            case Delete(mirror):
                await self._delete(mirror)
            case Create(mirror):
                await self._create(mirror)

    async def _delete(self, mirror: Pod) -> None:
        meta = mirror.metadata
        self._made.pop(full_name(mirror), None)
        self._recorder.decided("mirror pod deleted", name=meta.name)
        try:
            await self._client.delete(paths.pod(meta.namespace, meta.name), uid=meta.uid, grace_seconds=0)
        except (NotFound, Conflict):
            # Another client was faster.
            return

    async def _create(self, mirror: Pod) -> None:
        meta = mirror.metadata
        try:
            made = await self._client.create(paths.namespaced(meta.namespace, "pods"), mirror, Pod)
        except AlreadyExists:
            there = await self._client.get(paths.pod(meta.namespace, meta.name), Pod)
            if _hash(there.metadata) != _hash(meta):
                raise
            made = there
        self._recorder.decided("mirror pod made", name=meta.name)
        self._made[full_name(mirror)] = (made, asyncio.get_running_loop().time() + _WATCH_LAG)


def _shown(mirror: Pod) -> PodRef:
    """The static pod that it shows: events about a mirror belong to that pod's record."""
    meta = mirror.metadata
    return PodRef(meta.namespace, meta.name, PodUID(_hash(meta) or meta.uid))


def _hash(meta: ObjectMeta) -> str:
    return meta.annotations.get(MIRROR_ANNOTATION, "")
