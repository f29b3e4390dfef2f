"""The system bus: one connection, dialled when it is first used and again when it was lost.

A call that loses its connection is repeated on the next one until its time is over: callers make only calls that may
happen twice. The library (dbus-fast) is imported with the first call.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from glasslet.host.systemd.errors import BusAway, BusFailed, BusRefused
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

logger = logging.getLogger(__name__)

SECONDS = 30.0
"""For one call, dialling included; upstream waits as long for a job of systemd."""
ADDRESS = "unix:path=/var/run/dbus/system_bus_socket"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
UNANSWERED = 64
"""Calls given up on one connection after which it is dropped: the library keeps a place for each answer."""


class BusObject(NamedTuple):
    """An object on the bus and the interface that is called."""

    name: str
    path: str
    interface: str


class BusCall(NamedTuple):
    """One method call. `signature` and `body` as in the D-Bus specification; `Variant`s are pairs of signature and
    value."""

    service: BusObject
    member: str
    signature: str = ""
    body: tuple[Any, ...] = ()


class BusReply(NamedTuple):
    """`files`: descriptors that came with it; the caller owns them."""

    body: tuple[Any, ...]
    files: tuple[int, ...]


class Watch(NamedTuple):
    """A signal that is listened to on every connection."""

    service: BusObject
    member: str
    heard: Callable[[tuple[Any, ...]], None]

    @property
    def rule(self) -> str:
        """The match rule."""
        return (
            f"type='signal',sender='{self.service.name}',path='{self.service.path}',"
            f"interface='{self.service.interface}',member='{self.member}'"
        )


_BUS = BusObject("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")


def system_bus_address() -> str:
    """DBUS_SYSTEM_BUS_ADDRESS, or the usual place."""
    return os.environ.get("DBUS_SYSTEM_BUS_ADDRESS") or ADDRESS


class SystemBus:
    """Calls and signals. `address`: in D-Bus' form, with EXTERNAL authentication."""

    def __init__(self, *, address: str, recorder: Recorder) -> None:
        self._address = address
        self._recorder = recorder
        self._watches: list[Watch] = []
        self._bus: MessageBus | None = None
        self._dialling = asyncio.Lock()
        self._unanswered = 0

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._bus is not None and self._bus.connected

    def watch(self, watch: Watch) -> None:
        """Listens to a signal on every connection from the next one on."""
        self._watches.append(watch)

    async def call(
        self, call: BusCall, *, on: str, kind: WaitKind = WaitKind.CGROUP, within: float = SECONDS
    ) -> BusReply:
        """Calls once a connection is there. `on` names the wait. Raises BusAway, BusRefused."""
        trouble = ""
        with self._recorder.wait(kind, on=on):
            try:
                async with asyncio.timeout(within):
                    pause = _FIRST_PAUSE
                    while True:
                        try:
                            return await self._try(call)
                        except BusFailed:
                            raise
                        except _lost() as error:
                            trouble = f": {error}" if str(error) else ": the connection was closed"
                            logger.debug("system bus lost", extra={"error": str(error)})
                        with self._recorder.wait(kind, on=f"{on}: no system bus{trouble}"):
                            await asyncio.sleep(pause)
                        pause = min(pause * 2, _LONGEST_PAUSE)
            except TimeoutError:
                self._give_up()
                raise BusAway(f"{on}: no answer over D-Bus within {within:g} s{trouble}") from None

    async def connect(self, *, on: str, kind: WaitKind) -> None:
        """Dials if there is no connection. Raises BusAway."""
        await self.call(BusCall(_BUS, "GetId"), on=on, kind=kind)

    def close(self) -> None:
        """Ends the connection."""
        if self._bus is not None:
            self._bus.disconnect()
            self._bus = None

    async def _try(self, call: BusCall) -> BusReply:
        bus = await self._connection()
        answer = await bus.call(_message(call))
        if answer is None:
            raise EOFError
        body = tuple(answer.body)
        if answer.error_name:
            raise BusRefused(answer.error_name, str(body[0]) if body else "no text")
        return BusReply(body, tuple(answer.unix_fds))

    async def _connection(self) -> MessageBus:
        async with self._dialling:
            if self._bus is None or not self._bus.connected:
                self._bus = await self._dial()
                self._unanswered = 0
            return self._bus

    async def _dial(self) -> MessageBus:
        from dbus_fast.aio import MessageBus

        bus = await MessageBus(bus_address=self._address, negotiate_unix_fd=True).connect()
        try:
            bus.add_message_handler(self._hear)
            for watch in self._watches:
                await bus.call(_message(BusCall(_BUS, "AddMatch", "s", (watch.rule,))))
        except BaseException:
            bus.disconnect()
            raise
        return bus

    def _hear(self, message: Message) -> None:
        # A method call or a reply has a destination of its own; its interface is none that is watched.
        for watch in self._watches:
            wanted = (watch.service.path, watch.service.interface, watch.member)
            if (message.path, message.interface, message.member) == wanted:
                watch.heard(tuple(message.body))

    def _give_up(self) -> None:
        self._unanswered += 1
        if self._unanswered >= UNANSWERED:
            self.close()


def _lost() -> tuple[type[Exception], ...]:
    """Errors of a connection that cannot be made or is gone."""
    from dbus_fast.errors import DBusFastError

    return (OSError, EOFError, DBusFastError)


def _message(call: BusCall) -> Message:
    from dbus_fast import Message

    return Message(
        destination=call.service.name,
        path=call.service.path,
        interface=call.service.interface,
        member=call.member,
        signature=call.signature,
        body=list(call.body),
    )
