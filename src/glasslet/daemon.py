"""The composition root: builds the agent, runs it until a signal comes, takes it down in order.

    record, events, health port ─ runtime connection ─ observation ─ pods ─ servers ─ sources

Each layer stands on those before it and ends before they do. Ending means "stop managing": containers stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import uvloop

from glasslet.assembly.cgroups import find_cgroup_driver
from glasslet.assembly.cluster import ClusterSide, build_cluster_side, pod_cidr_services, report_node_notices
from glasslet.assembly.devices import build_devices
from glasslet.assembly.foundation import Foundation, build_foundation, log_fields
from glasslet.assembly.pods import PodSide, build_pod_side, find_host_ips
from glasslet.assembly.runtime import RuntimeSide, build_runtime_side, connect_runtime
from glasslet.assembly.servers import ServerSide, add_vitals, build_pod_resources, build_servers, find_service_manager
from glasslet.assembly.sides import Sides
from glasslet.assembly.sources import build_desired
from glasslet.assembly.stats import build_stats
from glasslet.concurrency.loop_lag import LoopLag
from glasslet.concurrency.services import running
from glasslet.config.loading import Loaded
from glasslet.host.process import set_open_files, set_own_oom_score
from glasslet.record.stations import WaitKind
from glasslet.server.healthz import HealthzServer
from glasslet.server.protocols import PING
from glasslet.server.startup import Startup
from glasslet.server.transport.serving_certificate import ServingPair
from glasslet.server.vitals import Vitals, log_check
from glasslet.telemetry.logging_setup import ActiveLogging, LoggingSettings, set_up_logging
from glasslet.version import KUBELET_VERSION

logger = logging.getLogger(__name__)


def run(loaded: Loaded, serving_pair: ServingPair) -> int:
    """Runs the agent with a valid configuration until TERM or INT. The exit code; a start that fails raises."""
    logs = loaded.configuration.logging
    modules = {item.file_pattern: item.verbosity for item in logs.vmodule}
    log = set_up_logging(LoggingSettings(logs.format, logs.verbosity, modules), context=log_fields)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_until_signal(loaded, serving_pair, log))
    finally:
        log.close()


async def _until_signal(loaded: Loaded, serving_pair: ServingPair, log: ActiveLogging) -> int:
    loop = asyncio.get_running_loop()
    agent = asyncio.create_task(_agent(loaded, serving_pair, log), name="agent")
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.cancel)
    try:
        await agent
    except asyncio.CancelledError:
        logger.info("kubelet ends, containers go on")
    return 0


async def _agent(loaded: Loaded, serving_pair: ServingPair, log: ActiveLogging) -> None:
    foundation = build_foundation(loaded, serving_pair)
    startup, vitals = Startup(), Vitals(log_check(log.problem))
    manager = find_service_manager(foundation, vitals)
    watchdog = {"watchdog": manager.run} if manager is not None else {}
    async with _connections(foundation), _always(foundation, startup, watchdog), AsyncExitStack() as layers:
        logger.info("kubelet starts", extra={"version": KUBELET_VERSION, "node": foundation.node_name})
        set_own_oom_score(foundation.configuration.oom_score_adj)
        set_open_files(foundation.configuration.max_open_files)
        if foundation.identity is not None:
            startup.waiting_for("waiting for a client certificate, asked for with the bootstrap credentials")
            await foundation.identity.obtain()
            await layers.enter_async_context(running({"client certificate": foundation.identity.run}))
        host_ips = await find_host_ips(foundation)
        connection = await connect_runtime(foundation, startup.waiting_for)
        layers.push_async_callback(connection.close)
        runtime = build_runtime_side(foundation, connection)
        desired = build_desired(foundation)
        devices = build_devices(foundation, runtime, all_pods_known=desired.ready)
        cluster = build_cluster_side(foundation, runtime, devices)
        driver = await find_cgroup_driver(foundation, connection.runtime)
        sides = Sides(
            foundation=foundation,
            runtime=runtime,
            cluster=cluster,
            devices=devices,
            desired=desired,
            host_ips=host_ips,
        )
        report_node_notices(foundation)
        pods = build_pod_side(sides, driver)
        add_vitals(vitals, foundation, pods)
        servers = await build_servers(sides, pods, build_stats(foundation, runtime, pods), vitals, log)
        await _manage_pods(foundation, runtime, pods, servers, layers)
        await _listen_to_sources(foundation, runtime, pods, cluster, layers)
        startup.finished()
        if manager is not None:
            manager.ready()
            layers.callback(manager.stopping)
        if foundation.identity is not None:
            await foundation.identity.watch()
        await asyncio.get_running_loop().create_future()


async def _manage_pods(
    foundation: Foundation, runtime: RuntimeSide, pods: PodSide, servers: ServerSide, layers: AsyncExitStack
) -> None:
    """From here on the agent sees what runs, works on pods, and answers."""
    await layers.enter_async_context(running({"runtime connection lingers": runtime.connection.linger.run}))
    observation = {"observed pods": runtime.observed.run, "runtime conditions": runtime.conditions.run}
    await layers.enter_async_context(running(observation))
    await layers.enter_async_context(running(pods.configuration.services))
    await pods.cgroups.start()
    pods.devices.manager.start()
    await layers.enter_async_context(running(pods.devices.services))
    probes = {"probes": pods.probes.manager.run, "probe memory": pods.probes.memory.run}
    work = {"pod statuses": pods.statuses.run, "pod workers": pods.workers.run}
    await layers.enter_async_context(running(probes | work))
    for server in servers.listening:
        await server.start()
        layers.push_async_callback(server.stop)
    resources = build_pod_resources(foundation, pods)
    upkeep = {
        "log rotation": runtime.rotator.run,
        "pod resources": resources.run,
        **pods.services,
        **pod_cidr_services(foundation, runtime),
    }
    await layers.enter_async_context(running({**upkeep, **servers.services}))


async def _listen_to_sources(
    foundation: Foundation, runtime: RuntimeSide, pods: PodSide, cluster: ClusterSide | None, layers: AsyncExitStack
) -> None:
    """Pods come from here on: not before it is known what runs already, and what the node has."""
    with foundation.record.wait(WaitKind.CRI_CALL, on="first list of what the runtime holds"):
        await runtime.observed.synced.wait()
    if cluster is not None:
        await layers.enter_async_context(running({"node": cluster.node.run}))
        with foundation.record.wait(WaitKind.ADMISSION, on="facts about the node, which admission needs"):
            await cluster.facts.gathered.wait()
    sources = {f"source {number}": source.run for number, source in enumerate(pods.sources)}
    await layers.enter_async_context(running({**sources, **(pods.api.services if pods.api is not None else {})}))


@asynccontextmanager
async def _connections(foundation: Foundation) -> AsyncIterator[None]:
    """Connections to the API server end last: events are told to the end."""
    try:
        yield
    finally:
        if foundation.clients is not None:
            await foundation.clients.close()


@asynccontextmanager
async def _always(
    foundation: Foundation, startup: Startup, watchdog: Mapping[str, Callable[[], Awaitable[None]]]
) -> AsyncIterator[None]:
    """What runs from the first moment to the last: it can tell why nothing else does."""
    configuration = foundation.configuration
    lag = LoopLag(findings=foundation.record, observe=foundation.metrics.loop.late)
    services = {"record": foundation.keeper.run, "events": foundation.events.run, "loop lag": lag.run, **watchdog}
    if configuration.healthz_port:
        services["health port"] = HealthzServer(
            address=configuration.healthz_bind_address,
            port=configuration.healthz_port,
            checks=(PING, startup.check()),
            recorder=foundation.record,
        ).run
    async with running(services):
        yield
