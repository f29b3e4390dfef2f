"""The progress of the agent's start, for the health port: it answers from the first moment, with the reason."""

from __future__ import annotations

from glasslet.server.protocols import HealthCheck


class Startup:
    """Moves from `starting` over any number of reasons to finished. A later failure can take it back."""

    def __init__(self) -> None:
        self._reason: str | None = "the kubelet is starting"

    def waiting_for(self, what: str) -> None:
        """Names the present wait of the start (`waiting for the container runtime at /run/x.sock`)."""
        self._reason = what

    def finished(self) -> None:
        """The agent is up."""
        self._reason = None

    def check(self) -> HealthCheck:
        """The check `startup`."""
        return HealthCheck("startup", lambda: self._reason)
