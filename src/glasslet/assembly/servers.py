"""The servers: HTTPS, read-only port, local socket. The health port is older than all of them: see `daemon.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from glasslet.answers.states import WorkerState
from glasslet.api.object import PodUID
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_status import PodStatus
from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.glass import build_glass
from glasslet.assembly.health import own_checks, runtime_check
from glasslet.assembly.https import TLSSide, build_gatekeeper, build_tls
from glasslet.assembly.pods import PodSide
from glasslet.assembly.runtime import RuntimeSide
from glasslet.assembly.sides import Sides
from glasslet.assembly.stats import build_stats
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.glass.routes import network_routes, socket_routes
from glasslet.runtime.logs.container_logs import ContainerLogs
from glasslet.server.checkpoints import ContainerCheckpoints
from glasslet.server.kubelet_server import Bind, KubeletServer, Served
from glasslet.server.node_pods import NodePods
from glasslet.server.protocols import HealthCheck
from glasslet.server.routes import RouteSwitches, Sources, https_routes, metric_buckets, read_only_routes
from glasslet.server.sessions import RuntimeSessions
from glasslet.server.transport.unix_socket import UnixSocketServer
from glasslet.telemetry.logging_setup import Logging
from glasslet.telemetry.metrics.pods import PodCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSide:
    """What listens. `services` keep its certificates fresh; `vital`: the checks of the agent itself."""

    listening: tuple[KubeletServer | UnixSocketServer, ...]
    services: Mapping[str, Callable[[], Awaitable[None]]]
    vital: tuple[HealthCheck, ...]


async def build_servers(sides: Sides, pods: PodSide, logging: Logging) -> ServerSide:
    """Makes keys where none are given, and the servers. Raises BadTLSFile, BadTLSOption, BadAccessSetting."""
    foundation, runtime, cluster = sides.foundation, sides.runtime, sides.cluster
    configuration = foundation.configuration
    logs = ContainerLogs(observed=runtime.observed.get, now=foundation.clock.now)
    glass = build_glass(sides, pods, logs)
    foundation.metrics.count_pods(_counts(runtime, pods))
    own = own_checks(
        logging.problem,
        lambda: pods.housekeeping.turned_at,
        foundation.clock.monotonic,
        foundation.configuration.sync_frequency,
    )
    vital = (*own, HealthCheck("device-plugin", pods.devices.problem))
    sources = Sources(
        pods=NodePods(desired=pods.desired, observed=runtime.observed, status_of=_status_of(pods)),
        logs=logs,
        configz=_configz(foundation),
        metrics=foundation.metrics,
        checks=(*vital, runtime_check(runtime.observed.health_problem)),
        streams=RuntimeSessions(runtime=runtime.connection.runtime, observed=runtime.observed.get),
        stats=build_stats(foundation, runtime, pods),
        checkpoints=_checkpoints(foundation, runtime),
        set_verbosity=logging.set_verbosity,
    )
    tls = await build_tls(foundation, cluster) if configuration.enable_server and configuration.port else None
    listening: list[KubeletServer | UnixSocketServer] = [
        UnixSocketServer(
            path=f"{foundation.root.root_dir}/glasslet.sock", routes=socket_routes(glass, foundation.keeper)
        )
    ]
    if tls is not None:
        debugging = configuration.enable_debugging_handlers
        routes = network_routes(glass, foundation.keeper, debugging=debugging)
        listening.append(_https(foundation, cluster, tls, sources, routes))
    if configuration.read_only_port:
        listening.append(_read_only(foundation, sources))
    return ServerSide(listening=tuple(listening), services=tls.services if tls is not None else {}, vital=vital)


def _status_of(pods: PodSide) -> Callable[[PodUID], PodStatus | None]:
    def status_of(uid: PodUID) -> PodStatus | None:
        view = pods.workers.view(uid)
        return view.status if view is not None else None

    return status_of


def _https(
    foundation: Foundation, cluster: ClusterSide | None, tls: TLSSide, sources: Sources, glass: Sequence[web.RouteDef]
) -> KubeletServer:
    configuration = foundation.configuration
    buckets = metric_buckets(read_only=False, debugging_handlers=configuration.enable_debugging_handlers)
    return KubeletServer(
        bind=Bind(configuration.address, configuration.port),
        served=Served(https_routes(sources, _switches(foundation)), buckets, tuple(glass)),
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
    configuration: KubeletConfiguration = foundation.configuration
    return RouteSwitches(
        enable_debugging_handlers=configuration.enable_debugging_handlers,
        enable_system_log_handler=configuration.enable_system_log_handler,
        enable_profiling_handler=configuration.enable_profiling_handler,
        enable_debug_flags_handler=configuration.enable_debug_flags_handler,
        split_streams=foundation.loaded.gates.enabled("PodLogsQuerySplitStreams"),
    )


def _configz(foundation: Foundation) -> Callable[[], dict[str, object]]:
    tree = {name: value for name, value in foundation.loaded.tree.items() if name not in ("kind", "apiVersion")}
    return lambda: tree


def _counts(runtime: RuntimeSide, pods: PodSide) -> Callable[[], PodCounts]:
    def counts() -> PodCounts:
        observed = runtime.observed.all()
        states = Counter(str(container.phase) for pod in observed for container in pod.containers)
        static = Counter(is_static(pod) for pod in pods.desired.all())
        active = Counter(
            is_static(view.pod) for view in pods.workers.snapshot() if view.lifecycle == WorkerState.SYNCING
        )
        return PodCounts(
            running_pods=sum(pod.ready_sandbox() is not None for pod in observed),
            containers=dict(states),
            desired_static=static[True],
            desired_api=static[False],
            active_static=active[True],
            active_api=active[False],
            mirror=len(pods.api.mirrors() or ()) if pods.api is not None else 0,
        )

    return counts
