"""Reviews by the API server: of tokens (TokenReview), and of requests (SubjectAccessReview).

    WebhookReviewer(reviews=Reviews(...), ttl=...)                      ─▶ server.authentication.TokenReviewer
    WebhookAuthorizer(reviews=Reviews(...), allowed_ttl=, denied_ttl=)  ─▶ server.authorization.Authorizer

Times and what is cached: authentication.webhook.cacheTTL, authorization.webhook.cacheAuthorizedTTL and
cacheUnauthorizedTTL; errors never are.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Protocol, TypeVar

from glasslet.api.codec import encode_sorted
from glasslet.concurrency.clock import Clock
from glasslet.concurrency.jitter import jittered
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import APIError, Throttled, Unavailable
from glasslet.kubeapi.protocols import APIClient
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.server.access.authorization import AuthorizationError
from glasslet.server.access.source_budget import SourceBudget
from glasslet.server.access.users import Attributes, User
from glasslet.server.access.webhook_cache import AnswerCache
from glasslet.server.access.webhook_objects import (
    ResourceAttributes,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
    TokenReview,
    TokenReviewSpec,
    TokenReviewStatus,
)

T = TypeVar("T")

_TRIES = 5
_PAUSE, _GROWTH, _JITTER = 0.5, 1.5, 0.2
_TRANSIENT = (500, 504)
_LIMIT = 30.0
"""Seconds for one review with all its tries: the client waits as long."""
BURST, PER_SECOND = 30.0, 1.0
"""Unknown tokens of one source that are reviewed: a client that guesses must not make the API server work."""
_TOKENS = 4096
_ACCESSES = 8192
_LARGEST_KEPT = 10_000
"""Longer attributes, which the client chooses, are reviewed each time."""


class ReviewError(Exception):
    """There is no verdict of the API server. The text is for the log; it never holds a token."""


class ReviewMetrics(Protocol):
    """Counts reviews; `code` is the HTTP code, or `<error>` without an answer."""

    def token_review(self, code: str, seconds: float) -> None: ...

    def access_review(self, code: str, seconds: float) -> None: ...


class Reviews:
    """Sends reviews, and tries again after errors that may pass."""

    def __init__(self, *, client: APIClient, metrics: ReviewMetrics, recorder: Recorder, clock: Clock) -> None:
        self.client = client
        self.metrics = metrics
        self.recorder = recorder
        self.clock = clock

    async def ask(self, path: str, review: T, counted: Callable[[str, float], None]) -> T:
        """The review with its status. Raises ReviewError."""
        try:
            async with asyncio.timeout(_LIMIT):
                return await self._ask(path, review, counted)
        except TimeoutError:
            raise ReviewError(f"no answer of the API server in {_LIMIT:.0f} s") from None

    async def _ask(self, path: str, review: T, counted: Callable[[str, float], None]) -> T:
        pause = _PAUSE
        for turn in range(1, _TRIES + 1):
            began = self.clock.monotonic()
            try:
                answer = await self.client.create(path, review, type(review))
            except APIError as error:
                counted(str(error.code or "<error>"), self.clock.monotonic() - began)
                if turn == _TRIES or not worth_another_try(error, turn):
                    raise ReviewError(str(error)) from None
            else:
                counted("201", self.clock.monotonic() - began)
                return answer
            with self.recorder.wait(WaitKind.BACK_OFF, on=f"another try of {path.rpartition('/')[2]}"):
                await asyncio.sleep(jittered(pause, _JITTER))
            pause *= _GROWTH
        raise AssertionError("the last try returns or raises")


def worth_another_try(error: APIError, turn: int) -> bool:
    """True if the same review may be answered in a moment. `turn` counts tries from 1.

    A connection that broke gets one more try: the server may have closed an idle one; an absent server does not."""
    if isinstance(error, Throttled):
        return True
    return isinstance(error, Unavailable) and (error.code in _TRANSIENT or (error.code == 0 and turn == 1))


class WebhookReviewer:
    """Implements `TokenReviewer`. `ttl` in seconds, for good and for bad tokens."""

    def __init__(self, *, reviews: Reviews, ttl: float) -> None:
        self._reviews = reviews
        # Tokens are kept as keyed digests only: a copy of this memory is of no use.
        self._secret = secrets.token_bytes(32)
        self._cache: AnswerCache[User | None] = AnswerCache(
            name="token review", size=_TOKENS, ttl=lambda _: ttl, clock=reviews.clock, recorder=reviews.recorder
        )
        self._budget = SourceBudget(burst=BURST, per_second=PER_SECOND, now=reviews.clock.monotonic)

    async def review(self, token: str, source: str) -> User | None:
        """The token's user; None if the token is not good. Raises ReviewError without an answer."""
        key = hmac.digest(self._secret, token.encode("utf-8", "surrogateescape"), "sha256")
        return await self._cache.get(key, lambda: self._ask(token, source))

    async def _ask(self, token: str, source: str) -> User | None:
        if not self._budget.take(source):
            raise ReviewError("too many unknown tokens from this address")
        review = TokenReview(spec=TokenReviewSpec(token=token))
        # A review without a verdict is paid for: a server in trouble needs the bound most.
        answer = await self._reviews.ask(paths.TOKEN_REVIEWS, review, self._reviews.metrics.token_review)
        user = token_user(answer.status)
        if user is not None:
            self._budget.give_back(source)
        return user


