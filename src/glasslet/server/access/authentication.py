"""Authentication: client certificate, then bearer token, then anonymous if the configuration allows that."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from glasslet.concurrency.clock import Clock
from glasslet.server.access.users import ANONYMOUS, AUTHENTICATED, RequestCredentials, User

PROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io."
"""A browser cannot set headers on a WebSocket: it may bring its token as a subprotocol with this prefix."""


class BadCredentials(Exception):
    """The credentials are there and wrong. The text is for the log, never for the client."""


class Authenticator(Protocol):
    """One way to authenticate."""

    async def authenticate(self, credentials: RequestCredentials) -> User | None:
        """The user; None if the request brings nothing that this way looks at. Raises BadCredentials."""


class CertificateAuthenticator:
    """The subject of a client certificate: its common name is the user, its organisations are the groups.

    The TLS handshake verified the certificate against the client CA. Whether it still counts is checked per request."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def authenticate(self, credentials: RequestCredentials) -> User | None:
        """The user; None without a certificate. Raises BadCredentials."""
        certificate = credentials.certificate
        if certificate is None:
            return None
        if problem := certificate.problem(self._clock.now()):
            raise BadCredentials(problem)
        common = [value for kind, value in certificate.names if kind == "commonName"]
        if not common or not common[-1]:
            raise BadCredentials("the client certificate has no common name")
        return User(common[-1], tuple(value for kind, value in certificate.names if kind == "organizationName"))


class TokenReviewer(Protocol):
    """Reviews tokens at the API server."""

    async def review(self, token: str, source: str) -> User | None:
        """The user of a token from the address `source`; None if it is not good. Raises Exception without an answer."""


class TokenAuthenticator:
    """Bearer tokens, by review."""

    def __init__(self, reviewer: TokenReviewer) -> None:
        self._reviewer = reviewer

    async def authenticate(self, credentials: RequestCredentials) -> User | None:
        """The user; None without a token. Raises BadCredentials if the token is not good or not reviewed."""
        if credentials.token is None:
            return None
        try:
            user = await self._reviewer.review(credentials.token, credentials.source)
        except Exception as error:
            raise BadCredentials(f"token review failed: {error}") from error
        if user is None:
            raise BadCredentials("the bearer token is not good")
        return user


class AuthenticationChain:
    """Tries each way in turn; the first user wins. Anonymous only without credentials that a way reads."""

    def __init__(self, *, ways: Sequence[Authenticator], anonymous: bool) -> None:
        self._ways = tuple(ways)
        self._anonymous = anonymous

    async def authenticate(self, credentials: RequestCredentials) -> User | None:
        """The user, in group system:authenticated unless anonymous; None without a way in. Raises BadCredentials."""
        refusal: BadCredentials | None = None
        for way in self._ways:
            try:
                user = await way.authenticate(credentials)
            except BadCredentials as refused:
                refusal = refused
                continue
            if user is not None:
                known = user.groups if AUTHENTICATED in user.groups else (*user.groups, AUTHENTICATED)
                return replace(user, groups=known)
        if refusal is not None:
            raise refusal
        return ANONYMOUS if self._anonymous else None


def bearer_token(authorization: str | None, protocols: Iterable[str]) -> str | None:
    """The token of an Authorization header, else of a WebSocket subprotocol; None if there is neither."""
    if authorization:
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return token.strip()
    for protocol in protocols:
        if protocol.startswith(PROTOCOL_PREFIX):
            encoded = protocol.removeprefix(PROTOCOL_PREFIX)
            try:
                padded = encoded + "=" * (-len(encoded) % 4)
                return base64.b64decode(padded, altchars=b"-_", validate=True).decode() or None
            except (binascii.Error, UnicodeDecodeError):
                return None
    return None
