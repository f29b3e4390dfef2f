"""The kernel's own notices about memory: a file descriptor that becomes readable when there is news.

    UsageNotice    version 1: the use of a cgroup crossed an amount, in either direction (memory.usage_in_bytes with
                   cgroup.event_control)
    StallNotice    version 2 and the whole machine: tasks waited for memory (PSI trigger)
    EventsNotice   version 2: a counter of memory.events.local of a cgroup moved: it met its own limit. memory.events
                   would count those of all cgroups below, too: of each container that meets its own

A notice says that something happened and never how much is left: read the figures then. Sources: the kernel's
Documentation/admin-guide/cgroup-v1/memory.rst section 9, accounting/psi.rst and cgroup-v2.rst.
"""

from __future__ import annotations

import os
import select
from typing import Protocol

from glasslet.host.cgroups.tree import UNIFIED, CgroupTree
from glasslet.host.cgroups.v1 import CgroupV1

_STALL = "some 150000 2000000\0"
"""Microseconds of stall within a window. Windows of two seconds are those that need no privilege."""


class KernelNotice(Protocol):
    """News from the kernel."""

    def fileno(self) -> int:
        """Readable while there is news."""

    def take(self) -> None:
        """Takes the news away, so that the next can come."""

    def close(self) -> None:
        """Ends the subscription."""


class UsageNotice:
    """`folder`: of the cgroup in the tree of the memory controller; `amount`: bytes. The removal of the cgroup is news
    as well. Raises OSError."""

    def __init__(self, folder: str, amount: int) -> None:
        self._news = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            usage = os.open(f"{folder}/memory.usage_in_bytes", os.O_RDONLY | os.O_CLOEXEC)
            try:
                _write(f"{folder}/cgroup.event_control", f"{self._news} {usage} {amount}")
            finally:
                os.close(usage)
        except OSError:
            os.close(self._news)
            raise

    def fileno(self) -> int:
        """The eventfd."""
        return self._news

    def take(self) -> None:
        """Sets its counter to 0."""
        try:
            os.eventfd_read(self._news)
        except BlockingIOError:
            # Somebody was faster: there is no news any more.
            return

    def close(self) -> None:
        """The kernel forgets the amount with the descriptor."""
        os.close(self._news)


class _PriorityNotice:
    """News that comes as POLLPRI, which event loops do not watch: an epoll of its own makes it readable."""

    def __init__(self, path: str, flags: int) -> None:
        self._file = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._begin(self._file)
            self._epoll = select.epoll()
        except OSError:
            os.close(self._file)
            raise
        self._epoll.register(self._file, select.EPOLLPRI)

    def _begin(self, file: int) -> None:
        """The subscription itself."""

    def fileno(self) -> int:
        """The epoll."""
        return self._epoll.fileno()

    def take(self) -> None:
        """Until the file is read, its news stays."""
        self._epoll.poll(0)
        os.pread(self._file, 4096, 0)

    def close(self) -> None:
        """The kernel forgets the subscription with the descriptor."""
        self._epoll.close()
        os.close(self._file)


class StallNotice(_PriorityNotice):
    """`path`: /proc/pressure/memory, or the file memory.pressure of a cgroup. Raises OSError, also on kernels without
    pressure figures."""

    def __init__(self, path: str) -> None:
        super().__init__(path, os.O_RDWR)

    def _begin(self, file: int) -> None:
        os.write(file, _STALL.encode())


class EventsNotice(_PriorityNotice):
    """`path`: the file memory.events.local of a cgroup, or another one that the kernel signals. Raises OSError."""

    def __init__(self, path: str) -> None:
        super().__init__(path, os.O_RDONLY)

    def _begin(self, file: int) -> None:
        os.read(file, 4096)


def memory_notices(tree: CgroupTree, *, pods: str, amount: int, of_pods: bool) -> list[KernelNotice]:
    """Subscriptions to the memory of the whole machine, or (`of_pods`) of the cgroup of all pods, `pods`. Version 2 has
    no notice of an amount: stalls and met limits stand for it. Raises OSError."""
    group = pods if of_pods else ""
    if isinstance(tree, CgroupV1):
        return [UsageNotice(tree.mounts["memory"] + group, amount)]
    if not group:
        return [StallNotice("/proc/pressure/memory")]
    return [EventsNotice(f"{UNIFIED}{group}/memory.events.local")]


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)
