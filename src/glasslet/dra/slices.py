"""ResourceSlices of this node whose driver is gone are deleted, so that the scheduler chooses none of its devices.

at the start of the agent             all of the node: living drivers publish theirs again
30 s after a driver's connection ends those of the driver; one that connects again meanwhile keeps them
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from glasslet.concurrency.jitter import jittered
from glasslet.concurrency.supervision import Supervisor
from glasslet.dra.plugins import DRAPlugins
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import APIError, NotFound
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding

logger = logging.getLogger(__name__)

GRACE = 30.0
"""Seconds without a connected plugin, as upstream."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0


class CollectionDeleter(Protocol):
    """Deletes objects (`kubeapi.client`). Raises APIError."""

    async def delete_all(self, path: str, *, query: Mapping[str, str]) -> None: ...


class NodeSlices:
    """The ResourceSlices of the node. `run` deletes."""

    def __init__(self, *, client: CollectionDeleter, node: str, plugins: DRAPlugins, recorder: Recorder) -> None:
        self._client = client
        self._node = node
        self._plugins = plugins
        self._recorder = recorder
        self._back: dict[str, asyncio.Event] = {}
        self._tasks = Supervisor()
        plugins.subscribe(self._changed)

    async def run(self) -> None:
        """Runs until cancelled."""
        self._tasks.start("ResourceSlices of the node", partial(self._delete, "", asyncio.Event()))
        for driver in self._plugins.drivers():
            self._changed(driver)
        await self._tasks.run()

    def _changed(self, driver: str) -> None:
        if self._plugins.connected(driver):
            if (waiting := self._back.pop(driver, None)) is not None:
                waiting.set()
        elif driver not in self._back:
            self._back[driver] = back = asyncio.Event()
            self._tasks.start(f"ResourceSlices of {driver}", partial(self._delete_later, driver, back))

    async def _delete_later(self, driver: str, back: asyncio.Event) -> None:
        if not await _came(back, GRACE):
            await self._delete(driver, back)

    async def _delete(self, driver: str, back: asyncio.Event) -> None:
        """Deletes those of the driver ("": all), again and again while the API server refuses and it is not back."""
        selector = f"spec.nodeName={self._node}" + (f",spec.driver={driver}" if driver else "")
        whose = f"DRA driver {driver}, which is gone," if driver else "earlier DRA drivers"
        trouble = StandingFinding(self._recorder)
        pause = _FIRST_PAUSE
        while not back.is_set():
            try:
                await self._client.delete_all(paths.RESOURCE_SLICES, query={"fieldSelector": selector})
            except NotFound:
                # This API is not served.
                break
            except APIError as error:
                trouble.is_(f"ResourceSlices of {whose} cannot be deleted: {error.message}")
                await _came(back, jittered(pause))
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            logger.info("ResourceSlices deleted", extra={"driver": driver or "all"})
            break
        trouble.over()


async def _came(event: asyncio.Event, seconds: float) -> bool:
    """Whether it came within this time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
