"""Builds what answers: HTTPS port, read-only port, local socket, pod resources API; and the checks of health."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from aiohttp import web
from msgspec import Struct

from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.eviction import build_outlook
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.glass import build_glass, build_tracer
from glasslet.assembly.https import TLSSide, build_gatekeeper, build_tls
from glasslet.assembly.page import build_page
from glasslet.assembly.platform import Platform
from glasslet.assembly.pods import PodSide
from glasslet.assembly.runtime import RuntimeSide
from glasslet.assembly.stops import stop_handlers
from glasslet.concurrency.clock_watch import ClockWatch
from glasslet.concurrency.loop_lag import LoopLag
from glasslet.concurrency.token_bucket import TokenBucket
from glasslet.debugging.session import DebuggedNode, Debugger
from glasslet.devices.pod_resources import BURST, QPS, SOCKET, DeviceBooks, PodResources, PodsOfNode
from glasslet.devices.registration import registration_problem
from glasslet.devices.unix_server import UnixServer
from glasslet.exchange.claims import NoDeviceClaims
from glasslet.glass.calls import calls_routes
from glasslet.glass.debugger import debugger_routes
from glasslet.glass.routes import network_routes, socket_routes
from glasslet.glass.stops.routes import stop_routes
from glasslet.pods.upkeep.pod_counts import pod_counts
from glasslet.runtime.logs.container_logs import ContainerLogs
from glasslet.server.checkpoints import ContainerCheckpoints
from glasslet.server.handlers.health import syncloop_check
from glasslet.server.handlers.zpages import flag_values
from glasslet.server.healthz import HealthzServer
from glasslet.server.kubelet_server import Bind, KubeletServer, Served
from glasslet.server.node_pods import NodePods
from glasslet.server.protocols import PING, HealthCheck
from glasslet.server.routes import RouteSwitches, Sources, https_routes, metric_buckets, read_only_routes, zpages
from glasslet.server.sessions import RuntimeSessions
from glasslet.server.transport.unix_socket import UnixSocketServer
from glasslet.server.vitals import Startup, Vitals, runtime_check
from glasslet.stats.node_stats import NodeStatistics
from glasslet.telemetry.logging_setup import ActiveLogging
from glasslet.telemetry.metrics.pods import PodCounts

if TYPE_CHECKING:
    from glasslet.host.service_manager import ServiceManager


class ServerSide(Struct, frozen=True, kw_only=True):
    """The servers that listen. `services` keep their certificates valid."""

    listening: tuple[KubeletServer | UnixSocketServer, ...]
    services: Mapping[str, Callable[[], Awaitable[None]]]


def find_service_manager(foundation: Foundation, vitals: Vitals) -> ServiceManager | None:
    """The service manager that started the agent and wants to be notified, if there is one. Raises BadWatchdog."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return None
    from glasslet.host.service_manager import ServiceManager, watchdog_period

    watched = foundation.loaded.gates.enabled("SystemdWatchdog")
    return ServiceManager(
        address=address,
        period=watchdog_period(os.environ) if watched else None,
        problem=vitals.problem,
        recorder=foundation.record,
    )


def build_first_services(
    foundation: Foundation, startup: Startup, manager: ServiceManager | None
) -> Mapping[str, Callable[[], Awaitable[None]]]:
    """The services that run from the first moment to the last, and can say why nothing else does."""
    configuration, record = foundation.configuration, foundation.record
    lag = LoopLag(findings=record, observe=foundation.metrics.loop.late)
    services = {
        "record": foundation.keeper.run,
        "events": foundation.events.run,
        "loop lag": lag.run,
        "clock": ClockWatch(clock=foundation.clock, findings=record).run,
    }
    if manager is not None:
        services["watchdog"] = manager.run
    if configuration.healthz_port:
        services["health port"] = HealthzServer(
            address=configuration.healthz_bind_address,
            port=configuration.healthz_port,
            checks=(PING, startup.check()),
            recorder=record,
        ).run
    return services


def add_vitals(vitals: Vitals, foundation: Foundation, pods: PodSide) -> None:
    """The checks of housekeeping and of the socket at which device plugins register."""
    turned_at, registration = lambda: pods.upkeep.housekeeping.turned_at, pods.devices.registration
    vitals.add(
        syncloop_check(turned_at, foundation.clock.monotonic, foundation.configuration.sync_frequency),
        HealthCheck("device-plugin", lambda: registration_problem(registration.problem)),
    )


