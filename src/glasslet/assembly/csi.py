"""Builds what CSI drivers need: their registration, their calls, their part of the node, and their volumes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct, field

from glasslet.assembly.foundation import Foundation
from glasslet.exchange.volume import ReportedFigures
from glasslet.kubeapi.objects.tokens import ServiceAccountTokens
from glasslet.plugin_registry.watcher import PluginHandler
from glasslet.volumes.csi.cluster_data import CSIClusterData
from glasslet.volumes.csi.driver_calls import DriverCalls
from glasslet.volumes.csi.driver_objects import DriverObjects
from glasslet.volumes.csi.drivers import Drivers
from glasslet.volumes.csi.expansion import VolumeGrowth
from glasslet.volumes.csi.figures import DriverFigures
from glasslet.volumes.csi.places import CSIPlaces
from glasslet.volumes.csi.publication import NodePublication
from glasslet.volumes.csi.publishing import Publishing
from glasslet.volumes.csi.registration import TYPE, DriverRegistration
from glasslet.volumes.csi.selinux import LabelledMounts
from glasslet.volumes.csi.staging import Staging
from glasslet.volumes.group_owner import GroupOwner
from glasslet.volumes.plugin import MountCalls, VolumePlugin
from glasslet.volumes.sources import CSI
from glasslet.volumes.types.csi import CSIVolumes


class CSISide(Struct, frozen=True, kw_only=True):
    """`services` run with the node; `publication` and `objects` are None without an API server."""

    drivers: Drivers
    calls: DriverCalls
    publication: NodePublication | None
    objects: DriverObjects | None
    handlers: Mapping[str, PluginHandler]
    services: Mapping[str, Callable[[], Awaitable[None]]]

    def problem(self) -> str:
        """Why the node's storage is not ready; "" if it is."""
        return self.publication.problem() if self.publication is not None else ""

    def attaches(self, driver: str) -> bool:
        """Whether a controller attaches the driver's volumes."""
        return self.objects is not None and self.objects.attaches(driver)

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Has it called when `problem` changes."""
        if self.publication is not None:
            self.publication.subscribe(callback)


def build_csi(foundation: Foundation) -> CSISide:
    """The drivers of this node; none has registered yet."""
    drivers = Drivers()
    calls = DriverCalls(drivers=drivers, recorder=foundation.record, metrics=foundation.metrics.csi)
    if foundation.clients is None:
        alone = DriverRegistration(drivers=drivers, calls=calls, publication=None)
        return CSISide(
            drivers=drivers, calls=calls, publication=None, objects=None, handlers={TYPE: alone}, services={}
        )
    client = foundation.clients.requests
    publication = NodePublication(client=client, node=foundation.node_name, recorder=foundation.record)
    objects = DriverObjects(client=client, recorder=foundation.record)
    return CSISide(
        drivers=drivers,
        calls=calls,
        publication=publication,
        objects=objects,
        handlers={TYPE: DriverRegistration(drivers=drivers, calls=calls, publication=publication)},
        services={"CSINode": publication.run, "CSIDriver objects": objects.run},
    )


FiguresOfPod = Callable[[str], Mapping[str, ReportedFigures]]


def _no_figures(_uid: str) -> Mapping[str, ReportedFigures]:
    return {}


class CSIVolumeSide(Struct, frozen=True, kw_only=True):
    """Volumes of drivers; nothing without an API server, which says what is behind claims and what drivers want."""

    plugins: Mapping[str, VolumePlugin] = field(default_factory=dict)
    services: Mapping[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    figures: FiguresOfPod = _no_figures
    """How full a pod's volumes are, by their names in it."""


def build_csi_volumes(
    foundation: Foundation, csi: CSISide, mounts: MountCalls, tokens: ServiceAccountTokens | None
) -> CSIVolumeSide:
    """`tokens` None: an agent without an API server."""
    if foundation.clients is None or csi.objects is None or tokens is None:
        return CSIVolumeSide()
    threads, node, emit = foundation.threads, foundation.node_name, foundation.events.pod
    places = CSIPlaces(foundation.root)
    staging = Staging(places=places, calls=csi.calls, mounts=mounts, threads=threads, recorder=foundation.record)
    data = CSIClusterData(client=foundation.clients.requests, tokens=tokens, node=node)
    volumes = CSIVolumes(
        calls=csi.calls,
        wishes=csi.objects,
        data=data,
        growth=VolumeGrowth(
            client=foundation.clients.requests, calls=csi.calls, data=data, emit=emit, clock=foundation.clock, node=node
        ),
        staging=staging,
        publishing=Publishing(places=places, calls=csi.calls, mounts=mounts, threads=threads, node=node),
        groups=GroupOwner(threads=threads, emit=emit),
        emit=emit,
        labels=LabelledMounts(
            file=foundation.machine.selinux_file_label,
            one_pod=foundation.loaded.gates.enabled("SELinuxMountReadWriteOncePod"),
            all_modes=foundation.loaded.gates.enabled("SELinuxMount"),
            by_policy=foundation.loaded.gates.enabled("SELinuxChangePolicy"),
        ),
    )
    figures = DriverFigures(
        calls=csi.calls,
        volumes=volumes.opened,
        period=foundation.configuration.volume_stats_agg_period,
        emit=emit,
        conditions=foundation.loaded.gates.enabled("CSIVolumeHealth"),
    )
    return CSIVolumeSide(
        plugins={CSI: volumes},
        services={"unused CSI volumes": staging.run, "figures of CSI volumes": figures.run},
        figures=figures.of,
    )
