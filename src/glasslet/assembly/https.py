"""Builds the HTTPS port's certificate, and the authentication and authorization of its clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from glasslet.api.node import NodeAddress
from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.foundation import Foundation
from glasslet.identity.serving import ServingIdentity, ServingSettings
from glasslet.identity.signer import CertificateSigner
from glasslet.server.access.policy import AccessSettings, build_access
from glasslet.server.access.webhook import Reviews, WebhookAuthorizer, WebhookReviewer
from glasslet.server.request_pipeline import Access
from glasslet.server.transport.tls import ServingTLS, TLSFiles
from glasslet.server.transport.tls_options import TLSOptions
from glasslet.telemetry.metrics.certificates import ReviewFamilies, ServingCertificateMetrics


class TLSSide(Struct, frozen=True, kw_only=True):
    """`identity` is None unless the cluster signs the serving certificate (serverTLSBootstrap)."""

    serving: ServingTLS
    identity: ServingIdentity | None

    @property
    def services(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """The services that keep the certificate valid."""
        if self.identity is None:
            return {"serving certificate": self.serving.run}
        return {
            "serving certificate": self.serving.run,
            "signing of the serving certificate": self.identity.run,
        }


async def build_tls(foundation: Foundation, cluster: ClusterSide | None) -> TLSSide:
    """Waits for keys where none are configured. Raises BadTLSFile, BadTLSOption."""
    configuration = foundation.configuration
    identity = None
    if configuration.server_tls_bootstrap and cluster is not None:
        identity = _serving_identity(foundation, cluster)
        certificate, key = identity.files()
    else:
        certificate, key = await foundation.serving_pair.files()
        if foundation.serving_pair.finding:
            foundation.record.finding(foundation.serving_pair.finding)
    client_ca = configuration.authentication.x509.client_ca_file
    files = TLSFiles(certificate, key, client_ca, awaited=identity is not None)
    options = TLSOptions(configuration.tls_min_version, tuple(configuration.tls_cipher_suites))
    serving = ServingTLS(files=files, options=options, clock=foundation.clock)
    if identity is not None:
        identity.subscribe(lambda pair: serving.use(pair.certificate_file, pair.key_file))
    return TLSSide(serving=serving, identity=identity)


def _serving_identity(foundation: Foundation, cluster: ClusterSide) -> ServingIdentity:
    configuration = foundation.configuration

    def addresses() -> Sequence[NodeAddress]:
        return cluster.node.current().status.addresses

    metrics = ServingCertificateMetrics(foundation.metrics.registry)
    identity = ServingIdentity(
        settings=ServingSettings(
            node=foundation.node_name,
            cert_dir=foundation.options.cert_dir,
            certificate_file=configuration.tls_cert_file,
            key_file=configuration.tls_private_key_file,
            names_alone=foundation.loaded.gates.enabled("AllowDNSOnlyNodeCSR"),
        ),
        signer=CertificateSigner(client=cluster.clients.requests, recorder=foundation.record, clock=foundation.clock),
        addresses=addresses,
        metrics=metrics,
        clock=foundation.clock,
    )
    metrics.show(identity.expiry)
    return identity


def build_gatekeeper(foundation: Foundation, cluster: ClusterSide | None) -> Access:
    """The access control of the HTTPS port. Raises BadAccessSetting."""
    configuration = foundation.configuration
    authentication, authorization = configuration.authentication, configuration.authorization
    settings = AccessSettings(
        node_name=foundation.node_name,
        mode=authorization.mode,
        client_certificates=bool(authentication.x509.client_ca_file),
        webhook_tokens=authentication.webhook.enabled,
        anonymous=authentication.anonymous.enabled,
        fine_grained=foundation.loaded.gates.enabled("KubeletFineGrainedAuthz"),
    )
    if cluster is None:
        return build_access(settings, clock=foundation.clock)
    reviews = Reviews(
        client=cluster.clients.reviews,
        metrics=ReviewFamilies(foundation.metrics.registry),
        recorder=foundation.record,
        clock=foundation.clock,
    )
    reviewer = WebhookReviewer(reviews=reviews, ttl=float(authentication.webhook.cache_ttl))
    webhook = authorization.webhook
    authorizer = WebhookAuthorizer(
        reviews=reviews,
        allowed_ttl=float(webhook.cache_authorized_ttl),
        denied_ttl=float(webhook.cache_unauthorized_ttl),
    )
    return build_access(settings, clock=foundation.clock, reviewer=reviewer, authorizer=authorizer)
