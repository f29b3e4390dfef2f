"""A system bus on a real socket, with a systemd and a logind behind it that do what a test says."""

from __future__ import annotations

import asyncio
import io
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from dbus_fast import Message, MessageFlag, MessageType, Variant
from dbus_fast._private.unmarshaller import Unmarshaller

SYSTEMD, SYSTEMD_PATH = "org.freedesktop.systemd1", "/org/freedesktop/systemd1"
LOGIND, LOGIND_PATH = "org.freedesktop.login1", "/org/freedesktop/login1"
Answer = tuple[str, list[Any], list[int]]
"""Signature, body, file descriptors."""


class Refused(Exception):
    """The service answers with this error."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


class FakeSystem:
    """What systemd and logind know. `units`: properties by name."""

    def __init__(self) -> None:
        self.units: dict[str, dict[str, Any]] = {}
        self.order: list[str] = []
        """Units in the order in which they were started and stopped (`+a.slice`, `-a.slice`)."""
        self.version = "252.39-1~deb12u1"
        self.hangs = False
        self.job_result = "done"
        self.jobs_end = True
        self.job_first = False
        """The end of a job is sent before the reply that names it."""
        self.refuses: dict[str, str] = {}
        """Members whose calls fail: with which error."""
        self.delay = 5_000_000
        self.delay_after_reload: int | None = None
        self.inhibitors: list[tuple[list[Any], int]] = []
        """Arguments of each lock, and our end of its pipe."""
        self.preparing = False
        self.connections: list[_Connection] = []
        self.accepts = True

    def cut(self) -> None:
        """Closes all connections."""
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def emit(self, path: str, interface: str, member: str, signature: str, body: list[Any]) -> None:
        """Sends a signal to every client."""
        for connection in self.connections:
            connection.send(Message.new_signal(path, interface, member, signature, body))

    def shuts_down(self, begins: bool) -> None:
        """logind's PrepareForShutdown."""
        self.preparing = begins
        self.emit(LOGIND_PATH, f"{LOGIND}.Manager", "PrepareForShutdown", "b", [begins])

    def locks(self) -> list[list[Any]]:
        """Locks whose holder has them open."""
        return [arguments for arguments, end in self.inhibitors if not _closed(end)]

    def answer(self, message: Message, after: Callable[[Callable[[], None]], None]) -> Answer:
        """What a call returns; `after` runs something once the reply is sent."""
        member = str(message.member)
        if member in self.refuses:
            raise Refused(self.refuses[member], f"{member} is refused")
        if message.destination == "org.freedesktop.DBus":
            return {"Hello": ("s", [":1.7"], []), "GetId": ("s", ["0"], [])}.get(member, ("", [], []))
        return getattr(self, f"_{member.lower()}")(message.body, after)  # type: ignore[no-any-return]

    def _starttransientunit(self, body: list[Any], after: Callable[[Callable[[], None]], None]) -> Answer:
        name, mode, properties, _ = body
        assert mode == "replace"
        if name in self.units:
            raise Refused(f"{SYSTEMD}.UnitExists", f"Unit {name} already exists.")
        return self._job(name, lambda: self._made(name, properties), after)

    def _stopunit(self, body: list[Any], after: Callable[[Callable[[], None]], None]) -> Answer:
        name, _ = body
        if name not in self.units:
            raise Refused(f"{SYSTEMD}.NoSuchUnit", f"Unit {name} not loaded.")
        return self._job(name, lambda: self._gone(name), after)

    def _setunitproperties(self, body: list[Any], _: object) -> Answer:
        name, runtime, properties = body
        assert runtime is True
        self.units.setdefault(name, {}).update({key: value.value for key, value in properties})
        return "", [], []

    def _resetfailedunit(self, body: list[Any], _: object) -> Answer:
        if body[0] not in self.units:
            raise Refused(f"{SYSTEMD}.NoSuchUnit", f"Unit {body[0]} not loaded.")
        return "", [], []

    def _killunit(self, body: list[Any], _: object) -> Answer:
        if body == ["systemd-logind.service", "all", 1] and self.delay_after_reload is not None:
            self.delay = self.delay_after_reload
        return "", [], []

    def _get(self, body: list[Any], _: object) -> Answer:
        known = {
            "Version": Variant("s", self.version),
            "InhibitDelayMaxUSec": Variant("t", self.delay),
            "PreparingForShutdown": Variant("b", self.preparing),
        }
        return "v", [known[body[1]]], []

    def _inhibit(self, body: list[Any], _: object) -> Answer:
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        self.inhibitors.append((body, ours))
        return "h", [0], [theirs]

    def _made(self, name: str, properties: list[Any]) -> None:
        if self.job_result == "done":
            self.units[name] = {key: value.value for key, value in properties}
            self.order.append(f"+{name}")

    def _gone(self, name: str) -> None:
        self.units.pop(name, None)
        self.order.append(f"-{name}")

    def _job(self, name: str, work: Callable[[], None], after: Callable[[Callable[[], None]], None]) -> Answer:
        job = f"{SYSTEMD_PATH}/job/{len(self.order) + 1}"
        work()

        def end() -> None:
            self.emit(SYSTEMD_PATH, f"{SYSTEMD}.Manager", "JobRemoved", "uoss", [1, job, name, self.job_result])

        if self.jobs_end:
            if self.job_first:
                end()
            else:
                after(end)
        return "o", [job], []


