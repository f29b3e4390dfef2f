"""A note on disk about the agent's last start, for the time when no agent answers: `<root-dir>/glasslet/start.json`.

    notes = StartNotes(root_dir)       # of this process
    notes.waiting("waiting for the container runtime at /run/x.sock")
    notes.up() / notes.refused([...]) / notes.ended()

    read_note(root_dir), is_alive(note)

A note helps people only. Nothing fails because it cannot be written, and no behaviour depends on it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from glasslet.host.files.small_files import read_regular

STARTING: Final = "starting"
UP: Final = "up"
REFUSED: Final = "refused"
ENDED: Final = "ended"
_FILE: Final = "glasslet/start.json"
_MOST_BYTES: Final = 256 * 1024
_PROBLEMS: Final = 100
_TEXT: Final = 2000
"""Characters of one problem."""


class NotedProblem(Struct, frozen=True):
    """One problem of a start, with the flag or file that it comes from ("" if unknown)."""

    text: str
    origin: str = ""


class StartNote(Struct, frozen=True, kw_only=True):
    """The last start. `state`: starting, up, refused, ended. `since`: when that began (Unix seconds); `reason`: what a
    start waits for; `ticks`: when the process began, in the kernel's unit, since process numbers are used again."""

    pid: int
    ticks: int
    state: str
    started: float
    since: float
    node: str = ""
    reason: str = ""
    problems: tuple[NotedProblem, ...] = ()


class StartNotes:
    """The writer of the note of this process."""

    def __init__(self, root_dir: str, *, node: str = "") -> None:
        self._root = os.path.abspath(root_dir)
        self._written = False
        now = time.time()
        pid = os.getpid()
        self._note = StartNote(pid=pid, ticks=start_ticks(pid), state=STARTING, started=now, since=now, node=node)

    def waiting(self, reason: str) -> None:
        """The start waits for this."""
        self._write(state=STARTING, reason=reason)

    def up(self) -> None:
        """The start is over, the agent runs."""
        self._write(state=UP, reason="")

    def changed(self, reason: str | None) -> None:
        """The start waits for `reason`; None: it is over."""
        self.up() if reason is None else self.waiting(reason)

    def ended(self) -> None:
        """The agent ends on purpose."""
        self._write(state=ENDED, reason="")

    def refused(self, problems: Sequence[tuple[str, str]]) -> None:
        """The start, or the agent, ends with these problems: (text, origin)."""
        noted = tuple(NotedProblem(text[:_TEXT], origin) for text, origin in problems[:_PROBLEMS])
        self._write(state=REFUSED, problems=noted)

    def _write(self, **changed: object) -> None:
        if self._written and (changed.get("state"), changed.get("reason")) == (self._note.state, self._note.reason):
            return
        self._written = True
        self._note = replace(self._note, since=time.time(), **changed)
        # The root directory itself is made by an agent whose configuration is good.
        with contextlib.suppress(OSError):
            other = read_note(self._root)
            if other is not None and other.pid != self._note.pid and other.state in (STARTING, UP) and is_alive(other):
                return
            path = os.path.join(self._root, _FILE)
            with contextlib.suppress(FileExistsError):
                os.mkdir(os.path.dirname(path), 0o750)
            _put(path, msgspec.json.encode(self._note))


def _put(path: str, data: bytes) -> None:
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "wb", opener=_private) as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        # A full disk still has the room of the note before.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        with open(path, "r+b", buffering=0, opener=_private) as file:
            file.write(data)
            file.truncate()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def read_note(root_dir: str) -> StartNote | None:
    """The note of the last start, None without a readable one."""
    try:
        return msgspec.json.decode(read_regular(os.path.join(root_dir, _FILE), most=_MOST_BYTES), type=StartNote)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def is_alive(note: StartNote) -> bool:
    """Whether the process that wrote the note still runs."""
    return note.ticks > 0 and start_ticks(note.pid) == note.ticks


def start_ticks(pid: int) -> int:
    """When a process began, in clock ticks since boot; 0 if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name is in parentheses and may hold anything.
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0
