"""Where requests to an API server are not counted."""

from __future__ import annotations


class Uncounted:
    """Implements `kubeapi.client.RequestMetrics`."""

    def request(self, verb: str, host: str, code: str, seconds: float) -> None:
        pass

    def limited(self, verb: str, host: str, seconds: float) -> None:
        pass

    def size(self, verb: str, host: str, sent: int, received: int) -> None:
        pass
