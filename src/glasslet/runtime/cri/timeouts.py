"""How long a call may take, by verb."""

from __future__ import annotations

from msgspec import Struct


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds. `request` is `runtimeRequestTimeout`. A deadline of None means: as long as it takes."""

    request: float = 120.0

    @property
    def run_sandbox(self) -> float:
        """Setting up a network may be slow: twice the usual."""
        return 2 * self.request

    def stop_container(self, grace_seconds: int) -> float:
        """The runtime may use all of the grace before it answers."""
        return self.request + max(grace_seconds, 0)

    def checkpoint(self, asked: int) -> int:
        """Whole seconds; less than the usual is not taken."""
        return max(int(self.request), asked)

    def exec_sync(self, command_seconds: float) -> float | None:
        """The command's own limit comes first; 0 means that it has none."""
        return self.request + command_seconds if command_seconds > 0 else None
