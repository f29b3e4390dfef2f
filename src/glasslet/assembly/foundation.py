"""What everything else stands on: time, record, metrics, events, and the settings they came from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from glasslet.assembly.api_server import APIClients, Connector, build_client_identity, build_clients
from glasslet.concurrency.clock import Clock, SystemClock
from glasslet.config.gate_table import GATES, Stage
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.config.loading import Loaded
from glasslet.config.options import Options
from glasslet.host.files.layout import RootLayout
from glasslet.host.machine import Machine, node_name, read_machine
from glasslet.host.threads import HostThreads
from glasslet.identity.client_identity import ClientIdentity
from glasslet.kubeapi.event_recorder import EventRecorder
from glasslet.record.keeper import RecordKeeper
from glasslet.record.recorder import current_scope
from glasslet.record.store import Record
from glasslet.resources.pod_limits import memory_throttling_factor
from glasslet.server.transport.serving_certificate import ServingPair
from glasslet.telemetry.metrics.agent import FeatureGateState
from glasslet.telemetry.metrics.catalog import Metrics

_PRIVATE = 0o750


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """Built first, ended last."""

    loaded: Loaded
    clock: Clock
    machine: Machine
    node_name: str
    root: RootLayout
    record: Record
    keeper: RecordKeeper
    metrics: Metrics
    events: EventRecorder
    threads: HostThreads
    identity: ClientIdentity | None
    clients: APIClients | None
    """Both None: standalone."""
    serving_pair: ServingPair

    @property
    def configuration(self) -> KubeletConfiguration:
        """The effective KubeletConfiguration."""
        return self.loaded.configuration

    @property
    def options(self) -> Options:
        """What only flags say."""
        return self.loaded.options

    @property
    def memory_throttling_factor(self) -> float | None:
        """None where memory is not throttled: gate MemoryQoS off, or cgroup v1."""
        return memory_throttling_factor(self.configuration, self.loaded.gates, cgroup_v2=self.machine.cgroup_v2)


def log_fields() -> dict[str, object]:
    """What every log line of the current task carries: the pod that it works for."""
    scope = current_scope()
    return {"pod": str(scope.pod), "podUID": scope.pod.uid} if scope.pod is not None else {}


def build_foundation(loaded: Loaded, serving_pair: ServingPair) -> Foundation:
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
    connector = Connector(recorder=record, clock=clock, metrics=metrics.api_client)
    identity = build_client_identity(loaded, name, connector, metrics.registry)
    clients = build_clients(connector, identity.prepare(), loaded.configuration) if identity is not None else None
    return Foundation(
        loaded=loaded,
        clock=clock,
        machine=read_machine(),
        node_name=name,
        root=root,
        record=record,
        keeper=RecordKeeper(record=record, folder=Path(root.root_dir) / "glasslet" / "records"),
        metrics=metrics,
        events=EventRecorder(node=name, clock=clock, client=clients.events if clients is not None else None),
        threads=HostThreads(recorder=record),
        identity=identity,
        clients=clients,
        serving_pair=serving_pair,
    )
