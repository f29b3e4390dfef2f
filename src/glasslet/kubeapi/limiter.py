"""Client-side rate limit: a token bucket, as kubeAPIQPS and kubeAPIBurst describe it."""

from __future__ import annotations

import asyncio

from glasslet.concurrency.clock import Clock


class TokenBucket:
    """`qps` tokens a second, at most `burst` at once; qps <= 0 switches the limit off."""

    def __init__(self, *, qps: float, burst: int, clock: Clock) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._clock = clock
        self._tokens = float(self._burst)
        self._filled_at: float | None = None

    def delay(self) -> float:
        """Takes one token, on credit if need be: seconds until it may be used."""
        if self._qps <= 0:
            return 0.0
        now = self._clock.monotonic()
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._qps)

    async def take(self) -> None:
        """Waits for one token."""
        delay = self.delay()
        if delay:
            await asyncio.sleep(delay)
