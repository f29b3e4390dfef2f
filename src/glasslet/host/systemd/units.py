"""Units of systemd: start, change and stop them by name, and wait until that has happened.

A start or a stop is a job. Its end is a signal (JobRemoved), which may come before the reply that names the job.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from glasslet.host.systemd.bus import SECONDS, BusCall, BusObject, SystemBus, Watch
from glasslet.host.systemd.errors import BusAway, BusFailed, BusRefused
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

logger = logging.getLogger(__name__)

MANAGER = BusObject("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_PROPERTIES = MANAGER._replace(interface="org.freedesktop.DBus.Properties")
_EXISTS = "org.freedesktop.systemd1.UnitExists"
_DONE = "done"
_LOOK = 0.5
"""Seconds between looks whether the connection on which a job's end would be heard is still there."""
TOO_OLD = -1
"""The version of a systemd that does not say it."""


class UnitProperty(NamedTuple):
    """`signature`: its type in D-Bus' form."""

    name: str
    signature: str
    value: object


class UnitFailed(BusFailed):
    """systemd tried, and did not succeed."""


class SystemdUnits:
    """`within`: seconds for a call, and again for its job. Methods raise BusAway, BusRefused; `start` also
    UnitFailed."""

    def __init__(self, *, bus: SystemBus, recorder: Recorder, within: float = SECONDS) -> None:
        self._bus = bus
        self._recorder = recorder
        self._within = within
        self._calls = 0
        self._jobs: dict[str, asyncio.Future[str]] = {}
        self._ended: dict[str, str] = {}
        """Results of jobs that ended while the reply to a call was awaited."""
        self._version: int | None = None
        bus.watch(Watch(MANAGER, "JobRemoved", self._job_removed))

    async def start(self, name: str, properties: Iterable[UnitProperty]) -> None:
        """Starts a transient unit. One that exists counts as started, whatever its properties."""
        body: tuple[Any, ...] = (name, "replace", _with_variants(properties), [])
        try:
            result = await self._job(f"StartTransientUnit {name}", "StartTransientUnit", "ssa(sv)a(sa(sv))", body)
        except BusRefused as refused:
            if refused.name == _EXISTS:
                return
            raise
        except BusAway as error:
            raise BusAway(f"Timeout waiting for systemd to create {name}: {error.strerror}") from error
        if result != _DONE:
            await self._reset(name)
            raise UnitFailed(f"error creating systemd unit `{name}`: got `{result}`")

    async def change(self, name: str, properties: Iterable[UnitProperty]) -> None:
        """Sets properties until the next boot."""
        if wanted := _with_variants(properties):
            await self._call(f"SetUnitProperties {name}", "SetUnitProperties", "sba(sv)", (name, True, wanted))

    async def stop(self, name: str) -> None:
        """Stops a unit and forgets that it may have failed. Fine for one that is not there."""
        try:
            result = await self._job(f"StopUnit {name}", "StopUnit", "ss", (name, "replace"))
        except BusRefused as refused:
            # Upstream ignores every error here: the usual one is that there is no such unit.
            logger.debug("unit not stopped", extra={"unit": name, "error": str(refused)})
        except BusAway as error:
            raise BusAway(f"Timed out while waiting for systemd to remove {name}: {error.strerror}") from error
        else:
            if result != _DONE:
                logger.warning("unit stopped badly", extra={"unit": name, "result": result})
        await self._reset(name)

    async def kill(self, name: str, signal: int) -> None:
        """Sends a signal to all processes of a unit."""
        await self._call(f"KillUnit {name}", "KillUnit", "ssi", (name, "all", signal))

    async def version(self) -> int:
        """systemd's version, `TOO_OLD` if it does not say one."""
        if self._version is None:
            body = (MANAGER.interface, "Version")
            call = BusCall(_PROPERTIES, "Get", "ss", body)
            try:
                reply = await self._bus.call(call, on="systemd: Version", within=self._within)
            except BusRefused:
                self._version = TOO_OLD
            else:
                self._version = parse_version(str(reply.body[0].value))
        return self._version

    async def _reset(self, name: str) -> None:
        with suppress(BusRefused):
            await self._call(f"ResetFailedUnit {name}", "ResetFailedUnit", "s", (name,))

    async def _call(self, on: str, member: str, signature: str, body: tuple[Any, ...]) -> tuple[Any, ...]:
        call = BusCall(MANAGER, member, signature, body)
        return (await self._bus.call(call, on=f"systemd: {on}", within=self._within)).body

    async def _job(self, on: str, member: str, signature: str, body: tuple[Any, ...]) -> str:
        self._calls += 1
        try:
            while True:
                job = str((await self._call(on, member, signature, body))[0])
                result = await self._end_of(job, on)
                if result is not None:
                    return result
        finally:
            self._calls -= 1
            if not self._calls:
                self._ended.clear()

    async def _end_of(self, job: str, on: str) -> str | None:
        """The result of a job; None if the connection was lost on which it would be heard."""
        if job in self._ended:
            return self._ended.pop(job)
        heard: asyncio.Future[str]
        heard = self._jobs[job] = asyncio.get_running_loop().create_future()
        try:
            with self._recorder.wait(WaitKind.CGROUP, on=f"systemd: end of {on}"):
                async with asyncio.timeout(self._within):
                    while self._bus.connected:
                        done, _ = await asyncio.wait({heard}, timeout=_LOOK)
                        if done:
                            return heard.result()
                    return None
        except TimeoutError:
            raise BusAway(f"its job did not end within {self._within:g} s") from None
        finally:
            del self._jobs[job]

    def _job_removed(self, body: tuple[Any, ...]) -> None:
        _, job, _, result = body
        waiting = self._jobs.get(job)
        if waiting is not None and not waiting.done():
            waiting.set_result(str(result))
        elif self._calls:
            self._ended[job] = str(result)


def parse_version(text: str) -> int:
    """The number in `249`, `"v245.4-1.fc32"`; `TOO_OLD` without one."""
    found = re.match(r'"?v?(\d+)', text)
    return int(found[1]) if found else TOO_OLD


def _with_variants(properties: Iterable[UnitProperty]) -> list[list[object]]:
    from dbus_fast import Variant

    return [[one.name, Variant(one.signature, one.value)] for one in properties]
