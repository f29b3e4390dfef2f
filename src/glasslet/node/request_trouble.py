"""The error of the last request of one kind to the API server, and since when such requests fail."""

from __future__ import annotations

from datetime import datetime

from glasslet.concurrency.clock import Clock
from glasslet.kubeapi.errors import APIError


class RequestTrouble:
    """Written by what sends the requests. `error` and `since` are None after a success."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.error: APIError | None = None
        self.since: datetime | None = None

    def is_(self, error: APIError) -> None:
        """A request failed."""
        self.error = error
        self.since = self.since or self._clock.now()

    def over(self) -> None:
        """A request succeeded."""
        self.error = self.since = None
