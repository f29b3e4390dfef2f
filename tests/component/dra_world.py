"""The DRA side of an agent over real gRPC: an API server in memory, a folder for registrations, drivers of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from glasslet.api.codec import decode, encode
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.concurrency.services import running
from glasslet.dra.claim_file import ClaimFile
from glasslet.dra.claims_of_pods import ClaimsOfPods
from glasslet.dra.driver_calls import DRACalls
from glasslet.dra.forgotten_pods import ForgottenPods
from glasslet.dra.plugins import DRAPlugins
from glasslet.dra.registration import TYPE, DRARegistration
from glasslet.dra.slices import NodeSlices
from glasslet.plugin_registry.watcher import PluginRegistry
from glasslet.record.store import Record
from glasslet.sources.folder_watch import FolderWatch
from glasslet.telemetry.metrics.catalog import Metrics
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.dra_driver import FakeDRADriver
from tests.fakes.inline_threads import InlineThreads

NODE = "n1"
GPU = "gpu.example"


class DRAWorld:
    """One run of the agent's DRA side. Another one on the same folder and server is the agent after a restart."""

    def __init__(self, folder: Path, server: FakeAPIServer, cdi_problem: str = "") -> None:
        self.folder = folder
        self.server = server
        self.record, self.metrics, self.threads = Record(), Metrics(), InlineThreads()
        self.plugins = DRAPlugins()
        self.calls = DRACalls(plugins=self.plugins, recorder=self.record, metrics=self.metrics.dra)
        self.claims = ClaimsOfPods(
            plugins=self.plugins,
            calls=self.calls,
            file=ClaimFile(folder=str(folder), threads=self.threads, recorder=self.record),
            client=server,
            recorder=self.record,
            metrics=self.metrics.dra,
            extended=True,
            cdi_problem=cdi_problem,
        )
        self.metrics.count_resource_claims(self.claims.book.in_use)
        self.slices = NodeSlices(client=server, node=NODE, plugins=self.plugins, recorder=self.record)
        self.registry = PluginRegistry(
            folder=str(folder / "plugins_registry"),
            handlers={TYPE: DRARegistration(self.plugins)},
            watch=lambda folders: FolderWatch(folders=folders, recorder=self.record, what="plugin"),
            recorder=self.record,
        )
        self.alive: set[str] = set()
        self.forgotten = ForgottenPods(
            claims=self.claims, known=lambda: True, alive=lambda uid: uid in self.alive, recorder=self.record
        )

    async def unprepare(self, it: Pod) -> None:
        await self.claims.unprepare(pod_ref(it))

    def slice_names(self) -> list[str]:
        return sorted(one["metadata"]["name"] for one in self.server.all_plain("resourceslices"))

    def on_disk(self) -> str:
        """The claims as they are written down."""
        path = self.folder / "dra_manager_state"
        return path.read_text() if path.exists() else ""

    def findings(self) -> list[str]:
        return self.record.findings()

    def waits(self) -> list[str]:
        """What is waited for now."""
        return [wait.on for wait in self.record.live_waits()]

    def sample(self, name: str, *labels: str) -> float:
        """The value of a metric with these values of labels, as exposed."""
        lines = self.metrics.registry.expose().decode().splitlines()
        wanted = [f'="{label}"' for label in labels]
        return next(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith(f"{name}{{") and all(label in line for label in wanted)
        )

    async def until(self, what: Callable[[], object]) -> None:
        """Waits for a fact."""
        async with asyncio.timeout(60):
            while not what():
                await asyncio.sleep(0.005)


@asynccontextmanager
async def dra_world(folder: Path, server: FakeAPIServer | None = None, **fields: str) -> AsyncIterator[DRAWorld]:
    """Runs it meanwhile."""
    world = DRAWorld(folder, server or FakeAPIServer(), **fields)
    await world.claims.start()
    async with running({"registry": world.registry.run, "plugins": world.plugins.run, "slices": world.slices.run}):
        yield world


@asynccontextmanager
async def driver_in(world: DRAWorld, name: str = GPU, **said: Any) -> AsyncIterator[FakeDRADriver]:
    """A driver that is registered and connected. `said`: its fields."""
    driver = FakeDRADriver(world.folder, name, instance=said.pop("instance", ""))
    for field, value in said.items():
        setattr(driver, field, value)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(driver.stop)
        await driver.serve()
        await driver.register()
        await world.until(lambda: driver.told and world.plugins.connected(name))
        yield driver


def claimed_pod(uid: str = "u1", *claims: str, container: dict[str, Any] | None = None, **status: Any) -> Pod:
    """A pod `uid` whose claims are the ResourceClaims of these names (`c1` without any), all of them its container's.
    `status`: fields of its status."""
    names = claims or ("c1",)
    entries = [{"name": f"entry-{name}", "resourceClaimName": name} for name in names]
    main = {"name": "main", "resources": {"claims": [{"name": entry["name"]} for entry in entries]}}
    plain = {
        "metadata": {"name": uid, "namespace": "default", "uid": uid},
        "spec": {"containers": [container or main], "resourceClaims": entries},
        "status": status,
    }
    return decode(encode(plain), Pod)


def put_claim(
    server: FakeAPIServer,
    name: str = "c1",
    *,
    pods: tuple[str, ...] = ("u1",),
    drivers: tuple[str, ...] = (GPU,),
    **meta: Any,
) -> None:
    """A ResourceClaim that is allocated, one device of each driver, and reserved for these pods."""
    results = [{"request": "gpu", "driver": driver, "pool": "pool", "device": "gpu-0"} for driver in drivers]
    server.put(
        "resourceclaims",
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"{name}-uid", **meta},
            "status": {
                "allocation": {"devices": {"results": results}},
                "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in pods],
            },
        },
    )


def put_slice(server: FakeAPIServer, name: str, *, driver: str = GPU, node: str = NODE) -> None:
    """A ResourceSlice that a driver published."""
    server.put("resourceslices", {"metadata": {"name": name}, "spec": {"nodeName": node, "driver": driver}})
