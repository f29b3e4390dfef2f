"""Clients of the API server, one per purpose: what must not wait does not share a queue with what may."""

from __future__ import annotations

from dataclasses import dataclass

from glasslet.concurrency.clock import Clock
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.kubeconfig import Kubeconfig
from glasslet.kubeapi.limiter import RequestLimiter
from glasslet.record.recorder import Recorder
from glasslet.telemetry.metrics.api_client import APIClientMetrics
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
