"""Builds this node's identity at the API server, and one client per purpose: what must not wait does not share a queue
with what may."""

from __future__ import annotations

from dataclasses import dataclass

from glasslet.concurrency.clock import Clock
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.config.loading import Loaded
from glasslet.identity.client_identity import ClientIdentity, IdentitySettings
from glasslet.identity.manager import NO_METRICS
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.kubeconfig import Kubeconfig
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.record.recorder import Recorder
from glasslet.telemetry.metrics.api_client import APIClientMetrics
from glasslet.telemetry.metrics.certificates import ClientCertificateMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry
from glasslet.version import KUBELET_VERSION

_USER_AGENT = f"kubelet/{KUBELET_VERSION} (linux) glasslet"
_UNLIMITED = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class APIClients:
    """`requests`: everything but what follows (kubeAPIQPS, kubeAPIBurst); `heartbeats`: node status and lease, without
    limit and with a time-out of their own; `events`: eventRecordQPS, eventBurst; `reviews`: who asks this node's server
    and may they, without limit, as somebody waits for each."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """Makes clients."""

    recorder: Recorder
    clock: Clock
    metrics: APIClientMetrics

    def client(
        self, config: Kubeconfig, *, qps: float = _UNLIMITED, burst: int = 1, timeout: float = 30.0
    ) -> HTTPAPIClient:
        """A client with connections of its own; `timeout` in seconds."""
        return HTTPAPIClient(
            config=config,
            recorder=self.recorder,
            clock=self.clock,
            metrics=self.metrics,
            limiter=RequestLimiter(qps=qps, burst=burst, clock=self.clock),
            user_agent=_USER_AGENT,
            timeout=timeout,
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
    """None without --kubeconfig: standalone."""
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
