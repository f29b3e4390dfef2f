"""A bounded look at the processes of this machine: who uses a path, who listens on a port, what runs below a process.

Everything here reads /proc and may take some tenths of a second on a large machine: call it in a thread, and only when
a person asks. Processes come and go meanwhile; one that cannot be read is left out.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from glasslet.host.machine import boot_time

MOST_SECONDS: Final = 1.0
"""A look ends after this time with what was found so far."""
MOST_FOUND: Final = 8
_MOST_BYTES: Final = 32 * 1024
"""Of a command line, or of an environment."""
_LISTENS: Final = b"0A"
_OWN: Final = ("cwd", "root", "exe")


class HostProcess(Struct, frozen=True, kw_only=True):
    """One process. `began`: Unix seconds; `ticks`: the same since boot, which no change of the clock moves; `state`:
    the kernel's letter (`R`, `S`, `T` stopped, `D` waits in the kernel, `Z` ended); `command`: the words of its command
    line, none for a kernel thread."""

    pid: int
    parent: int
    name: str
    began: float
    ticks: int = 0
    state: str = ""
    command: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


def processes(proc: str = "/proc") -> dict[int, HostProcess]:
    """Every process, by number."""
    until = time.monotonic() + MOST_SECONDS
    boot = _booted(proc)
    found = {}
    for pid in _numbers(proc):
        if (process := _process(proc, pid, boot)) is not None:
            found[pid] = process
        if time.monotonic() > until:
            break
    return found


def process_of(pid: int, proc: str = "/proc") -> HostProcess | None:
    """The process of that number, if there is one."""
    return _process(proc, pid, _booted(proc))


def below(pid: int, every: Mapping[int, HostProcess]) -> list[HostProcess]:
    """The descendants of a process, the oldest first."""
    children: dict[int, list[HostProcess]] = {}
    for process in every.values():
        children.setdefault(process.parent, []).append(process)
    found: list[HostProcess] = []
    waiting, seen = [pid], {pid}
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in seen:
                seen.add(child.pid)
                found.append(child)
                waiting.append(child.pid)
    return sorted(found, key=lambda one: (one.began, one.pid))


def users_of(path: str, proc: str = "/proc") -> list[HostProcess]:
    """Processes with an open file, working directory, root or program at or below `path`: they keep a mount busy."""
    inside = path.rstrip("/") + "/"
    return _having(lambda target: target == path or target.startswith(inside), proc)


def listeners(port: int, proc: str = "/proc") -> list[HostProcess]:
    """Processes that listen on a TCP port, at any address."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port, proc)}
    return _having(lambda target: target in sockets, proc) if sockets else []


def socket_owner(path: str) -> int:
    """The process that made a Unix socket's listener; 0 if it cannot be found out. Connects to it, and never waits."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.setblocking(False)
        stream.connect(path)
        pid, _, _ = struct.unpack("3i", stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)
    return 0


def environment(pid: int, prefix: str, proc: str = "/proc") -> dict[str, str]:
    """The variables of a process whose names begin with `prefix`. Others are not kept: there may be secrets."""
    found = {}
    for entry in _read(f"{proc}/{pid}/environ").split(b"\0"):
        name, _, value = entry.decode(errors="replace").partition("=")
        if name.startswith(prefix):
            found[name] = value
    return found


def _having(fits: Callable[[str], bool], proc: str) -> list[HostProcess]:
    until = time.monotonic() + MOST_SECONDS
    boot = _booted(proc)
    found: list[HostProcess] = []
    for pid in _numbers(proc):
        if any(fits(target) for target in _targets(f"{proc}/{pid}")) and (process := _process(proc, pid, boot)):
            found.append(process)
        if len(found) == MOST_FOUND or time.monotonic() > until:
            break
    return found


def _targets(process: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in (*_OWN, *(f"fd/{entry}" for entry in os.listdir(f"{process}/fd"))):
            with contextlib.suppress(OSError):
                yield os.readlink(f"{process}/{name}")


def _listening(port: int, proc: str) -> set[str]:
    inodes = set()
    for table in ("tcp", "tcp6"):
        for line in _read(f"{proc}/net/{table}", most=8 * 1024 * 1024).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTENS and int(fields[1].rpartition(b":")[2], 16) == port:
                inodes.add(fields[9].decode())
    return inodes


def _process(proc: str, pid: int, boot: float) -> HostProcess | None:
    stat = _read(f"{proc}/{pid}/stat")
    head, _, rest = stat.rpartition(b")")
    fields = rest.split()
    if len(fields) < 20:
        return None
    words = _read(f"{proc}/{pid}/cmdline").rstrip(b"\0").split(b"\0")
    return HostProcess(
        pid=pid,
        parent=int(fields[1]),
        name=head.partition(b"(")[2].decode(errors="replace"),
        began=boot + int(fields[19]) / os.sysconf("SC_CLK_TCK"),
        ticks=int(fields[19]),
        state=fields[0].decode(),
        command=tuple(word.decode(errors="replace") for word in words if word),
    )


def _booted(proc: str) -> float:
    booted = boot_time(proc)
    return booted.timestamp() if booted is not None else 0.0


def _numbers(proc: str) -> Iterable[int]:
    try:
        return sorted(int(entry) for entry in os.listdir(proc) if entry.isdigit())
    except OSError:
        return ()


def _read(path: str, *, most: int = _MOST_BYTES) -> bytes:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(most)
    return b""
