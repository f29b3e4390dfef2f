"""The route tables of the HTTPS port and of the read-only port: which handler for which path, under which switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aiohttp import web
from msgspec import Struct, field

from glasslet.server import responses
from glasslet.server.handlers.checkpoint import add_checkpoint
from glasslet.server.handlers.configz import add_configz
from glasslet.server.handlers.container_logs import add_container_logs
from glasslet.server.handlers.debug import add_debug_flags
from glasslet.server.handlers.health import add_health
from glasslet.server.handlers.metrics import add_metrics, add_slis
from glasslet.server.handlers.node_logs import NodeLogs
from glasslet.server.handlers.pods import add_pods, add_running_pods
from glasslet.server.handlers.profiling import add_profiling
from glasslet.server.handlers.stats import add_stats
from glasslet.server.handlers.streams import add_streams
from glasslet.server.handlers.system_logs import SYSTEM_LOGS, add_system_logs
from glasslet.server.handlers.zpages import add_flagz, add_statusz
from glasslet.server.protocols import (
    CheckpointSource,
    ConfigZ,
    HealthCheck,
    LogSource,
    PodSource,
    StatsSource,
    StreamSource,
)
from glasslet.server.routing import Parameters, RouteTable
from glasslet.telemetry.metrics.catalog import Metrics

_DISABLED = ("run", "exec", "attach", "portForward", "containerLogs", "runningpods", "debug/pprof", "logs")


class RouteSwitches(Struct, frozen=True):
    """Configuration fields of the same names, and feature gates PodLogsQuerySplitStreams, ComponentStatusz and
    ComponentFlagz. `node_log_query`: the gate NodeLogQuery and enableSystemLogQuery."""

    enable_debugging_handlers: bool = True
    enable_system_log_handler: bool = True
    enable_profiling_handler: bool = True
    enable_debug_flags_handler: bool = True
    split_streams: bool = False
    statusz: bool = False
    flagz: bool = False
    node_log_query: bool = False
    system_logs: str = SYSTEM_LOGS


class Sources(Struct, frozen=True, kw_only=True):
    """Everything that the routes need. `streams` None: there is no exec, attach and port-forward; `stats` None: the
    agent measures nothing; `checkpoints` None: gate ContainerCheckpoint is off."""

    pods: PodSource
    logs: LogSource
    configz: ConfigZ
    metrics: Metrics
    checks: Sequence[HealthCheck]
    streams: StreamSource | None = None
    stats: StatsSource | None = None
    checkpoints: CheckpointSource | None = None
    set_verbosity: Callable[[int], None] = field(default=lambda _: None)
    flags: Mapping[str, str] = field(default_factory=dict)
    """The command line: value by flag."""


def read_only_routes(sources: Sources) -> RouteTable:
    """The routes of the read-only port; the HTTPS port serves them, too."""
    routes = RouteTable()
    metrics = sources.metrics
    add_health(routes, sources.checks, metrics.health)
    add_slis(routes, metrics.sli_registry, metrics.health, started=metrics.started)
    add_pods(routes, sources.pods)
    add_metrics(routes, "/metrics", metrics.registry, started=metrics.started)
    add_metrics(routes, "/metrics/probes", metrics.probe_registry, started=metrics.started)
    if sources.stats is not None:
        add_stats(routes, sources.stats, started=metrics.started)
    return routes


def https_routes(sources: Sources, switches: RouteSwitches) -> RouteTable:
    """The routes of the HTTPS port."""
    routes = read_only_routes(sources)
    if not switches.enable_debugging_handlers:
        for prefix in _DISABLED:
            routes.everything_below(f"/{prefix}/", _debugging_disabled)
        return routes
    if sources.streams is not None:
        add_streams(routes, sources.pods, sources.streams)
    add_container_logs(routes, sources.pods, sources.logs, split_streams=switches.split_streams)
    add_configz(routes, sources.configz)
    if switches.statusz:
        add_statusz(routes, started=sources.metrics.started)
    if switches.flagz:
        add_flagz(routes, sources.flags)
    if sources.checkpoints is not None:
        add_checkpoint(routes, sources.pods, sources.checkpoints)
    add_running_pods(routes, sources.pods)
    node_logs = NodeLogs(switches.system_logs) if switches.node_log_query else None
    add_system_logs(
        routes, enabled=switches.enable_system_log_handler, folder=switches.system_logs, node_logs=node_logs
    )
    add_debug_flags(routes, sources.set_verbosity, enabled=switches.enable_debug_flags_handler)
    add_profiling(routes, enabled=switches.enable_profiling_handler)
    return routes


def metric_buckets(*, read_only: bool, debugging_handlers: bool) -> frozenset[str]:
    """The values of the label `path` that a server counts under; everything else is `other`."""
    names = {"healthz", "pods", "stats", "metrics", "metrics/cadvisor", "metrics/probes", "metrics/resource"}
    if not read_only:
        names |= {"run", "exec", "attach", "portForward", "containerLogs", "runningpods", "logs"}
        names |= {"configz", "checkpoint", "debug"} if debugging_handlers else {"pprof"}
    return frozenset(names)


def zpages(switches: RouteSwitches) -> frozenset[str]:
    """Further values of that label, by gates."""
    if not switches.enable_debugging_handlers:
        return frozenset()
    return frozenset(name for name in ("statusz", "flagz") if getattr(switches, name))


async def _debugging_disabled(_request: web.Request, _: Parameters) -> web.StreamResponse:
    return responses.error(405, "Debug endpoints are disabled.")
