"""Builds the device plugins: their offers, the device manager, and the sockets at which they register."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.devices.checkpoint_file import CheckpointFile
from glasslet.devices.manager import DeviceManager
from glasslet.devices.offers import Offers
from glasslet.devices.pod_knowledge import PodKnowledge
from glasslet.devices.registration import SOCKET, RegistryHandler, device_plugin_folder, registration_service
from glasslet.devices.unix_server import UnixServer
from glasslet.plugin_registry.watcher import PluginHandler, PluginRegistry
from glasslet.sources.folder_watch import FolderWatch


class DeviceSide(Struct, frozen=True, kw_only=True):
    """`manager.start` comes before the services, and before the first pod."""

    manager: DeviceManager
    offers: Offers
    file: CheckpointFile
    registration: UnixServer
    services: Mapping[str, Callable[[], Awaitable[None]]]


def build_devices(
    foundation: Foundation,
    runtime: RuntimeSide,
    *,
    all_pods_known: Callable[[], bool],
    handlers: Mapping[str, PluginHandler],
) -> DeviceSide:
    """`all_pods_known`: every source has reported its pods; `handlers`: of plugins of other types that register by a
    socket. Raises ValueError for an unusable folder."""
    record, metrics = foundation.record, foundation.metrics
    folder = device_plugin_folder(os.environ)
    file = CheckpointFile(folder=folder, threads=foundation.threads, recorder=record)
    offers = Offers(recorder=record)
    manager = DeviceManager(
        file=file,
        offers=offers,
        pods=PodKnowledge(observed=runtime.observed.get, all_known=all_pods_known),
        metrics=metrics.devices,
        recorder=record,
        numa_nodes=[node.id for node in foundation.topology.nodes],
    )
    registration = UnixServer(
        path=f"{folder}/{SOCKET}",
        handlers=(registration_service(folder, offers, metrics.devices.registered),),
        recorder=record,
    )
    registry = PluginRegistry(
        folder=f"{foundation.root.root_dir}/plugins_registry",
        handlers={"DevicePlugin": RegistryHandler(offers), **handlers},
        watch=lambda folders: FolderWatch(folders=folders, recorder=record, what="plugin"),
        recorder=record,
    )
    metrics.count_plugins(registry.sockets)
    return DeviceSide(
        manager=manager,
        offers=offers,
        file=file,
        registration=registration,
        services={
            "device plugins": offers.run,
            "device plugin registration": registration.run,
            "plugin registry": registry.run,
        },
    )
