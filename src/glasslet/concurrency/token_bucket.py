"""A limit on how often something may happen. Pure: the time is given, in seconds that never go backwards."""

from __future__ import annotations


class TokenBucket:
    """`rate` tokens a second, at most `burst` saved up; a rate of 0 or less limits nothing."""

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at: float | None = None

    def take(self, now: float) -> bool:
        """Takes a token; False if there is none."""
        if self._rate <= 0:
            return True
        self._fill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def take_on_credit(self, now: float) -> float:
        """Takes a token in any case: seconds until it may be used."""
        if self._rate <= 0:
            return 0.0
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def _fill(self, now: float) -> None:
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
