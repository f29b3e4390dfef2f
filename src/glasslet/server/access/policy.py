"""Access control from the configuration: without a way to decide, the agent does not start."""

from __future__ import annotations

from msgspec import Struct

from glasslet.concurrency.clock import Clock
from glasslet.server.access.authentication import (
    AuthenticationChain,
    Authenticator,
    CertificateAuthenticator,
    TokenAuthenticator,
    TokenReviewer,
)
from glasslet.server.access.authorization import AlwaysAllow, Authorizer, RequestAuthorizer
from glasslet.server.request_pipeline import Access

MODES = ("AlwaysAllow", "Webhook")


class AccessSettings(Struct, frozen=True, kw_only=True):
    """Fields `authentication.*` and `authorization.mode`; `fine_grained`: feature gate KubeletFineGrainedAuthz."""

    node_name: str
    mode: str
    client_certificates: bool
    webhook_tokens: bool
    anonymous: bool
    fine_grained: bool = True


class BadAccessSetting(ValueError):
    """The configuration names a webhook, and there is no API server. The text is that of the Go kubelet."""


def build_access(
    settings: AccessSettings,
    *,
    clock: Clock,
    reviewer: TokenReviewer | None = None,
    authorizer: Authorizer | None = None,
) -> Access:
    """Without an API server there is no `reviewer` and no `authorizer`. Raises BadAccessSetting."""
    ways: list[Authenticator] = [CertificateAuthenticator(clock)] if settings.client_certificates else []
    if settings.webhook_tokens:
        if reviewer is None:
            raise BadAccessSetting("no client provided, cannot use webhook authentication")
        ways.append(TokenAuthenticator(reviewer))
    authorization = RequestAuthorizer(
        authorizer=_authorizer(settings.mode, authorizer),
        node_name=settings.node_name,
        fine_grained=settings.fine_grained,
    )
    return Access(AuthenticationChain(ways=ways, anonymous=settings.anonymous), authorization)


def _authorizer(mode: str, webhook: Authorizer | None) -> Authorizer:
    match mode:
        case "AlwaysAllow":
            return AlwaysAllow()
        case "Webhook":
            if webhook is None:
                raise BadAccessSetting("no client provided, cannot use webhook authorization")
            return webhook
        case _:
            raise BadAccessSetting(f"unknown authorization mode {mode}: allowed are {', '.join(MODES)}")
