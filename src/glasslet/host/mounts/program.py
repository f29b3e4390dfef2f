"""Mounting by mount(8), for file systems that need a helper program (nfs) and for disks.

All of this may hang on a sick device or server: call it from `HostThreads` only.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable, Sequence

from msgspec import Struct

PATIENCE = 115.0
"""Seconds until a program that does not end is killed: before its caller stops waiting."""

_LAST_MOMENTS = 5.0


class Ended(Struct, frozen=True):
    """How a program ended. `problem`: "" for success, else in upstream's words; `code` is None without an exit."""

    code: int | None
    output: str
    problem: str = ""


class MountFailed(OSError):
    """mount(8) failed. The text is upstream's, with the program's own words."""

    def __init__(self, problem: str) -> None:
        super().__init__(errno.EIO, problem)


def run_program(command: Sequence[str], *, within: float = PATIENCE) -> Ended:
    """Runs a program to its end; output and errors together. Raises nothing."""
    # Imported late: few nodes have such volumes.
    import subprocess

    try:
        process = subprocess.Popen(  # noqa: S603 - no shell, arguments stay apart
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except FileNotFoundError:
        return Ended(None, "", f'exec: "{command[0]}": executable file not found in $PATH')
    except OSError as error:
        return Ended(None, "", f"exec: {command[0]}: {error.strerror}")
    try:
        output, _ = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        process.kill()
        # A program that the kernel holds is reaped when another one is started after its end.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_LAST_MOMENTS)
        return Ended(None, "", f"no end within {within:g} s")
    text = output.decode("utf-8", "replace")
    code = process.returncode
    return Ended(code, text, "" if code == 0 else f"exit status {code}" if code > 0 else f"signal {-code}")


def mount_arguments(source: str, target: str, fs_type: str, options: Iterable[str]) -> tuple[str, ...]:
    """Arguments of mount(8)."""
    shown = ",".join(options)
    kind = ("-t", fs_type) if fs_type else ()
    return (*kind, *(("-o", shown) if shown else ()), source, target)


def mount_by_program(source: str, target: str, fs_type: str, options: Iterable[str]) -> None:
    """Mounts. Raises MountFailed, also where the helper of that file system is missing."""
    arguments = mount_arguments(source, target, fs_type, options)
    ended = run_program(("mount", *arguments))
    if ended.problem:
        raise MountFailed(
            f"mount failed: {ended.problem}\nMounting command: mount\nMounting arguments: {' '.join(arguments)}\n"
            f"Output: {ended.output}"
        )
