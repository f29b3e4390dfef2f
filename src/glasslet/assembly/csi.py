"""Builds what CSI drivers need before there are pods: their registration, their calls, and their part of the node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from glasslet.assembly.foundation import Foundation
from glasslet.plugin_registry.watcher import PluginHandler
from glasslet.volumes.csi.driver_calls import DriverCalls
from glasslet.volumes.csi.drivers import Drivers
from glasslet.volumes.csi.publication import NodePublication
from glasslet.volumes.csi.registration import TYPE, DriverRegistration


@dataclass(frozen=True, slots=True, kw_only=True)
class CSISide:
    """`services` run with the node; `publication` is None without an API server."""

    drivers: Drivers
    calls: DriverCalls
    publication: NodePublication | None
    handlers: Mapping[str, PluginHandler]
    services: Mapping[str, Callable[[], Awaitable[None]]]

    def problem(self) -> str:
        """Why the node's storage is not ready; "" if it is."""
        return self.publication.problem() if self.publication is not None else ""

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Has it called when `problem` changes."""
        if self.publication is not None:
            self.publication.subscribe(callback)


def build_csi(foundation: Foundation) -> CSISide:
    """The drivers of this node; none has registered yet."""
    drivers = Drivers()
    calls = DriverCalls(drivers=drivers, recorder=foundation.record)
    publication = None
    if foundation.clients is not None:
        publication = NodePublication(
            client=foundation.clients.requests, node=foundation.node_name, recorder=foundation.record
        )
    return CSISide(
        drivers=drivers,
        calls=calls,
        publication=publication,
        handlers={TYPE: DriverRegistration(drivers=drivers, calls=calls, publication=publication)},
        services={"CSINode": publication.run} if publication is not None else {},
    )
