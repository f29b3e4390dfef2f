"""Shows the node's CSI drivers at the API server: the one writer of its CSINode, and of the drivers' part of its Node.

CSINode exists ──▶ drivers may register ──▶ id and labels on the Node, then the entry in CSINode
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from glasslet.api.node import Node
from glasslet.api.storage import CSINode
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import AlreadyExists, APIError, Conflict, NotFound, Unavailable
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.volumes.csi.driver_calls import NodeInfo
from glasslet.volumes.csi.node_entries import (
    driver_entry,
    new_csi_node,
    node_patch_with,
    node_patch_without,
    with_driver,
    with_migrated,
    without_driver,
)

logger = logging.getLogger(__name__)

FIRST = "CSINode is not yet initialized"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 7.0
_TRIES = 4
_PAUSE = 0.02
"""Seconds before another try of a write that met a newer object; each pause is five times the one before."""
READY_WITHIN = 120.0
"""Seconds that a driver's registration waits for the node's own."""


def _nothing() -> None:
    return


class NodePublication:
    """Writes of drivers come one after the other."""

    def __init__(self, *, client: APIClient, node: str, recorder: Recorder) -> None:
        self._client = client
        self._node = node
        self._recorder = recorder
        self._changed: Callable[[], None] = _nothing
        self._problem = FIRST
        self._ready = asyncio.Event()
        self._lock = asyncio.Lock()
        self._brought: dict[str, set[str]] = {}

    def problem(self) -> str:
        """Why the node's storage is not ready; "" if it is."""
        return self._problem

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Has it called when `problem` changes."""
        self._changed = callback

    async def run(self) -> None:
        """Makes the CSINode, with retries, until cancelled."""
        pause = _FIRST_PAUSE
        while not self._ready.is_set():
            try:
                await self._initialize()
            except NotFound:
                # The node itself is not registered yet.
                pass
            except APIError as error:
                logger.warning("CSINode not initialized", extra={"error": str(error)})
                self._tell(f"failed to initialize CSINode: {error.message}")
            if not self._ready.is_set():
                with self._recorder.wait(WaitKind.BACK_OFF, on="CSINode of this node"):
                    await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        await asyncio.get_running_loop().create_future()

    async def add(self, driver: str, info: NodeInfo) -> None:
        """Shows the driver. Raises APIError, TopologyCollision, ValueError."""
        if not info.node_id:
            raise ValueError("error adding CSI driver node info: driverNodeID must not be empty")
        try:
            with self._recorder.wait(WaitKind.API_CALL, on=f"CSINode of this node, for CSI driver {driver}"):
                async with asyncio.timeout(READY_WITHIN):
                    await self._ready.wait()
        except TimeoutError:
            raise Unavailable(f"CSINode {self._node}", self._problem or FIRST) from None
        async with self._lock:
            await self._retried(lambda: self._add(driver, info))

    async def remove(self, driver: str) -> None:
        """Shows the driver no more. Raises APIError, ValueError."""
        async with self._lock:
            await self._retried(lambda: self._remove(driver))

    async def _initialize(self) -> None:
        try:
            found = await self._client.get(paths.csi_node(self._node), CSINode)
        except NotFound:
            node = await self._client.get(paths.node(self._node), Node)
            await self._client.create(paths.CSI_NODES, new_csi_node(node), CSINode)
        else:
            await self._update(found, with_migrated(found))
        self._ready.set()
        self._tell("")

    async def _add(self, driver: str, info: NodeInfo) -> None:
        found = await self._csi_node()
        before = {key for one in found.spec.drivers if one.name == driver for key in one.topology_keys}
        own = self._brought.setdefault(driver, set())
        own |= before
        node = await self._client.get(paths.node(self._node), Node)
        if patch := node_patch_with(node, driver, info, own):
            await self._client.patch(paths.node_status(self._node), patch, Node)
        own |= set(info.topology)
        await self._update(found, with_driver(found, driver_entry(driver, info)))

    async def _remove(self, driver: str) -> None:
        found = await self._csi_node()
        await self._update(found, without_driver(found, driver))
        node = await self._client.get(paths.node(self._node), Node)
        if patch := node_patch_without(node, driver):
            await self._client.patch(paths.node_status(self._node), patch, Node)

    async def _csi_node(self) -> CSINode:
        try:
            return await self._client.get(paths.csi_node(self._node), CSINode)
        except NotFound:
            node = await self._client.get(paths.node(self._node), Node)
            return await self._client.create(paths.CSI_NODES, new_csi_node(node), CSINode)

    async def _update(self, found: CSINode, wanted: CSINode) -> None:
        if wanted is not found:
            await self._client.update(paths.csi_node(self._node), wanted, CSINode)

    async def _retried(self, write: Callable[[], Awaitable[None]]) -> None:
        pause = _PAUSE
        for left in reversed(range(_TRIES)):
            try:
                await write()
            except (Conflict, AlreadyExists):
                if not left:
                    raise
            else:
                return
            with self._recorder.wait(WaitKind.BACK_OFF, on="CSINode of this node, which changed meanwhile"):
                await asyncio.sleep(pause)
            pause *= 5

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self._changed()