class _Connection:
    """One client."""

    def __init__(self, system: FakeSystem, peer: socket.socket) -> None:
        self._system = system
        self._peer = peer
        self._serial = 0
        self._authenticated = False
        self._data = b""

    def close(self) -> None:
        """The socket itself is closed by whoever reads it."""
        with suppress(OSError):
            self._peer.shutdown(socket.SHUT_RDWR)

    def send(self, message: Message, files: list[int] | None = None) -> None:
        self._serial += 1
        message.serial = self._serial
        if files:
            socket.send_fds(self._peer, [message._marshall(False)], files)
            for file in files:
                os.close(file)
        else:
            self._peer.sendall(message._marshall(False))

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(self._peer, 65536):
            self._data += data
            if not self._authenticated:
                self._authenticate()
            while self._authenticated and (message := self._next()) is not None:
                self._reply(message)

    def _authenticate(self) -> None:
        *lines, self._data = self._data.lstrip(b"\0").split(b"\r\n")
        for line in lines:
            if line.startswith(b"AUTH EXTERNAL"):
                self._peer.sendall(b"OK 0123456789abcdef0123456789abcdef\r\n")
            elif line == b"NEGOTIATE_UNIX_FD":
                self._peer.sendall(b"AGREE_UNIX_FD\r\n")
            elif line == b"BEGIN":
                self._authenticated = True

    def _next(self) -> Message | None:
        if len(self._data) < 16:
            return None
        body, fields = (int.from_bytes(self._data[at : at + 4], "little") for at in (4, 12))
        size = 16 + (fields + 7) // 8 * 8 + body
        if len(self._data) < size:
            return None
        one, self._data = self._data[:size], self._data[size:]
        return Unmarshaller(io.BytesIO(one)).unmarshall()  # type: ignore[arg-type]

    def _reply(self, message: Message) -> None:
        if self._system.hangs and message.destination != "org.freedesktop.DBus":
            return
        afterwards: list[Callable[[], None]] = []
        try:
            signature, body, files = self._system.answer(message, afterwards.append)
        except Refused as refused:
            answer, files = Message.new_error(message, refused.name, str(refused)), []
        else:
            answer = Message(
                message_type=MessageType.METHOD_RETURN,
                reply_serial=message.serial,
                signature=signature,
                body=body,
                unix_fds=files,
                flags=MessageFlag.NONE,
            )
        self.send(answer, files)
        for each in afterwards:
            each()


@asynccontextmanager
async def system_bus(folder: Path, system: FakeSystem) -> AsyncIterator[str]:
    """The bus; its address."""
    path = folder / "bus"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    listener.setblocking(False)
    tasks: list[asyncio.Task[None]] = []

    async def serve(peer: socket.socket) -> None:
        connection = _Connection(system, peer)
        system.connections.append(connection)
        try:
            await connection.serve()
        except OSError:
            return
        finally:
            if connection in system.connections:
                system.connections.remove(connection)
            peer.close()

    async def accept() -> None:
        loop = asyncio.get_running_loop()
        while True:
            peer, _ = await loop.sock_accept(listener)
            peer.setblocking(False)
            if system.accepts:
                tasks.append(asyncio.create_task(serve(peer)))
            else:
                peer.close()

    tasks.append(asyncio.create_task(accept()))
    try:
        yield f"unix:path={path}"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        listener.close()
        system.cut()
        for _, end in system.inhibitors:
            os.close(end)


def _closed(end: int) -> bool:
    """Whether nobody has the other end of a pipe any more."""
    try:
        return os.read(end, 1) == b""
    except BlockingIOError:
        return False
