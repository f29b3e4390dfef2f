"""Client-side rate limit, as kubeAPIQPS and kubeAPIBurst describe it: requests wait for their turn."""

from __future__ import annotations

from glasslet.concurrency.clock import Clock
from glasslet.concurrency.token_bucket import TokenBucket


class RequestLimiter:
    """`qps` requests a second, at most `burst` at once; qps <= 0 switches the limit off."""

    def __init__(self, *, qps: float, burst: int, clock: Clock) -> None:
        self._bucket = TokenBucket(rate=qps, burst=max(burst, 1))
        self._clock = clock

    def delay(self) -> float:
        """Seconds that the next request has to wait; it counts as made."""
        return self._bucket.take_on_credit(self._clock.monotonic())
