"""Processes that outlive a command: started in their own session, found again by pid and command line."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


def start(
    command: Sequence[str], *, pid_file: Path, log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Starts a process whose output goes to `log`; Ctrl-C of this terminal does not reach it."""
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - commands are our own; arguments are data
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    pid_file.write_text(f"{process.pid}\n")
    return process


def find(pid_file: Path, *, mark: str) -> int | None:
    """The pid in the file, if that process runs and `mark` is in its command line (pids are reused)."""
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return None
    return pid if mark in command_line(pid) else None


def command_line(pid: int) -> str:
    """The command line, "" if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def all_with(mark: str) -> list[int]:
    """Every other process with `mark` in its command line."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and mark in command_line(pid)]


def stop(pid: int, *, seconds: float) -> None:
    """Sends TERM, and KILL after `seconds`."""
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        until = time.monotonic() + patience
        while time.monotonic() < until:
            _reap(pid)
            if not command_line(pid):
                return
            time.sleep(0.02)


def last_lines(path: Path, count: int) -> str:
    """The end of a text file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 16_384))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-count:])
    except OSError:
        return ""


def _reap(pid: int) -> None:
    """Reaps an ended child of this process."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
