"""The pace of requests: the client-side rate limit (kubeAPIQPS, kubeAPIBurst), and the pause before a retry.

An overloaded or refusing server gets growing pauses. For a server that cannot be reached they stay short, so that all
news is exchanged within ten seconds of its return.
"""

from __future__ import annotations

from glasslet.concurrency.clock import Clock
from glasslet.concurrency.jitter import jittered
from glasslet.concurrency.token_bucket import TokenBucket
from glasslet.kubeapi.errors import APIError, Throttled, Unavailable


class RequestLimiter:
    """`qps` requests a second, at most `burst` at once; qps <= 0 switches the limit off."""

    def __init__(self, *, qps: float, burst: int, clock: Clock) -> None:
        self._bucket = TokenBucket(rate=qps, burst=max(burst, 1))
        self._clock = clock

    def delay(self) -> float:
        """Seconds that the next request waits; it counts as made."""
        return self._bucket.take_on_credit(self._clock.monotonic())


WHILE_AWAY = 4.0
"""Seconds, before jitter: the longest pause before the next try at a server that gave no answer."""


def pause_after(error: APIError, delay: float) -> float:
    """Seconds until the next try after `error`; `delay` is the caller's current back-off."""
    if isinstance(error, Throttled):
        return jittered(max(delay, error.retry_after))
    if isinstance(error, Unavailable) and error.code == 0:
        return jittered(min(delay, WHILE_AWAY))
    return jittered(delay)
