"""Builds what all else stands on: time, record, metrics, events, settings, identity, clients of the API server."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from glasslet.calls.start import StartWatch
from glasslet.concurrency.clock import Clock, SystemClock
from glasslet.config.gate_table import GATES, Stage
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.config.loading import Loaded
from glasslet.config.options import Options
from glasslet.host.files.layout import RootLayout
from glasslet.host.machine import Machine, node_name, read_machine
from glasslet.host.threads import HostThreads
from glasslet.host.topology import Topology, read_topology
from glasslet.identity.client_identity import ClientIdentity, IdentitySettings
from glasslet.identity.manager import NO_METRICS
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.environment_proxy import environment_proxy
from glasslet.kubeapi.event_recorder import EventRecorder
from glasslet.kubeapi.kubeconfig import Kubeconfig
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.record.keeper import RecordKeeper
from glasslet.record.recorder import Recorder, current_scope
from glasslet.record.stations import Station, WaitKind
from glasslet.record.store import Record
from glasslet.resources.pod_limits import memory_throttling_factor
from glasslet.server.transport.serving_certificate import ServingPair
from glasslet.shutdown.state import ShutdownFlag
from glasslet.stops.arrivals import Arrivals
from glasslet.stops.holds import Holds
from glasslet.telemetry.metrics.agent import FeatureGateState
from glasslet.telemetry.metrics.api_client import APIClientMetrics
from glasslet.telemetry.metrics.catalog import Metrics
from glasslet.telemetry.metrics.certificates import ClientCertificateMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry
from glasslet.version import KUBELET_VERSION

_USER_AGENT = f"kubelet/{KUBELET_VERSION} (linux) glasslet"
_UNLIMITED = 0.0


class APIClients(Struct, frozen=True, kw_only=True):
    """One client per purpose: what must not wait shares no queue with what may. `heartbeats`: node status and lease,
    without limit, with their own time-out; `events`: eventRecordQPS, eventBurst; `reviews`: token and access reviews,
    without limit, as a client waits for each; `requests`: all others (kubeAPIQPS, kubeAPIBurst)."""

    requests: HTTPAPIClient
    heartbeats: HTTPAPIClient
    events: HTTPAPIClient
    reviews: HTTPAPIClient

    def peers(self) -> set[str]:
        """Addresses of the API server to which connections are open."""
        clients = (self.requests, self.heartbeats, self.events, self.reviews)
        return {address for client in clients for address in client.peers()}

    async def close(self) -> None:
        """Closes all connections."""
        for client in (self.reviews, self.events, self.requests, self.heartbeats):
            await client.close()


class Connector(Struct, frozen=True, kw_only=True):
    """Makes clients."""

    recorder: Recorder
    clock: Clock
    metrics: APIClientMetrics

    def client(
        self, config: Kubeconfig, *, qps: float = _UNLIMITED, burst: int = 1, timeout: float = 30.0
    ) -> HTTPAPIClient:
        """A client with connections of its own; `timeout` in seconds. Raises BadProxy."""
        return HTTPAPIClient(
            config=config,
            recorder=self.recorder,
            clock=self.clock,
            metrics=self.metrics,
            limiter=RequestLimiter(qps=qps, burst=burst, clock=self.clock),
            user_agent=_USER_AGENT,
            timeout=timeout,
            proxy="" if config.proxy_url else environment_proxy(config.server, os.environ),
        )


def build_clients(connector: Connector, config: Kubeconfig, configuration: KubeletConfiguration) -> APIClients:
    """The clients of a node of a cluster."""
    patience = min(configuration.node_status_update_frequency, configuration.node_lease_duration_seconds)
    return APIClients(
        requests=connector.client(config, qps=configuration.kube_api_qps, burst=configuration.kube_api_burst),
        heartbeats=connector.client(config, timeout=float(patience)),
        events=connector.client(config, qps=configuration.event_record_qps, burst=configuration.event_burst),
        reviews=connector.client(config),
    )


def build_client_identity(
    loaded: Loaded, node: str, connector: Connector, registry: MetricRegistry
) -> ClientIdentity | None:
    """The node's identity; None without --kubeconfig: standalone."""
    options, rotate = loaded.options, loaded.configuration.rotate_certificates
    if not options.kubeconfig:
        return None
    metrics = ClientCertificateMetrics(registry) if rotate else None
    identity = ClientIdentity(
        settings=IdentitySettings(
            node=node,
            kubeconfig=options.kubeconfig,
            bootstrap_kubeconfig=options.bootstrap_kubeconfig,
            cert_dir=options.cert_dir,
            rotate=rotate,
        ),
        connect=connector.client,
        metrics=metrics or NO_METRICS,
        recorder=connector.recorder,
        clock=connector.clock,
    )
    if metrics is not None:
        metrics.show(identity.expiry)
    return identity


