"""logind: how long it delays a shutdown, the lock that makes it wait, and the signal that a shutdown begins.

A lock is a file descriptor; logind waits while it is open, at most InhibitDelayMaxSec.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from glasslet.host.files.small_files import write_atomically
from glasslet.host.systemd.bus import BusCall, BusObject, SystemBus, Watch
from glasslet.host.systemd.units import SystemdUnits
from glasslet.record.stations import WaitKind

LOGIND = BusObject("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_PROPERTIES = LOGIND._replace(interface="org.freedesktop.DBus.Properties")
_UNIT = "systemd-logind.service"
DROP_INS = "/etc/systemd/logind.conf.d"
FILE = "99-kubelet.conf"
_PER_SECOND = 1_000_000


class Logind:
    """`heard` is called with True when a shutdown begins, with False when it was cancelled. Methods raise BusAway,
    BusRefused."""

    def __init__(
        self, *, bus: SystemBus, units: SystemdUnits, heard: Callable[[bool], None], drop_ins: str = DROP_INS
    ) -> None:
        self._bus = bus
        self._units = units
        self._drop_ins = drop_ins
        bus.watch(Watch(LOGIND, "PrepareForShutdown", lambda body: heard(bool(body[0]))))

    @property
    def connected(self) -> bool:
        """Whether a shutdown would be heard of."""
        return self._bus.connected

    async def delay(self) -> float:
        """The longest delay of a shutdown, seconds."""
        return int(str(await self._get("InhibitDelayMaxUSec"))) / _PER_SECOND

    async def preparing(self) -> bool:
        """Whether a shutdown has begun."""
        return bool(await self._get("PreparingForShutdown"))

    async def raise_delay(self, seconds: float) -> None:
        """Sets the longest delay in a file that stays, and makes logind read it, which takes a moment. Raises OSError
        for the file as well."""
        os.makedirs(self._drop_ins, mode=0o755, exist_ok=True)
        text = f"# Kubelet logind override\n[Login]\nInhibitDelayMaxSec={seconds:.0f}\n"
        write_atomically(f"{self._drop_ins}/{FILE}", text.encode(), mode=0o644)
        await self._units.kill(_UNIT, signal.SIGHUP)

    async def lock(self) -> int:
        """Takes the lock: a descriptor that the caller closes."""
        arguments = ("shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay")
        reply = await self._bus.call(
            BusCall(LOGIND, "Inhibit", "ssss", arguments), on="logind: Inhibit", kind=WaitKind.SHUTDOWN
        )
        return reply.files[int(reply.body[0])]

    async def _get(self, name: str) -> object:
        call = BusCall(_PROPERTIES, "Get", "ss", (LOGIND.interface, name))
        reply = await self._bus.call(call, on=f"logind: {name}", kind=WaitKind.SHUTDOWN)
        return reply.body[0].value
