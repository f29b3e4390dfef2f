"""The CSI side of an agent over real gRPC: an API server in memory, a folder for registrations, drivers of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from glasslet.concurrency.services import running
from glasslet.plugin_registry.watcher import PluginRegistry
from glasslet.record.store import Record
from glasslet.sources.folder_watch import FolderWatch
from glasslet.volumes.csi.driver_calls import DriverCalls
from glasslet.volumes.csi.drivers import Drivers
from glasslet.volumes.csi.publication import NodePublication
from glasslet.volumes.csi.registration import TYPE, DriverRegistration
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.csi_driver import FakeCSIDriver

NODE = "n1"


class CSIWorld:
    """One run of the agent's CSI side. Another one on the same folder and server is the agent after a restart."""

    def __init__(self, folder: Path, server: FakeAPIServer) -> None:
        self.folder = folder
        self.server = server
        self.record = Record()
        self.drivers = Drivers()
        self.calls = DriverCalls(drivers=self.drivers, recorder=self.record)
        self.publication = NodePublication(client=server, node=NODE, recorder=self.record)
        handler = DriverRegistration(drivers=self.drivers, calls=self.calls, publication=self.publication)
        self.registry = PluginRegistry(
            folder=str(folder / "plugins_registry"),
            handlers={TYPE: handler},
            watch=lambda folders: FolderWatch(folders=folders, recorder=self.record, what="plugin"),
            recorder=self.record,
        )

    def node(self) -> dict[str, Any]:
        found = self.server.get_plain("nodes", "", NODE)
        assert found is not None
        return found

    def shown(self) -> list[dict[str, Any]]:
        """The drivers in CSINode."""
        found = self.server.get_plain("csinodes", "", NODE) or {}
        drivers: list[dict[str, Any]] = found.get("spec", {}).get("drivers", [])
        return drivers

    def names(self) -> list[str]:
        return [driver["name"] for driver in self.shown()]

    async def until(self, what: Callable[[], object]) -> None:
        """Waits for a fact."""
        async with asyncio.timeout(60):
            while not what():
                await asyncio.sleep(0.005)


def api_server() -> FakeAPIServer:
    """One that has the node."""
    server = FakeAPIServer()
    server.put("nodes", {"metadata": {"name": NODE, "uid": "node-uid", "labels": {"kubernetes.io/hostname": NODE}}})
    return server


@asynccontextmanager
async def csi_world(folder: Path, server: FakeAPIServer | None = None) -> AsyncIterator[CSIWorld]:
    """Runs it meanwhile."""
    world = CSIWorld(folder, server or api_server())
    async with running({"registry": world.registry.run, "CSINode": world.publication.run}):
        yield world


@asynccontextmanager
async def driver_in(world: CSIWorld, name: str = "d.example", **said: Any) -> AsyncIterator[FakeCSIDriver]:
    """A driver that is registered. `said`: what it says of the node."""
    driver = FakeCSIDriver(world.folder / "plugins", name)
    for field, value in said.items():
        setattr(driver, field, value)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(driver.stop)
        await driver.serve()
        await driver.register()
        await world.until(lambda: driver.told)
        yield driver
