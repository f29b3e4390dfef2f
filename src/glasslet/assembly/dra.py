"""Builds dynamic resource allocation: drivers, their calls, the claims of pods, the ResourceSlices of the node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from glasslet.assembly.foundation import Foundation
from glasslet.dra.claim_file import ClaimFile
from glasslet.dra.claims import cdi_problem
from glasslet.dra.claims_of_pods import ClaimsOfPods
from glasslet.dra.driver_calls import DRACalls
from glasslet.dra.forgotten_pods import ForgottenPods
from glasslet.dra.plugins import DRAPlugins
from glasslet.dra.registration import TYPE, DRARegistration
from glasslet.dra.slices import NodeSlices
from glasslet.exchange.claims import NoDeviceClaims
from glasslet.plugin_registry.watcher import PluginHandler
from glasslet.pods.collaborators import ResourceClaims
from glasslet.pods.upkeep.remains import Remains
from glasslet.pods.wakes import PodWakes
from glasslet.record.recorder import Recorder
from glasslet.runtime.model import RuntimeInfo

Services = Mapping[str, Callable[[], Awaitable[None]]]


class DRASide(Struct, frozen=True, kw_only=True):
    """`claims` None: the gate DynamicResourceAllocation is off. `services` run with the node, `handlers` register."""

    plugins: DRAPlugins
    claims: ClaimsOfPods | None
    handlers: Mapping[str, PluginHandler]
    services: Services

    @property
    def of_pods(self) -> ResourceClaims:
        """The claims of pods; with the gate off, pods with claims are refused."""
        return self.claims if self.claims is not None else NoDeviceClaims()

    async def start(self) -> None:
        """Comes before the first pod."""
        if self.claims is not None:
            await self.claims.start()


def claim_services(dra: DRASide, remains: Remains, wakes: PodWakes, record: Recorder) -> Services:
    """What looks after the claims of pods: those of gone pods are given back, waiting pods woken by their driver."""
    if dra.claims is None:
        return {}
    plugins = dra.plugins
    plugins.subscribe(lambda driver: wakes.wake_claimants() if plugins.connected(driver) else None)
    forgotten = ForgottenPods(claims=dra.claims, known=remains.all_known, alive=remains.alive, recorder=record)
    return {"resource claims of gone pods": forgotten.run}


def build_dra(foundation: Foundation, runtime: RuntimeInfo) -> DRASide:
    """The drivers of this node; none has registered yet."""
    gates, record, metrics = foundation.loaded.gates, foundation.record, foundation.metrics
    plugins = DRAPlugins()
    if not gates.enabled("DynamicResourceAllocation"):
        return DRASide(plugins=plugins, claims=None, handlers={}, services={})
    client = foundation.clients.requests if foundation.clients is not None else None
    claims = ClaimsOfPods(
        plugins=plugins,
        calls=DRACalls(plugins=plugins, recorder=record, metrics=metrics.dra),
        file=ClaimFile(folder=foundation.root.root_dir, threads=foundation.threads, recorder=record),
        client=client,
        recorder=record,
        metrics=metrics.dra,
        extended=gates.enabled("DRAExtendedResource"),
        cdi_problem=cdi_problem(runtime.name, runtime.version),
    )
    metrics.count_resource_claims(claims.book.in_use)
    services: dict[str, Callable[[], Awaitable[None]]] = {"DRA plugins": plugins.run}
    if client is not None:
        slices = NodeSlices(client=client, node=foundation.node_name, plugins=plugins, recorder=record)
        services["ResourceSlices"] = slices.run
    return DRASide(plugins=plugins, claims=claims, handlers={TYPE: DRARegistration(plugins)}, services=services)
