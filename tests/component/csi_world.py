"""The CSI side of an agent over real gRPC: an API server in memory, a folder for registrations, drivers of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from glasslet.api.codec import decode, encode
from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.concurrency.clock import LoopClock
from glasslet.concurrency.services import running
from glasslet.host.files.layout import RootLayout
from glasslet.host.mounts.syscalls import Mounts
from glasslet.host.threads import HostThreads
from glasslet.kubeapi.objects.tokens import ServiceAccountTokens
from glasslet.plugin_registry.watcher import PluginRegistry
from glasslet.record.store import Record
from glasslet.sources.folder_watch import FolderWatch
from glasslet.volumes.attachment import ControllerAttachment, VolumesInUse
from glasslet.volumes.claim_notes import ClaimNotes
from glasslet.volumes.claims import Claims
from glasslet.volumes.csi.cluster_data import CSIClusterData
from glasslet.volumes.csi.driver_calls import DriverCalls
from glasslet.volumes.csi.driver_objects import DriverObjects
from glasslet.volumes.csi.drivers import Drivers
from glasslet.volumes.csi.expansion import VolumeGrowth
from glasslet.volumes.csi.places import CSIPlaces, attachment_name
from glasslet.volumes.csi.publication import NodePublication
from glasslet.volumes.csi.publishing import Publishing
from glasslet.volumes.csi.registration import TYPE, DriverRegistration
from glasslet.volumes.csi.selinux import LabelledMounts
from glasslet.volumes.csi.staging import Staging
from glasslet.volumes.group_owner import GroupOwner
from glasslet.volumes.inventory import VolumeInventory
from glasslet.volumes.manager import VolumeManager
from glasslet.volumes.types.csi import CSIVolumes
from tests.builders.pod import container, pod
from tests.fakes.api_server import FakeAPIServer
from tests.fakes.csi_driver import FakeCSIDriver

NODE = "n1"


class CSIWorld:
    """One run of the agent's CSI side. Another one on the same folder and server is the agent after a restart."""

    def __init__(self, folder: Path, server: FakeAPIServer, labels: LabelledMounts | None = None) -> None:
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

        root, mounts, threads = RootLayout(str(folder)), Mounts(), HostThreads(recorder=self.record)
        places = CSIPlaces(root)
        self.root = root
        self.mounts = mounts
        self.events: list[tuple[str, str]] = []
        self.objects = DriverObjects(client=server, recorder=self.record)
        self.staging = Staging(places=places, calls=self.calls, mounts=mounts, threads=threads, recorder=self.record)
        self.in_use = VolumesInUse(root=root, attaches=self.objects.attaches)
        self.inventory = VolumeInventory(
            root=root, mounts=mounts, threads=threads, drivers=self.drivers, pods=lambda: {"u1": "default/db"}
        )
        tokens = ServiceAccountTokens(client=server, recorder=self.record, clock=LoopClock())
        data = CSIClusterData(client=server, tokens=tokens, node=NODE)
        plugin = CSIVolumes(
            calls=self.calls,
            wishes=self.objects,
            data=data,
            growth=VolumeGrowth(
                client=server, calls=self.calls, data=data, emit=self._emit, clock=LoopClock(), node=NODE
            ),
            staging=self.staging,
            publishing=Publishing(places=places, calls=self.calls, mounts=mounts, threads=threads, node=NODE),
            groups=GroupOwner(threads=threads, emit=self._emit),
            emit=self._emit,
            labels=labels,
        )
        self.volumes = VolumeManager(
            root=root,
            plugins={"csi": plugin},
            claims=Claims(client=server, notes=ClaimNotes(root=root, threads=threads), node=NODE, labels=dict),
            mounts=mounts,
            threads=threads,
            attachment=ControllerAttachment(
                in_use=self.in_use, node=self._as_seen, changed=self.report, recorder=self.record
            ),
        )

    def _emit(self, ref: PodRef, kind: str, reason: str, text: str) -> None:
        self.events.append((reason, text))

    def _as_seen(self) -> Node:
        return decode(encode(self.node()), Node)

    def report(self) -> None:
        """What the node's status loop does, at once."""
        self.server.change("nodes", "", NODE, {"status": {"volumesInUse": list(self.in_use.names() or ())}})

    def mounted(self) -> list[str]:
        """What is mounted below the root directory."""
        return sorted(entry.path for entry in self.mounts.table().at_or_below(str(self.folder)))

    async def prepare(self, one: Pod) -> str:
        """Has all volumes of the pod set up. The path or device of `data`."""
        found = (await self.volumes.prepare(one))["data"]
        return found.path or found.device

    async def tear_down(self, one: Pod) -> None:
        await self.volumes.tear_down(pod_ref(one))

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
async def csi_world(
    folder: Path, server: FakeAPIServer | None = None, labels: LabelledMounts | None = None
) -> AsyncIterator[CSIWorld]:
    """Runs it meanwhile."""
    world = CSIWorld(folder, server or api_server(), labels)
    services = {"registry": world.registry.run, "CSINode": world.publication.run, "drivers": world.objects.run}
    async with running(services):
        yield world


