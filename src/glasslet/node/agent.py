"""The Node object at the API server: registration, lease, status, watch.

facts ─▶ registration ─▶ known node ◀─ watch        one task each; one that fails is restarted alone
                            │
          lease ◀───────────┼──────────▶ pod CIDR ─▶ runtime
                            ▼
runtime conditions ─wake─▶ status loop ─▶ patches, events

agent = NodeAgent(
    settings=node_settings(name, options, configuration, gates),
    api=NodeAPI(requests=client, heartbeats=client_without_limit, reconnect=client_without_limit.close),
    runtime=conditions,                        # runtime.observed.RuntimeConditions
    facts=FactKeeper(settings=..., machine=..., probe=HostProbe(settings=..., root_dir=...), runtime=..., images=...,
                     threads=..., recorder=...),
    pod_cidr=PodCIDRHandover(update=runtime_service.update_pod_cidr),
    report=NodeReporting(recorder=record, events=event_recorder.node, clock=clock),
    contributions=Contributions(...),          # pressures, devices, volumes, shutdown: later parts
)
services["node"] = agent.run                   # as long as pods may be started
agent.current()                                # the Node: as registered, before that as it would be
await agent.wait_registered()
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct, field

from glasslet.api.meta import OwnerReference
from glasslet.api.node import Node
from glasslet.api.times import whole_seconds
from glasslet.concurrency.services import running
from glasslet.kubeapi import paths
from glasslet.kubeapi.protocols import APIClient
from glasslet.kubeapi.reflector import ObjectChange, Reflector
from glasslet.node.initial import initial_node
from glasslet.node.inputs import Contributions, HostFacts, NodeEvent, NodeInputs, status_event
from glasslet.node.known_node import KnownNode
from glasslet.node.lease import NodeLease
from glasslet.node.notices import CGROUP_V1, STARTING
from glasslet.node.pod_cidr import PodCIDRHandover
from glasslet.node.registration import Registration
from glasslet.node.reporting import NodeReporting
from glasslet.node.settings import NodeSettings
from glasslet.node.status.addresses import host_ips
from glasslet.node.status.compose import Composed, compose, is_ready, ready_condition
from glasslet.node.status_loop import StatusLoop, hasten_readiness, no_reconnect
from glasslet.runtime.model import RuntimeHandler

logger = logging.getLogger(__name__)

_FIRST_LOOK = 10.0
"""Seconds that the first report waits for readiness: less than a controller's patience (40 s)."""


class RuntimeView(Protocol):
    """The part of `RuntimeConditions` that is used here."""

    @property
    def handlers(self) -> tuple[RuntimeHandler, ...]: ...

    @property
    def supplemental_groups_policy(self) -> bool: ...

    def runtime_errors(self) -> tuple[str, ...]: ...

    def network_error(self) -> str | None: ...

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]: ...

    async def poll(self) -> None: ...


class Facts(Protocol):
    """The part of `FactKeeper` that is used here."""

    @property
    def facts(self) -> HostFacts: ...

    @property
    def gathered(self) -> asyncio.Event: ...

    def subscribe(self, callback: Callable[[], None]) -> None: ...

    async def image_disk_problem(self) -> NodeEvent | None: ...

    async def run(self) -> None: ...


class NodeAPI(Struct, frozen=True, kw_only=True):
    """Two clients, so that a status never waits in a queue. `reconnect` drops connections of `heartbeats`."""

    requests: APIClient
    heartbeats: APIClient
    reconnect: Callable[[], Awaitable[None]] = field(default=no_reconnect)