async def build_servers(
    platform: Platform, pods: PodSide, stats: NodeStatistics, vitals: Vitals, logging: ActiveLogging
) -> ServerSide:
    """Makes keys where none are configured. Raises BadTLSFile, BadTLSOption, BadAccessSetting."""
    foundation, runtime, cluster = platform.foundation, platform.runtime, platform.cluster
    configuration = foundation.configuration
    logs = ContainerLogs(observed=runtime.observed.get, now=foundation.clock.now)
    glass, page = (
        build_glass(platform, pods, logs, build_outlook(platform, pods, stats)),
        build_page(platform, pods, stats),
    )
    calls = calls_routes(build_tracer(platform, pods), foundation.start, foundation.keeper)
    debug = [*calls, *stop_routes(stop_handlers(platform, pods))]
    foundation.metrics.count_pods(lambda: _counts(runtime, pods))
    sources = Sources(
        pods=NodePods(desired=pods.desired, observed=runtime.observed, status_of=pods.census.status),
        logs=logs,
        configz=_configz(foundation),
        metrics=foundation.metrics,
        checks=(*vitals.checks, runtime_check(runtime.observed.health_problem)),
        streams=RuntimeSessions(runtime=runtime.connection.runtime, observed=runtime.observed.get),
        stats=stats,
        checkpoints=_checkpoints(foundation, runtime),
        set_verbosity=logging.set_verbosity,
        flags=flag_values(foundation.loaded.flags),
    )
    tls = await build_tls(foundation, cluster) if configuration.enable_server and configuration.port else None
    listening: list[KubeletServer | UnixSocketServer] = [
        UnixSocketServer(
            path=f"{foundation.root.root_dir}/glasslet.sock",
            routes=[
                *(*socket_routes(glass, foundation.keeper, page), *debug),
                *debugger_routes(_debugger(foundation).open),
            ],
        )
    ]
    if tls is not None:
        debugging = configuration.enable_debugging_handlers
        routes = network_routes(glass, foundation.keeper, page, debugging=debugging) + (debug if debugging else [])
        listening.append(_https(foundation, cluster, tls, sources, routes))
    if configuration.read_only_port:
        listening.append(_read_only(foundation, sources))
    return ServerSide(listening=tuple(listening), services=tls.services if tls is not None else {})


def build_pod_resources(foundation: Foundation, pods: PodSide) -> UnixServer:
    """The server of both versions of the pod resources API."""
    gates = foundation.loaded.gates
    bucket = TokenBucket(rate=QPS, burst=BURST)
    service = PodResources(
        pods=PodsOfNode(wanted=pods.desired.all, active=pods.census.active),
        devices=DeviceBooks(pods.devices.manager, pods.devices.offers),
        shares=pods.managers.managers,
        claims=pods.claims
        if pods.claims is not None and gates.enabled("KubeletPodResourcesDynamicResources")
        else NoDeviceClaims(),
        metrics=foundation.metrics.pod_resources,
        over_limit=lambda: not bucket.take(foundation.clock.monotonic()),
        known=pods.desired.ready,
        active_only=gates.enabled("KubeletPodResourcesListUseActivePods"),
        get_served=gates.enabled("KubeletPodResourcesGet"),
    )
    path = f"{foundation.root.root_dir}/{SOCKET}"
    return UnixServer(path=path, handlers=service.services(), recorder=foundation.record)


def _debugger(foundation: Foundation) -> Debugger:
    node = DebuggedNode(
        name=foundation.node_name,
        kubeconfig=foundation.options.kubeconfig if foundation.clients is not None else "",
        lease_seconds=foundation.configuration.node_lease_duration_seconds,
    )
    return Debugger(node=node, clock=foundation.clock)


def _https(
    foundation: Foundation, cluster: ClusterSide | None, tls: TLSSide, sources: Sources, glass: Sequence[web.RouteDef]
) -> KubeletServer:
    configuration = foundation.configuration
    switches = _switches(foundation)
    buckets = metric_buckets(read_only=False, debugging_handlers=switches.enable_debugging_handlers) | zpages(switches)
    return KubeletServer(
        bind=Bind(configuration.address, configuration.port),
        served=Served(https_routes(sources, switches), buckets, tuple(glass)),
        metrics=foundation.metrics.http,
        access=build_gatekeeper(foundation, cluster),
        tls=tls.serving,
        api_server=cluster.clients.peers if cluster is not None else tuple,
    )


def _read_only(foundation: Foundation, sources: Sources) -> KubeletServer:
    configuration = foundation.configuration
    return KubeletServer(
        bind=Bind(configuration.address, configuration.read_only_port),
        served=Served(read_only_routes(sources), metric_buckets(read_only=True, debugging_handlers=False)),
        metrics=foundation.metrics.http,
        access=None,
    )


def _checkpoints(foundation: Foundation, runtime: RuntimeSide) -> ContainerCheckpoints | None:
    if not foundation.loaded.gates.enabled("ContainerCheckpoint"):
        return None
    return ContainerCheckpoints(
        runtime=runtime.connection.runtime,
        observed=runtime.observed.get,
        folder=f"{foundation.root.root_dir}/checkpoints",
        clock=foundation.clock,
    )


def _switches(foundation: Foundation) -> RouteSwitches:
    configuration, gates = foundation.configuration, foundation.loaded.gates
    return RouteSwitches(
        enable_debugging_handlers=configuration.enable_debugging_handlers,
        enable_system_log_handler=configuration.enable_system_log_handler,
        enable_profiling_handler=configuration.enable_profiling_handler,
        enable_debug_flags_handler=configuration.enable_debug_flags_handler,
        split_streams=gates.enabled("PodLogsQuerySplitStreams"),
        statusz=gates.enabled("ComponentStatusz"),
        flagz=gates.enabled("ComponentFlagz"),
        node_log_query=gates.enabled("NodeLogQuery") and configuration.enable_system_log_query,
    )


def _configz(foundation: Foundation) -> Callable[[], dict[str, object]]:
    tree = {name: value for name, value in foundation.loaded.tree.items() if name not in ("kind", "apiVersion")}
    return lambda: tree


def _counts(runtime: RuntimeSide, pods: PodSide) -> PodCounts:
    return pod_counts(
        runtime.observed.all(),
        desired=pods.desired.all(),
        syncing=pods.census.syncing(),
        mirrors=len(pods.api.source.mirrors() or ()) if pods.api is not None else 0,
    )