@asynccontextmanager
async def driver_in(world: CSIWorld, name: str = "d.example", **said: Any) -> AsyncIterator[FakeCSIDriver]:
    """A driver that is registered. `said`: what it says of the node."""
    driver = FakeCSIDriver(world.folder / "plugins", name, mounts=Mounts())
    for field, value in said.items():
        setattr(driver, field, value)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(driver.stop)
        await driver.serve()
        await driver.register()
        await world.until(lambda: driver.told)
        yield driver


def claim_pod(uid: str = "u1", *, claim: str = "c1", block: bool = False, **fields: Any) -> Pod:
    """A pod whose volume `data` is behind a claim."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim, "readOnly": fields.pop("read_only", False)}}
    return _with_volume(uid, volume, block, fields)


def inline_pod(uid: str = "u1", *, driver: str = "d.example", **source: Any) -> Pod:
    """A pod with a volume `data` of its own."""
    return _with_volume(uid, {"name": "data", "csi": {"driver": driver, **source}}, False, {})


def _with_volume(uid: str, volume: dict[str, Any], block: bool, fields: dict[str, Any]) -> Pod:
    used = {"volumeDevices": [{"name": "data", "devicePath": "/dev/x"}]}
    if not block:
        used = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    plain = {"spec": {"containers": [{"name": "main", **used}], "volumes": [volume], "serviceAccountName": "sa"}}
    plain["spec"] |= fields
    read = decode(encode(plain), Pod)
    return replace(pod(container(), uid=uid, name=uid), spec=read.spec)


def put_volume(server: FakeAPIServer, name: str = "pv1", *, claim: str = "c1", **spec: Any) -> None:
    """A PersistentVolume of `d.example` with the handle `h-<name>`, bound to the claim. `spec`: fields of its own,
    `csi` those of its source."""
    source = {"driver": "d.example", "volumeHandle": f"h-{name}", **spec.pop("csi", {})}
    bound = {"metadata": {"name": claim, "namespace": "default", "uid": f"{claim}-uid"}, "spec": {"volumeName": name}}
    server.put("persistentvolumeclaims", bound | {"status": {"phase": "Bound", **spec.pop("claim_status", {})}})
    whole = {
        "csi": source,
        "claimRef": {"namespace": "default", "name": claim, "uid": f"{claim}-uid"},
        "accessModes": ["ReadWriteOnce"],
        **spec,
    }
    server.put("persistentvolumes", {"metadata": {"name": name}, "spec": whole})


def put_driver(server: FakeAPIServer, **spec: Any) -> None:
    """The CSIDriver object of `d.example`, which needs no attachment unless told."""
    spec = {"attachRequired": False, "fsGroupPolicy": "ReadWriteOnceWithFSType", **spec}
    server.put("csidrivers", {"metadata": {"name": "d.example"}, "spec": spec})


def attach(server: FakeAPIServer, handle: str = "h-pv1", **status: Any) -> None:
    """What controller and external attacher do."""
    name = attachment_name(handle, "d.example", NODE)
    server.put("volumeattachments", {"metadata": {"name": name}, "status": {"attached": True, **status}})
    entry = {"name": f"kubernetes.io/csi/d.example^{handle}", "devicePath": name}
    server.change("nodes", "", NODE, {"status": {"volumesAttached": [entry]}})
