"""Clients of the API server, one per purpose: what must not wait does not share a queue with what may."""

from __future__ import annotations

from dataclasses import dataclass

from glasslet.concurrency.clock import Clock
from glasslet.config.loading import Loaded
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.kubeconfig import load_kubeconfig
from glasslet.kubeapi.limiter import TokenBucket
from glasslet.record.recorder import Recorder
from glasslet.telemetry.metrics.api_client import APIClientMetrics
from glasslet.version import KUBELET_VERSION

_USER_AGENT = f"kubelet/{KUBELET_VERSION} (linux) glasslet"
_UNLIMITED = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class APIClients:
    """`requests`: everything but what follows (kubeAPIQPS, kubeAPIBurst); `heartbeats`: node status and lease, without
    limit and with a time-out of their own; `events`: eventRecordQPS, eventBurst."""

    requests: HTTPAPIClient
    heartbeats: HTTPAPIClient
    events: HTTPAPIClient

    async def close(self) -> None:
        """Closes all connections."""
        for client in (self.events, self.requests, self.heartbeats):
            await client.close()


def build_clients(loaded: Loaded, recorder: Recorder, clock: Clock, metrics: APIClientMetrics) -> APIClients | None:
    """The clients for --kubeconfig; None without: standalone. Raises KubeconfigError."""
    if not loaded.options.kubeconfig:
        return None
    config, configuration = load_kubeconfig(loaded.options.kubeconfig), loaded.configuration

    def client(qps: float, burst: int, timeout: float = 30.0) -> HTTPAPIClient:
        return HTTPAPIClient(
            config=config,
            recorder=recorder,
            clock=clock,
            metrics=metrics,
            limiter=TokenBucket(qps=qps, burst=burst, clock=clock),
            user_agent=_USER_AGENT,
            timeout=timeout,
        )

    patience = min(configuration.node_status_update_frequency, configuration.node_lease_duration_seconds)
    return APIClients(
        requests=client(configuration.kube_api_qps, configuration.kube_api_burst),
        heartbeats=client(_UNLIMITED, 1, float(patience)),
        events=client(configuration.event_record_qps, configuration.event_burst),
    )
