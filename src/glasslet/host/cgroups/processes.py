"""Kills the processes that are left in a cgroup, and no process that took over a dead one's id."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

_NOT_OURS_TO_KILL = frozenset((0, 1))
"""0 stands for a process that this PID namespace does not see, and as a target for our own group; 1 is init."""


def kill_processes(listed: Callable[[], set[int]]) -> tuple[int, ...]:
    """Kills every process that `listed` returns both before and after a handle on it was opened. Returns those that
    could not be killed. No process left is not yet an empty cgroup: the dead need a moment. Raises OSError if they
    cannot be listed."""
    handles: dict[int, int] = {}
    left = []
    try:
        for pid in listed() - {os.getpid()} - _NOT_OURS_TO_KILL:
            try:
                handles[pid] = os.pidfd_open(pid)
            except ProcessLookupError:
                # It ended meanwhile.
                continue
        still = listed()
        for pid, handle in handles.items():
            if pid not in still:
                continue
            try:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            except ProcessLookupError:
                # It ended meanwhile.
                continue
            except OSError:
                left.append(pid)
    finally:
        for handle in handles.values():
            os.close(handle)
    return tuple(sorted([*left, *(still & (_NOT_OURS_TO_KILL | {os.getpid()}))]))
