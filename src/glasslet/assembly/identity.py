"""The name under which this node is known at the API server."""

from __future__ import annotations

from glasslet.assembly.clients import Connector
from glasslet.config.loading import Loaded
from glasslet.identity.client_identity import ClientIdentity, IdentitySettings
from glasslet.identity.manager import NO_METRICS
from glasslet.telemetry.metrics.certificates import ClientCertificateMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry


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
