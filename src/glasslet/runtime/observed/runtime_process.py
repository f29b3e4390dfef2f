"""The process of the container runtime: which it is, whether it still runs, and when it was found gone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from msgspec import Struct

from glasslet.concurrency.clock import Clock
from glasslet.host.processes import HostProcess, process_of, socket_owner

_UNIX: Final = "unix://"
_INIT: Final = 1
"""Listens for services that start with their first connection (socket activation): it is not the runtime."""
_ENDED: Final = ("Z", "X")


class ProcessView(Struct, frozen=True, kw_only=True):
    """The runtime's process. `state`: the kernel's letter; `gone_since`: when it was first found to be gone."""

    name: str
    pid: int
    state: str = ""
    gone_since: datetime | None = None

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


class RuntimeProcess:
    """Follows the process that listens on the runtime's socket. A look costs a read of /proc and never waits."""

    def __init__(
        self,
        *,
        endpoint: str,
        clock: Clock,
        owner: Callable[[str], int] = socket_owner,
        process: Callable[[int], HostProcess | None] = process_of,
    ) -> None:
        self._socket = endpoint.removeprefix(_UNIX) if endpoint.startswith(_UNIX) else ""
        self._clock = clock
        self._owner = owner
        self._process = process
        self._known: HostProcess | None = None
        self._gone_since: datetime | None = None

    def look(self) -> ProcessView | None:
        """The process as it is now; None if it was never found: another machine, or another PID namespace."""
        known = self._known
        if known is not None and (found := self._alive(known.pid)) is not None and found.ticks == known.ticks:
            return ProcessView(name=found.name, pid=found.pid, state=found.state)
        owner = self._owner(self._socket) if self._socket else 0
        if owner > _INIT and (found := self._alive(owner)) is not None:
            self._known, self._gone_since = found, None
            return ProcessView(name=found.name, pid=found.pid, state=found.state)
        if known is None:
            return None
        self._gone_since = self._gone_since or self._clock.now()
        return ProcessView(name=known.name, pid=known.pid, gone_since=self._gone_since)

    def _alive(self, pid: int) -> HostProcess | None:
        found = self._process(pid)
        return found if found is not None and found.state not in _ENDED else None
