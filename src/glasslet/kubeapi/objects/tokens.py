"""Service account tokens for pods: requested when first needed, renewed in time, kept in memory only.

A token is renewed when four fifths of its life are over, or after a day, a few seconds earlier at random. While that
fails the old one serves until it expires.

The API server grants a node tokens only for pods that are bound to it. It checks that in a cache, which may see a new
pod later than this node: a first token that is refused is requested again at once.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object, PodUID
from glasslet.concurrency.clock import Clock
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import APIError, Forbidden, Unavailable
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

REFRESH_SHARE = 0.8
MAX_AGE = 86400.0
MAX_JITTER = 10.0
"""Seconds, but for the share: token.refresh_share, token.max_age, token.jitter."""
_PAUSES = (0.05, 0.1, 0.2)
"""Seconds before another try: some times what a busy API server needs to see what it has just written."""


class BoundObjectReference(Object, frozen=True, kw_only=True):
    """`authentication.k8s.io/v1.BoundObjectReference`."""

    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(Object, frozen=True, kw_only=True):
    """`authentication.k8s.io/v1.TokenRequestSpec`."""

    audiences: tuple[str, ...] = ()
    expiration_seconds: int | None = None
    bound_object_ref: BoundObjectReference | None = None


class TokenRequestStatus(Object, frozen=True, kw_only=True):
    """`authentication.k8s.io/v1.TokenRequestStatus`."""

    token: str = ""
    expiration_timestamp: datetime | None = None

    def __repr__(self) -> str:
        return f"TokenRequestStatus(***, expires {self.expiration_timestamp})"


class TokenRequest(Object, frozen=True, kw_only=True):
    """`authentication.k8s.io/v1.TokenRequest`."""

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "TokenRequest"
    metadata: ObjectMeta = ObjectMeta()
    spec: TokenRequestSpec = TokenRequestSpec()
    status: TokenRequestStatus = TokenRequestStatus()


class TokenFor(Struct, frozen=True, kw_only=True):
    """The use of a token: the account, the pod that it is bound to, the audience, the seconds of life.
    `service_account_uid`: only of this very account, "" for whichever has the name."""

    namespace: str
    service_account: str
    service_account_uid: str = ""
    pod: str
    uid: PodUID
    audience: str = ""
    expiration_seconds: int | None = None


class ServiceAccountTokens:
    """All tokens of the pods on this node. `draw` gives numbers in [0, 1)."""

    def __init__(
        self, *, client: APIClient, recorder: Recorder, clock: Clock, draw: Callable[[], float] = random.random
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._draw = draw
        self._kept: dict[TokenFor, TokenRequest] = {}

    async def get(self, wanted: TokenFor) -> str:
        """A token that is good for a while. Raises APIError if there is none."""
        return (await self.granted(wanted)).token

    async def granted(self, wanted: TokenFor) -> TokenRequestStatus:
        """The same with its end."""
        kept = self._kept.get(wanted)
        now = self._clock.now()
        if kept is not None and not needs_refresh(kept, now, jitter=self._draw() * MAX_JITTER):
            return kept.status
        path = paths.service_account_token(wanted.namespace, wanted.service_account)
        try:
            fresh = await self._ask(path, wanted, _PAUSES if kept is None else ())
        except APIError as error:
            if kept is None:
                raise _explained(error, f"failed to fetch token: {error.message}") from error
            if _is_expired(kept, now):
                raise _explained(error, f"token expired and refresh failed: {error.message}") from error
            logger.warning("token not renewed, the old one serves", extra={"path": path, "error": str(error)})
            return kept.status
        self._kept[wanted] = fresh
        return fresh.status

    async def _ask(self, path: str, wanted: TokenFor, pauses: tuple[float, ...]) -> TokenRequest:
        for pause in pauses:
            try:
                return await self._client.create(path, _request(wanted), TokenRequest)
            except Forbidden:
                with self._recorder.wait(WaitKind.BACK_OFF, on=f"token of {wanted.service_account}, refused so far"):
                    await asyncio.sleep(pause)
        return await self._client.create(path, _request(wanted), TokenRequest)

    def forget(self, uid: PodUID) -> None:
        """Drops the tokens of an ended pod. The API server revokes them with the pod."""
        for wanted in [wanted for wanted in self._kept if wanted.uid == uid]:
            del self._kept[wanted]


def needs_refresh(token: TokenRequest, now: datetime, *, jitter: float) -> bool:
    """Whether it is time for a new one; `jitter` in seconds."""
    expires, life = token.status.expiration_timestamp, token.spec.expiration_seconds
    if expires is None or life is None:
        return False
    left = (expires - now).total_seconds()
    age = life - left
    return age > MAX_AGE - jitter or left < life * (1 - REFRESH_SHARE) + jitter


def _is_expired(token: TokenRequest, now: datetime) -> bool:
    expires = token.status.expiration_timestamp
    return expires is not None and now > expires


def _request(wanted: TokenFor) -> TokenRequest:
    return TokenRequest(
        metadata=ObjectMeta(uid=wanted.service_account_uid),
        spec=TokenRequestSpec(
            audiences=(wanted.audience,) if wanted.audience else (),
            expiration_seconds=wanted.expiration_seconds,
            bound_object_ref=BoundObjectReference(kind="Pod", api_version="v1", name=wanted.pod, uid=wanted.uid),
        ),
    )


def _explained(error: APIError, message: str) -> APIError:
    return Unavailable(error.request, message, code=error.code, reason=error.reason)
