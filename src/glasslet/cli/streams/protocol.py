"""The streams of a command in a container, over any protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import IntEnum
from typing import Protocol

import msgspec

from glasslet.cli.failure import Failure


class Channel(IntEnum):
    """The numbers are those of the `*.channel.k8s.io` protocols."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    STATUS = 3
    RESIZE = 4


class Streams(Protocol):
    """An open session."""

    def received(self) -> AsyncIterator[tuple[Channel, bytes]]:
        """Received data, until the session ends."""

    async def send(self, channel: Channel, data: bytes) -> None:
        """Sends to standard input or to the resize channel."""

    async def end_input(self) -> bool:
        """Ends the command's standard input; False if this protocol cannot."""

    async def close(self) -> None:
        """Ends the session."""


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct, frozen=True):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""
    reason: str = ""
    details: _Details | None = None


def exit_code(status: bytes) -> int:
    """The command's exit code from the status that ends a session (meta/v1 Status). Raises Failure without one."""
    try:
        answer = msgspec.json.decode(status, type=_Status)
    except msgspec.MsgspecError:
        raise Failure(status.decode(errors="replace").strip() or "the session ended without a status") from None
    if answer.status == "Success":
        return 0
    causes = answer.details.causes if answer.details is not None else None
    for cause in causes or ():
        if cause.reason == "ExitCode" and cause.message.isdigit():
            return int(cause.message)
    raise Failure(answer.message or answer.reason or "the command did not run")


def size_message(columns: int, lines: int) -> bytes:
    """A terminal's size as a message of the resize channel."""
    return msgspec.json.encode({"Width": columns, "Height": lines})
