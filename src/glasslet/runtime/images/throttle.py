"""registryPullQPS and registryPullBurst: a token bucket that refuses instead of waiting. No clock inside."""

from __future__ import annotations


class TokenBucket:
    """`rate` tokens a second, at most `burst` saved up; a rate of 0 refuses nothing."""

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Takes a token at that time (seconds, never backwards); False if there is none."""
        if self._rate <= 0:
            return True
        if self._at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
