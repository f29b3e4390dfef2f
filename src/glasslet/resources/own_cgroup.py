"""Keeps the agent and the machine's other processes in their cgroups (kubeletCgroups, systemCgroups), checked each
minute.

Nothing here stops a start: a failed move is logged and tried again.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial

from glasslet.host.cgroups.discovery import in_hosts_pid_namespace, is_kernel_thread, own_cgroup
from glasslet.host.cgroups.tree import CgroupTree
from glasslet.host.threads import Threads
from glasslet.record.stations import WaitKind
from glasslet.resources.layout import cgroupfs_path, parse_name

logger = logging.getLogger(__name__)

PERIOD = 60.0
"""Seconds between checks if processes have a cgroup to be in."""
OOM_PERIOD = 300.0
"""Seconds: oom.reapply."""
_ROUNDS = 10
_INIT = 1


class OwnCgroup:
    """`agent`: cgroup of this process, "" to leave it where it is. `system`: cgroup of all processes that are in the
    root cgroup, except init and kernel threads, "" to leave them. `set_oom_score` sets that of this process. Without a
    `tree` no process is moved. `on_host`: whether this process is outside of containers, whose runtime placed it."""

    def __init__(
        self,
        *,
        tree: CgroupTree | None,
        threads: Threads,
        set_oom_score: Callable[[], None],
        agent: str = "",
        system: str = "",
        on_host: Callable[[], bool] = in_hosts_pid_namespace,
    ) -> None:
        self._tree = tree
        self._on_host = on_host
        self._threads = threads
        self._set_oom_score = set_oom_score
        self._agent = cgroupfs_path(parse_name(agent)) if agent else ""
        self._system = cgroupfs_path(parse_name(system)) if system else ""

    async def run(self) -> None:
        """Keeps processes in place until cancelled."""
        while True:
            await self.keep()
            await asyncio.sleep(PERIOD if self._agent or self._system else OOM_PERIOD)

    async def keep(self) -> None:
        """One check."""
        self._set_oom_score()
        if self._tree is None:
            return
        for keep, place in ((_keep_system, self._system), (self._keep_agent, self._agent)):
            if not place:
                continue
            call = partial(keep, self._tree, place)
            try:
                await self._threads.run(call, on=f"processes into cgroup {place}", kind=WaitKind.CGROUP)
            except OSError as error:
                logger.warning("processes not in their cgroup", extra={"cgroup": place, "error": str(error)})

    def _keep_agent(self, tree: CgroupTree, place: str) -> None:
        if not self._on_host():
            return
        places = own_cgroup()
        controllers = ("cpu", "memory") if tree.version == 1 else ("",)
        if all(places.get(controller) == place for controller in controllers):
            return
        tree.create(place)
        tree.move(os.getpid(), place)


def _keep_system(tree: CgroupTree, place: str) -> None:
    """Moves in several rounds: processes fork while they are moved."""
    tree.create(place)
    problem: OSError | None = None
    for _ in range(_ROUNDS):
        pids = [pid for pid in tree.own_processes("/") if pid > _INIT and not is_kernel_thread(pid)]
        if not pids:
            return
        for pid in pids:
            try:
                tree.move(pid, place)
            except ProcessLookupError:
                continue  # it has ended
            except OSError as error:
                problem = error
    if problem is not None:
        raise problem
