"""Builds what stands before there are pods: desired pods, devices, the node, its addresses, the cgroup driver."""

from __future__ import annotations

from msgspec import Struct

from glasslet.assembly.cgroups import find_cgroup_driver
from glasslet.assembly.cluster import ClusterSide, build_cluster_side
from glasslet.assembly.csi import CSISide, build_csi
from glasslet.assembly.devices import DeviceSide, build_devices
from glasslet.assembly.dra import DRASide, build_dra
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.runtime import RuntimeSide
from glasslet.assembly.sources import build_desired
from glasslet.eviction.pressures import NodePressures
from glasslet.sources.desired import DesiredPods


class Platform(Struct, frozen=True, kw_only=True):
    """What all parts for pods are built on. `cluster` is None without an API server; `host_ips`: the node's
    addresses."""

    foundation: Foundation
    runtime: RuntimeSide
    cluster: ClusterSide | None
    devices: DeviceSide
    csi: CSISide
    dra: DRASide
    pressures: NodePressures
    desired: DesiredPods
    host_ips: tuple[str, ...]
    cgroup_driver: str


async def build_platform(foundation: Foundation, runtime: RuntimeSide, host_ips: tuple[str, ...]) -> Platform:
    """Raises CgroupSetupFailed, RuntimeCallError, ValueError for an unusable folder of device plugins."""
    desired = build_desired(foundation)
    csi, dra = build_csi(foundation), build_dra(foundation, runtime.connection.info)
    handlers = {**csi.handlers, **dra.handlers}
    devices = build_devices(foundation, runtime, all_pods_known=desired.ready, handlers=handlers)
    pressures = NodePressures()
    return Platform(
        foundation=foundation,
        runtime=runtime,
        cluster=build_cluster_side(foundation, runtime, devices, csi, pressures),
        devices=devices,
        csi=csi,
        dra=dra,
        pressures=pressures,
        desired=desired,
        host_ips=host_ips,
        cgroup_driver=await find_cgroup_driver(foundation, runtime.connection.runtime),
    )