class NodeAgent:
    """See the module's docstring."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        api: NodeAPI,
        runtime: RuntimeView,
        facts: Facts,
        pod_cidr: PodCIDRHandover,
        report: NodeReporting,
        contributions: Contributions | None = None,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._facts = facts
        self._reporting = report
        self._contributions = contributions or Contributions()
        self._recalled: Node | None = None
        self._unschedulable = False
        self._announced = False
        self._reported_first = False
        self._looked = asyncio.Event()
        self._registered = asyncio.Event()
        self.known = KnownNode(report.clock.now)
        self._pod_cidr = pod_cidr
        self.registration = Registration(
            client=api.requests,
            settings=settings,
            initial=self._initial,
            recorder=report.recorder,
            clock=report.clock,
            reset_extended=self._contributions.reset_extended,
            metrics=report.metrics,
        )
        self.lease = NodeLease(
            client=api.heartbeats,
            node=settings.name,
            duration_seconds=settings.lease_seconds,
            clock=report.clock,
            owner=self._reference,
            on_failure=api.reconnect,
        )
        self.status = StatusLoop(
            client=api.heartbeats,
            settings=settings,
            known=self.known,
            compose=lambda node: compose(node, settings, self._inputs()),
            report=report,
            reconnect=api.reconnect,
            on_accepted=self._accepted,
        )
        self._watch = Reflector(
            client=api.requests,
            path=paths.NODES,
            kind=Node,
            query={"fieldSelector": f"metadata.name={settings.name}"},
            on_change=self._seen,
            recorder=report.recorder,
        )
        self.known.subscribe(pod_cidr.take)
        self.known.subscribe(self._schedulable)
        runtime.subscribe(self.status.wake)
        facts.subscribe(self.status.wake)

    def current(self) -> Node:
        """The node as last seen; before it is seen, as recalled from an earlier run, or as it would register now."""
        return self.known.node or self._recalled or self._initial().node

    def recall(self, node: Node) -> None:
        """Takes the node as an earlier run saw it. It counts until the API server answers."""
        self._recalled = node

    def initial(self) -> Node:
        """The node as it would register now."""
        return self._initial().node

    def host_ips(self) -> tuple[str, ...]:
        """The host addresses that pods get."""
        return host_ips(self.current())

    def wake(self) -> None:
        """Computes the status now: a contribution changed."""
        self.status.wake()

    async def wait_registered(self) -> Node:
        """Waits until the API server has the node, and returns it."""
        return await self.known.wait_appeared()

    async def run(self) -> None:
        """Registers the node and keeps it current until cancelled."""
        self._announce()
        services: dict[str, Callable[[], Awaitable[None]]] = {
            "node facts": self._facts.run,
            "node watch": self._watch.run,
            "node lease": self._renew_lease,
            "node status": self._report,
            "node readiness": self._hasten,
            "pod CIDR": self._pod_cidr.run,
            "image file system": self._check_image_disk,
        }
        if self._settings.register:
            services["node registration"] = self._keep_registered
        async with running(services):
            await asyncio.get_running_loop().create_future()

    async def _keep_registered(self) -> None:
        await self._facts.gathered.wait()
        while True:
            node, events = await self.registration.register()
            self.known.take(node)
            self._registered.set()
            if not self._reported_first:
                self._reported_first = True
                for event in events:
                    self._reporting.send(event)
            if is_ready(node):
                self._accepted(node)
            await self.known.wait_gone()
            logger.warning("node was deleted, it is registered again", extra={"node": self._settings.name})

    async def _renew_lease(self) -> None:
        await self.known.wait_appeared()
        await self.lease.run()

    async def _report(self) -> None:
        """Reports after the first readiness, so that a restart of the agent does not make a ready node unready. An
        existing node is taken over before: the watch may show it earlier."""
        if self._settings.register:
            await self._registered.wait()
        try:
            async with asyncio.timeout(_FIRST_LOOK):
                await self._looked.wait()
        except TimeoutError:
            logger.info("node is not ready, first report says so")
        await self.status.run()

    async def _hasten(self) -> None:
        def ready() -> None:
            self._looked.set()
            self.status.wake()

        await self._facts.gathered.wait()
        await hasten_readiness(poll=self._runtime.poll, is_ready=lambda: is_ready(self._initial().node), ready=ready)

    async def _check_image_disk(self) -> None:
        problem = await self._facts.image_disk_problem()
        if problem is not None:
            self._reporting.send(problem)

    def _announce(self) -> None:
        if self._announced:
            return
        self._announced = True
        self._reporting.send(STARTING)
        if not self._facts.facts.machine.cgroup_v2:
            self._reporting.send(CGROUP_V1)

    def _initial(self) -> Composed:
        return initial_node(self._settings, self._inputs())

    def _inputs(self) -> NodeInputs:
        said = self._contributions
        problems = (self._runtime.network_error() or "", said.storage_problem(), said.shutdown_problem())
        return NodeInputs(
            now=whole_seconds(self._reporting.clock.now()),
            facts=self._facts.facts,
            errors=(*self._runtime.runtime_errors(), *(text for text in problems if text)),
            pressures=said.pressures(),
            devices=said.devices(),
            handlers=self._runtime.handlers,
            supplemental_groups_policy=self._runtime.supplemental_groups_policy,
            volumes_in_use=said.volumes_in_use(),
        )

    def _reference(self) -> OwnerReference | None:
        node = self.known.node
        if node is None:
            return None
        return OwnerReference(api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid)

    def _seen(self, change: ObjectChange[Node]) -> None:
        if change.new is None:
            if change.old is not None:
                self.known.forget(change.old.metadata.uid)
            return
        self.known.take(change.new)
        ready = ready_condition(change.new)
        if ready is not None and ready.status == "Unknown":
            # A controller gave this node up, as after an outage: it must not wait for the next round.
            self.status.wake()

    def _schedulable(self, node: Node) -> None:
        if node.spec.unschedulable != self._unschedulable:
            self._unschedulable = node.spec.unschedulable
            reason = "NodeNotSchedulable" if self._unschedulable else "NodeSchedulable"
            self._reporting.send(status_event(self._settings.name, reason))

    def _accepted(self, node: Node) -> None:
        if self._reporting.metrics is not None and is_ready(node):
            self._reporting.metrics.ready()
