"""Kills what is left in a cgroup: exactly what is there, nothing that took over a dead process's id."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

_NOT_OURS_TO_KILL = frozenset((0, 1))
"""0 stands for a process that this PID namespace does not see, and as a target for our own group; 1 is init."""


def kill_processes(listed: Callable[[], set[int]]) -> tuple[int, ...]:
    """Kills every process that `listed` tells, both before and after a handle on it was taken. Those that could not be
    killed; empty is not yet an empty cgroup: the dead need a moment. Raises OSError if they cannot be listed."""
    handles: dict[int, int] = {}
    left = []
    try:
        for pid in listed() - {os.getpid()} - _NOT_OURS_TO_KILL:
            try:
                handles[pid] = os.pidfd_open(pid)
            except ProcessLookupError:
                # It ended by itself.
                continue
        still = listed()
        for pid, handle in handles.items():
            if pid not in still:
                continue
            try:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            except ProcessLookupError:
                # It ended by itself.
                continue
            except OSError:
                left.append(pid)
    finally:
        for handle in handles.values():
            os.close(handle)
    return tuple(sorted([*left, *(still & (_NOT_OURS_TO_KILL | {os.getpid()}))]))
