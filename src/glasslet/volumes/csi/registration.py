"""CSI drivers register by a socket in plugins_registry: `plugin_registry.PluginHandler`.

validated ──▶ NodeGetInfo ──▶ shown at the API server ──▶ registered      a failure takes all of it back
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Protocol

from glasslet.kubeapi.errors import APIError
from glasslet.volumes.csi.driver_calls import DriverCalls, NodeInfo
from glasslet.volumes.csi.drivers import Drivers, RegisteredDriver, Version, highest_version
from glasslet.volumes.csi.errors import CSIProblem
from glasslet.volumes.csi.node_entries import TopologyCollision

logger = logging.getLogger(__name__)

TYPE = "CSIPlugin"


class Publication(Protocol):
    """`publication.NodePublication`. Raises APIError, TopologyCollision, ValueError."""

    async def add(self, driver: str, info: NodeInfo) -> None: ...
    async def remove(self, driver: str) -> None: ...


class DriverRegistration:
    """`publication` None: no API server is told."""

    def __init__(self, *, drivers: Drivers, calls: DriverCalls, publication: Publication | None) -> None:
        self._drivers = drivers
        self._calls = calls
        self._publication = publication
        self._validated: dict[str, Version] = {}

    def validate(self, name: str, versions: Collection[str]) -> str:
        """Why the registration is invalid; "" if it is valid. `register` of that name follows at once."""
        if problem := self._drivers.problem(name, versions):
            return f"validation failed for CSI Driver {name}: {problem}"
        self._validated[name] = highest_version(versions) or (1,)
        return ""

    async def register(self, name: str, endpoint: str) -> str:
        """Registers the driver. Returns why it failed; "" for success. Mounts may use it before it is shown."""
        version = self._validated.pop(name)
        self._drivers.add(RegisteredDriver(name=name, endpoint=endpoint, version=version))
        try:
            info = await self._calls.node_info(name)
            if self._publication is not None:
                await self._publication.add(name, info)
        except (CSIProblem, APIError, TopologyCollision, ValueError) as error:
            problem = error.message if isinstance(error, APIError) else str(error)
        except asyncio.CancelledError:
            self._drivers.remove(name, endpoint)
            raise
        else:
            return ""
        await self.deregister(name, endpoint)
        return problem

    async def deregister(self, name: str, endpoint: str) -> None:
        """The driver is gone. What it mounted stays as it is. A newer driver of that name is not touched."""
        if not self._drivers.remove(name, endpoint) or self._publication is None:
            return
        try:
            await self._publication.remove(name)
        except (APIError, ValueError) as error:
            # It stays in the list, as after a restart of this agent, until it registers again.
            logger.warning("CSI driver stays in CSINode", extra={"driver": name, "error": str(error)})