def token_user(status: TokenReviewStatus) -> User | None:
    """The user of a reviewed token; None if it is not good. Raises ReviewError if the server could not tell."""
    if not status.authenticated:
        if status.error:
            raise ReviewError(status.error)
        return None
    user = status.user
    return User(user.username, user.groups, user.uid, user.extra)


class WebhookAuthorizer:
    """Implements `Authorizer`. Times in seconds, for allowed and for refused attempts."""

    def __init__(self, *, reviews: Reviews, allowed_ttl: float, denied_ttl: float) -> None:
        self._reviews = reviews

        def ttl(allowed: bool) -> float:
            return allowed_ttl if allowed else denied_ttl

        self._cache: AnswerCache[bool] = AnswerCache(
            name="access review", size=_ACCESSES, ttl=ttl, clock=reviews.clock, recorder=reviews.recorder
        )

    async def allows(self, attributes: Attributes) -> bool:
        """True if it is allowed. Raises AuthorizationError without a verdict."""
        spec = access_spec(attributes)
        data = encode_sorted(spec)
        try:
            return await self._cache.get(
                hashlib.sha256(data).digest(), lambda: self._ask(spec), keep=len(data) <= _LARGEST_KEPT
            )
        except ReviewError as error:
            raise AuthorizationError(f"access review failed: {error}") from error

    async def _ask(self, spec: SubjectAccessReviewSpec) -> bool:
        review = SubjectAccessReview(spec=spec)
        answer = await self._reviews.ask(paths.ACCESS_REVIEWS, review, self._reviews.metrics.access_review)
        return is_allowed(answer.status)


def access_spec(attributes: Attributes) -> SubjectAccessReviewSpec:
    """The attributes to review: always a subresource of this node."""
    user = attributes.user
    resource = ResourceAttributes(
        verb=attributes.verb,
        version="v1",
        resource="nodes",
        subresource=attributes.subresource,
        name=attributes.node_name,
    )
    return SubjectAccessReviewSpec(
        resource_attributes=resource,
        user=user.name,
        groups=user.groups,
        extra={name: tuple(values) for name, values in user.extra.items()},
        uid=user.uid,
    )


def is_allowed(status: SubjectAccessReviewStatus) -> bool:
    """No opinion is a refusal. Raises ReviewError for an answer that contradicts itself."""
    if status.allowed and status.denied:
        raise ReviewError("the API server both allows and denies")
    return status.allowed
