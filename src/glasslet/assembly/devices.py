"""The device plugins' side: their offers, the manager, and the sockets at which they are found."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping

from glasslet.api.container import Container
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.quantity import Quantity
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.devices.checkpoint_file import CheckpointFile
from glasslet.devices.manager import DeviceManager, DeviceProblem
from glasslet.devices.offers import Offers
from glasslet.devices.registration import (
    SOCKET,
    RegistryHandler,
    device_plugin_folder,
    registration_service,
    remove_sockets,
)
from glasslet.devices.unix_server import UnixServer
from glasslet.exchange.admission import Rejected
from glasslet.host.files.small_files import make_directory
from glasslet.node.inputs import DeviceResources
from glasslet.plugin_registry.watcher import PluginRegistry
from glasslet.podspec.errors import container_error
from glasslet.runtime.spec import ContainerDevices
from glasslet.sources.folder_watch import FolderWatch

_FOLDER_MODE = 0o750
_TOGETHER = 0.2
"""Seconds: changes that come together are told together."""
_NO_REGISTRATION = (
    "device registration error: device plugin registration gRPC server failed and no device plugins can register"
)


class PodDevices:
    """Implements `pods.collaborators.Devices`."""

    def __init__(self, manager: DeviceManager) -> None:
        self._manager = manager

    async def allocate(self, pod: Pod) -> Rejected | None:
        """See `DeviceManager.allocate`."""
        return await self._manager.allocate(pod)

    async def prepare(self, pod: Pod, container: Container) -> ContainerDevices:
        """See `DeviceManager.prepare`. Raises ConfigError."""
        try:
            return await self._manager.prepare(pod, container)
        except DeviceProblem as error:
            raise container_error(str(error)) from error


class DeviceSide:
    """Everything about device plugins. `start` comes before the services, and before the first pod. Raises ValueError
    for a folder that cannot be meant."""

    def __init__(self, foundation: Foundation, runtime: RuntimeSide, *, all_pods_known: Callable[[], bool]) -> None:
        self._observed = runtime.observed
        self._record = foundation.record
        self._told: asyncio.TimerHandle | None = None
        self._all_pods_known = all_pods_known
        self.folder = device_plugin_folder(os.environ)
        self._file = CheckpointFile(folder=self.folder, threads=foundation.threads, recorder=foundation.record)
        self.offers = Offers(recorder=foundation.record)
        self.manager = DeviceManager(
            file=self._file,
            offers=self.offers,
            pods=self,
            metrics=foundation.metrics.devices,
            recorder=foundation.record,
        )
        self.pods = PodDevices(self.manager)
        self._registration = UnixServer(
            path=f"{self.folder}/{SOCKET}",
            handlers=(registration_service(self.folder, self.offers, foundation.metrics.devices.registered),),
            recorder=foundation.record,
        )
        self._registry = PluginRegistry(
            folder=f"{foundation.root.root_dir}/plugins_registry",
            handlers={"DevicePlugin": RegistryHandler(self.offers)},
            watch=lambda folders: FolderWatch(folders=folders, recorder=foundation.record, what="plugin"),
            recorder=foundation.record,
        )
        foundation.metrics.count_plugins(self._registry.sockets)
        self.services: Mapping[str, Callable[[], Awaitable[None]]] = {
            "device plugins": self.offers.run,
            "device plugin registration": self._registration.run,
            "plugin registry": self._registry.run,
        }

    def start(self) -> None:
        """Takes up what an earlier agent left. Without its folder there are no device plugins, and a finding."""
        try:
            make_directory(self.folder, _FOLDER_MODE)
            remove_sockets(self.folder)
            self.manager.load()
        except OSError as error:
            self._record.finding(f"folder of device plugins cannot be used: {error}")

    def problem(self) -> str | None:
        """For the health check `device-plugin`."""
        problem = self._registration.problem
        return f"{_NO_REGISTRATION}: {problem}" if problem else None

    def of_node(self) -> DeviceResources:
        """For the node's status."""
        amounts = self.offers.amounts()
        return DeviceResources(
            capacity={name: Quantity(one.capacity) for name, one in amounts.items()},
            allocatable={name: Quantity(one.allocatable) for name, one in amounts.items()},
            removed=self.offers.removed(),
        )

    def none_known(self) -> bool:
        """No device manager of this machine has ever known any: it is a new one under an old name."""
        return not self._file.exists()

    def tell(self, wake: Callable[[], None]) -> None:
        """Calls `wake` soon after each change of what the node has."""

        def changed() -> None:
            if self._told is None:
                self._told = asyncio.get_running_loop().call_later(_TOGETHER, told)

        def told() -> None:
            self._told = None
            wake()

        self.manager.changed = changed

    # -- what the manager wants to know of pods ------------------------------------------------------------------------

    def stands(self, uid: PodUID) -> bool:
        """See `KnownPods.stands`."""
        observed = self._observed.get(uid)
        return observed is not None and (bool(observed.running()) or observed.ready_sandbox() is not None)

    def all_known(self) -> bool:
        """Whether every source has told of its pods."""
        return self._all_pods_known()