_PRIVATE = 0o750


class Foundation(Struct, frozen=True, kw_only=True):
    """The parts that are built first and end last."""

    loaded: Loaded
    clock: Clock
    machine: Machine
    topology: Topology
    node_name: str
    root: RootLayout
    record: Record
    keeper: RecordKeeper
    metrics: Metrics
    events: EventRecorder
    threads: HostThreads
    identity: ClientIdentity | None
    clients: APIClients | None
    """Both None for a standalone agent."""
    serving_pair: ServingPair
    start: StartWatch
    arrivals: Arrivals
    holds: Holds
    shutdown: ShutdownFlag

    async def close(self) -> None:
        """Closes the connections to the API server."""
        if self.clients is not None:
            await self.clients.close()

    @property
    def configuration(self) -> KubeletConfiguration:
        """The effective KubeletConfiguration."""
        return self.loaded.configuration

    @property
    def options(self) -> Options:
        """The settings that only flags have."""
        return self.loaded.options

    @property
    def memory_throttling_factor(self) -> float | None:
        """None where memory is not throttled: gate MemoryQoS off, or cgroup v1."""
        return memory_throttling_factor(self.configuration, self.loaded.gates, cgroup_v2=self.machine.cgroup_v2)


def log_fields() -> dict[str, object]:
    """The fields of every log line of the current task: the pod that it works for."""
    scope = current_scope()
    return {"pod": str(scope.pod), "podUID": scope.pod.uid} if scope.pod is not None else {}


def build_foundation(loaded: Loaded, serving_pair: ServingPair, start: StartWatch) -> Foundation:
    """Reads the machine and the kubeconfig, makes the root directory. Raises OSError, ValueError, KubeconfigError."""
    clock = SystemClock()
    name = node_name(loaded.options.hostname_override)
    root = RootLayout(os.path.abspath(loaded.options.root_dir))
    for folder in (root.root_dir, f"{root.root_dir}/pods", f"{root.root_dir}/glasslet"):
        os.makedirs(folder, mode=_PRIVATE, exist_ok=True)
    record = Record()
    stages = {name: "" if spec.stage is Stage.GA else str(spec.stage) for name, spec in GATES.items()}
    gates = {name: FeatureGateState(stages[name], enabled) for name, enabled in loaded.gates.all().items()}
    metrics = Metrics(node_name=name, gates=gates)
    metrics.count_pod_times(record.pod_times, kinds=WaitKind, stations=Station)
    connector = Connector(recorder=record, clock=clock, metrics=metrics.api_client)
    identity = build_client_identity(loaded, name, connector, metrics.registry)
    clients = build_clients(connector, identity.prepare(), loaded.configuration) if identity is not None else None
    events = EventRecorder(node=name, clock=clock, client=clients.events if clients is not None else None)
    return Foundation(
        loaded=loaded,
        clock=clock,
        machine=read_machine(),
        topology=read_topology(),
        node_name=name,
        root=root,
        record=record,
        keeper=RecordKeeper(record=record, folder=Path(root.root_dir) / "glasslet" / "records"),
        metrics=metrics,
        events=events,
        threads=HostThreads(recorder=record),
        identity=identity,
        clients=clients,
        serving_pair=serving_pair,
        start=start,
        arrivals=Arrivals(),
        holds=Holds(recorder=record, events=events.pod, clock=clock),
        shutdown=ShutdownFlag(),
    )
