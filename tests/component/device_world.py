"""The device side over real gRPC: registration socket, manager, and plugins that tests script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from glasslet.api.container import ResourceRequirements
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.concurrency.services import running
from glasslet.devices.checkpoint_file import CheckpointFile
from glasslet.devices.manager import DeviceManager
from glasslet.devices.offers import Offers
from glasslet.devices.registration import SOCKET, registration_service
from glasslet.devices.unix_server import UnixServer
from glasslet.exchange.admission import Rejected
from glasslet.host.threads import HostThreads
from glasslet.record.store import Record
from glasslet.telemetry.metrics.catalog import Metrics
from tests.builders.pod import container, pod
from tests.fakes.device_plugin import FakeDevicePlugin, device

GPU = "example.com/gpu"


def gpu_pod(uid: str = "u", *, count: int = 1, resource: str = GPU) -> Pod:
    """A pod whose container `main` asks for devices."""
    limits = {resource: Quantity(count)}
    return pod(container("main", resources=ResourceRequirements(limits=limits, requests=limits)), uid=uid, name=uid)


class DeviceWorld:
    """One run of the agent's device side. `standing`: UIDs of the pods whose sandbox is up."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.record = Record()
        self.metrics = Metrics()
        self.standing: set[str] = set()
        self.pods_known = True
        self.file = CheckpointFile(folder=self.folder, threads=HostThreads(recorder=self.record), recorder=self.record)
        self.offers = Offers(recorder=self.record)
        self.manager = DeviceManager(
            file=self.file,
            offers=self.offers,
            pods=self,
            metrics=self.metrics.devices,
            recorder=self.record,
        )
        self.server = UnixServer(
            path=f"{folder}/{SOCKET}",
            handlers=(registration_service(self.folder, self.offers, self.metrics.devices.registered),),
            recorder=self.record,
        )

    def stands(self, uid: PodUID) -> bool:
        return uid in self.standing

    def all_known(self) -> bool:
        return self.pods_known

    def amounts(self, resource: str = GPU) -> tuple[int, int] | None:
        """Capacity and allocatable."""
        found = self.offers.amounts().get(resource)
        return (found.capacity, found.allocatable) if found is not None else None

    async def until(self, what: Callable[[], object], seconds: float = 60.0) -> None:
        """Waits for a fact."""
        async with asyncio.timeout(seconds):
            while not what():
                await asyncio.sleep(0.005)

    async def admit(self, it: Pod, *others: Pod) -> Rejected | None:
        """Admission and the worker's part of it."""
        refused = self.manager.claim(it, others)
        return refused if refused is not None else await self.manager.allocate(it)

    @asynccontextmanager
    async def plugin(self, *names: str, resource: str = GPU) -> AsyncIterator[FakeDevicePlugin]:
        """A plugin that is registered, and whose devices are known."""
        plugin = FakeDevicePlugin(self.folder, resource, [device(name) for name in names])
        await plugin.serve()
        try:
            await plugin.register()
            await self.until(lambda: self.amounts(resource) == (len(names), len(names)))
            yield plugin
        finally:
            plugin.go_on.set()
            await plugin.stop()


@asynccontextmanager
async def device_world(folder: Path) -> AsyncIterator[DeviceWorld]:
    """Runs it meanwhile. Another one on the same folder is the agent after a restart."""
    world = DeviceWorld(folder)
    await world.manager.load()
    async with running({"plugins": world.offers.run, "registration": world.server.run}):
        await world.until(world.server.listening.is_set)
        yield world
