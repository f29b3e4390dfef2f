"""The composition root: builds the agent, runs it until a signal comes, takes it down in order.

    record, events, health port ─ runtime connection ─ observation ─ pods ─ servers ─ sources

Each layer stands on those before it and ends before they do. Ending means "stop managing": containers stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import AsyncExitStack

import uvloop

from glasslet.assembly.cluster import pod_cidr_services, report_node_notices
from glasslet.assembly.eviction import build_eviction
from glasslet.assembly.foundation import Foundation, build_foundation, log_fields
from glasslet.assembly.node_services import build_node_services, prepare_machine, reporting_failure, take_lock_file
from glasslet.assembly.platform import Platform, build_platform
from glasslet.assembly.pods import PodSide, build_pod_side
from glasslet.assembly.runtime import build_runtime_side, connect_runtime
from glasslet.assembly.servers import (
    ServerSide,
    add_vitals,
    build_first_services,
    build_pod_resources,
    build_servers,
    find_service_manager,
)
from glasslet.assembly.shutdown import shutdown_services
from glasslet.assembly.stats import build_stats
from glasslet.assembly.tracing import exporting_spans
from glasslet.calls.start import StartWatch
from glasslet.concurrency.services import running
from glasslet.config.loading import Loaded
from glasslet.eviction.manager import EvictionManager
from glasslet.host.files.start_note import StartNotes
from glasslet.host.machine import node_name
from glasslet.host.process import set_open_files, set_own_oom_score
from glasslet.node.facts import find_host_ips
from glasslet.record.stations import WaitKind
from glasslet.server.transport.serving_certificate import ServingPair
from glasslet.server.vitals import Startup, Vitals, log_check
from glasslet.telemetry.logging_setup import ActiveLogging, LoggingSettings, set_up_logging
from glasslet.version import KUBELET_VERSION

logger = logging.getLogger(__name__)


def run(loaded: Loaded, serving_pair: ServingPair, watch: StartWatch) -> int:
    """Runs the agent with a valid configuration until TERM or INT. The exit code; a start that fails raises. `watch`
    has seen the start so far."""
    logs = loaded.configuration.logging
    modules = {item.file_pattern: item.verbosity for item in logs.vmodule}
    log = set_up_logging(LoggingSettings(logs.format, logs.verbosity, modules), context=log_fields)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_until_signal(loaded, serving_pair, log, watch))
    finally:
        log.close()


async def _until_signal(loaded: Loaded, serving_pair: ServingPair, log: ActiveLogging, watch: StartWatch) -> int:
    loop = asyncio.get_running_loop()
    notes = StartNotes(loaded.options.root_dir, node=node_name(loaded.options.hostname_override))
    agent = asyncio.create_task(_agent(loaded, serving_pair, log, notes, watch), name="agent")
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.cancel)
    try:
        await agent
    except asyncio.CancelledError:
        logger.info("kubelet ends, containers go on")
        notes.ended()
    return 0


async def _agent(
    loaded: Loaded, serving_pair: ServingPair, log: ActiveLogging, notes: StartNotes, watch: StartWatch
) -> None:
    foundation = build_foundation(loaded, serving_pair, watch)
    startup, vitals = Startup(notes.changed), Vitals(log_check(log.problem))
    manager = find_service_manager(foundation, vitals)
    async with AsyncExitStack() as layers:
        # Connections to the API server end last: events are sent to the end.
        layers.push_async_callback(foundation.close)
        await layers.enter_async_context(exporting_spans(foundation))
        await layers.enter_async_context(running(build_first_services(foundation, startup, manager)))
        startup.waiting_for("the kubelet is starting")
        logger.info("kubelet starts", extra={"version": KUBELET_VERSION, "node": foundation.node_name})
        await take_lock_file(foundation, startup.waiting_for, layers)
        set_own_oom_score(foundation.configuration.oom_score_adj)
        set_open_files(foundation.configuration.max_open_files)
        await _obtain_identity(foundation, startup, layers)
        async with reporting_failure(foundation):
            platform = await _connect(foundation, startup, layers)
            report_node_notices(foundation)
            pods = build_pod_side(platform)
            add_vitals(vitals, foundation, pods)
            stats = build_stats(foundation, platform.runtime, pods)
            servers = await build_servers(platform, pods, stats, vitals, log)
            await _manage_pods(platform, pods, servers, build_eviction(platform, pods, stats), layers)
            await _listen_to_sources(platform, pods, layers)
        startup.finished()
        watch.finished()
        if manager is not None:
            manager.ready()
            layers.callback(manager.stopping)
        if foundation.identity is not None:
            await foundation.identity.watch()
        await asyncio.get_running_loop().create_future()


async def _obtain_identity(foundation: Foundation, startup: Startup, layers: AsyncExitStack) -> None:
    """The certificate that the API server knows this node by."""
    if foundation.identity is not None:
        startup.waiting_for("waiting for a client certificate, asked for with the bootstrap credentials")
        await foundation.identity.obtain()
        await layers.enter_async_context(running({"client certificate": foundation.identity.run}))


async def _connect(foundation: Foundation, startup: Startup, layers: AsyncExitStack) -> Platform:
    """The runtime, and what stands on it before there are pods."""
    host_ips = await find_host_ips(
        foundation.node_name, foundation.options.node_ip, threads=foundation.threads, recorder=foundation.record
    )
    connection = await connect_runtime(foundation, startup.waiting_for)
    layers.push_async_callback(connection.close)
    return await build_platform(foundation, build_runtime_side(foundation, connection), host_ips)


async def _manage_pods(
    platform: Platform, pods: PodSide, servers: ServerSide, eviction: EvictionManager, layers: AsyncExitStack
) -> None:
    """From here on the agent observes what runs, works on pods, and answers."""
    foundation, runtime = platform.foundation, platform.runtime
    await layers.enter_async_context(running({"runtime connection lingers": runtime.connection.linger.run}))
    observation = {"observed pods": runtime.observed.run, "runtime conditions": runtime.conditions.run}
    await layers.enter_async_context(running(observation))
    await layers.enter_async_context(running(pods.configuration.services))
    await prepare_machine(foundation)
    await pods.cgroups.start()
    await platform.devices.manager.start()
    await pods.managers.start()
    await platform.dra.start()
    await layers.enter_async_context(running({**platform.devices.services, **platform.dra.services}))
    probes = {"probes": pods.probes.manager.run, "probe memory": pods.probes.memory.run}
    work = {"pod statuses": pods.statuses.run, "pod workers": pods.workers.run}
    await layers.enter_async_context(running(probes | work))
    for server in servers.listening:
        await server.start()
        layers.push_async_callback(server.stop)
    upkeep = {
        "eviction": eviction.run,
        "log rotation": runtime.rotator.run,
        "progress of pulls": runtime.pull_watch.run,
        "pod resources": build_pod_resources(foundation, pods).run,
        **pods.services,
        **build_node_services(platform),
        **shutdown_services(platform, pods),
        **pod_cidr_services(foundation, runtime),
        **servers.services,
    }
    await layers.enter_async_context(running(upkeep))


async def _listen_to_sources(platform: Platform, pods: PodSide, layers: AsyncExitStack) -> None:
    """Pods come from here on: not before it is known what runs already, and what the node has."""
    record, cluster = platform.foundation.record, platform.cluster
    with record.wait(WaitKind.CRI_CALL, on="first list of what the runtime holds"):
        await platform.runtime.observed.synced.wait()
    if cluster is not None:
        await layers.enter_async_context(running({"node": cluster.node.run, **platform.csi.services}))
        with record.wait(WaitKind.ADMISSION, on="facts about the node, which admission needs"):
            await cluster.facts.gathered.wait()
    sources = {f"source {number}": source.run for number, source in enumerate(pods.sources)}
    await layers.enter_async_context(running(sources | (dict(pods.api.services) if pods.api is not None else {})))
