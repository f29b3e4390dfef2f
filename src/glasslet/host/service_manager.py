"""Notifications to systemd (sd_notify): the agent is up, it ends, it is well.

One datagram per message to the socket in NOTIFY_SOCKET: a path, or a name in the abstract namespace behind `@`. The
watchdog's period is in WATCHDOG_USEC, for the process in WATCHDOG_PID if that is set.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

READY, STOPPING, WATCHDOG = "READY=1", "STOPPING=1", "WATCHDOG=1"
SHORTEST = 1.0
"""Seconds of a watchdog period below which the Go kubelet does not start either."""
_AGAIN = 1.0


class BadWatchdog(ValueError):
    """WATCHDOG_USEC or WATCHDOG_PID cannot be used; the text says what is allowed."""


class ServiceManager:
    """Talks to the socket. `period`: the watchdog's in seconds, None without one; `problem`: None while all is well."""

    def __init__(
        self, *, address: str, period: float | None, problem: Callable[[], str | None], recorder: Recorder
    ) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._period = period
        self._problem = problem
        self._recorder = recorder

    def ready(self) -> None:
        """The agent is up."""
        self._tell(READY)

    def stopping(self) -> None:
        """The agent ends."""
        self._tell(STOPPING)

    async def run(self) -> None:
        """Notifies the watchdog twice in each period while the agent is well, until cancelled."""
        if self._period is None:
            return
        while True:
            problem = self._problem()
            if problem is not None:
                logger.error("watchdog of the service manager is not notified: not healthy", extra={"problem": problem})
            elif not self._tell(WATCHDOG):
                with self._recorder.wait(WaitKind.BACK_OFF, on="service manager's socket"):
                    await asyncio.sleep(_AGAIN)
                self._tell(WATCHDOG)
            await asyncio.sleep(self._period / 2)

    def _tell(self, message: str) -> bool:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
                sock.sendto(message.encode(), self._address)
        except OSError as error:
            logger.warning("service manager not notified", extra={"said": message, "error": str(error)})
            return False
        return True


def watchdog_period(environment: Mapping[str, str], own_pid: int | None = None) -> float | None:
    """Seconds of the watchdog's period, None if there is none or it is for another process. Raises BadWatchdog."""
    period = environment.get("WATCHDOG_USEC", "")
    whose = environment.get("WATCHDOG_PID", "")
    if not period:
        return None
    if not (period.isascii() and period.isdigit()) or int(period) <= SHORTEST * 1_000_000:
        raise BadWatchdog(f"WATCHDOG_USEC is {period!r}: it has to be a number above {SHORTEST * 1_000_000:.0f}")
    if whose and not (whose.isascii() and whose.isdigit()):
        raise BadWatchdog(f"WATCHDOG_PID is {whose!r}: it has to be a process id")
    if whose and int(whose) != (own_pid if own_pid is not None else os.getpid()):
        return None
    return int(period) / 1_000_000
