"""A look at the machine for one answer to `why`: processes below a runtime call, those that hold a pod's mounts, and
disks without inodes.

Only for a pod that a call, an unmount or a full disk keeps waiting, and only when a person asks. Blocking: call it in
a thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec.structs import replace

from glasslet.answers.states import WorkerState
from glasslet.answers.words import duration
from glasslet.glass.verdicts.situation import Situation
from glasslet.host.machine import out_of_inodes
from glasslet.host.processes import HostProcess, below, environment, processes, socket_owner, users_of
from glasslet.record.stations import Station, WaitKind

LEAST_SECONDS: Final = 1.0
"""A call that is younger is no reason to look."""
_UNIX: Final = "unix://"
_RUNTIMES: Final = ("runc", "crun")
_SHOWN: Final = 120
_NO_SPACE: Final = re.compile(r"no space left on device", re.IGNORECASE)
_PATH: Final = re.compile(r"/[^\s:'\"\],()]+")
_MOST_PATHS: Final = 16

HostLook = Callable[[Situation], Situation]
"""Adds to a situation what the machine shows of it."""


def no_look(it: Situation) -> Situation:
    """Sees nothing."""
    return it


class MachineLook:
    """`endpoint`: the runtime's; `volumes`: the folder of a pod's volumes, by uid."""

    def __init__(self, *, endpoint: str, volumes: Callable[[str], str]) -> None:
        self._endpoint = endpoint
        self._volumes = volumes

    def __call__(self, it: Situation) -> Situation:
        """The situation with the processes that keep it waiting, or the disk that has no inode left."""
        if full := _without_inodes(_complaints(it)):
            return replace(it, without_inodes=full)
        now = it.now.timestamp()
        call = it.wait(WaitKind.CRI_CALL)
        if call is not None and now - call.since >= LEAST_SECONDS:
            return replace(it, beneath=self._below_call(it, call.since))
        if it.lifecycle == WorkerState.TERMINATED or it.failures(Station.VOLUMES):
            users = users_of(self._volumes(it.pod.metadata.uid))
            return replace(it, holders=tuple(str(process) for process in users))
        return it

    def _below_call(self, it: Situation, since: float) -> tuple[str, ...]:
        if not self._endpoint.startswith(_UNIX):
            return ()
        every = processes()
        inside = below(socket_owner(self._endpoint.removeprefix(_UNIX)), every)
        meta = it.pod.metadata
        mine = f"K8S_POD_NAMESPACE={meta.namespace};K8S_POD_NAME={meta.name};"
        plugins, others = [], []
        for process in inside:
            known = environment(process.pid, "CNI_")
            if command := known.get("CNI_COMMAND"):
                if mine in known.get("CNI_ARGS", "") + ";":
                    plugins.append(_plugin(process, command, it.now))
            elif process.name in _RUNTIMES and process.began >= since - LEAST_SECONDS:
                others.append(_runs(process, it.now))
        # A plugin's own children have its environment: the oldest is the plugin.
        return (*plugins[:1], *others)


def _complaints(it: Situation) -> Iterator[str]:
    """The texts about the pod that say that no space is left on a disk."""
    waiting = (status.state.waiting.message for status, _ in it.statuses() if status.state.waiting is not None)
    texts = [*waiting, *(wait.on for wait in it.record.waits)]
    for station in (Station.CGROUP, Station.VOLUMES, Station.SANDBOX, Station.IMAGE, Station.CREATED, Station.STARTED):
        texts += [span.detail for span in it.failures(station)[-1:]]
    return (text for text in texts if _NO_SPACE.search(text))


def _without_inodes(complaints: Iterable[str]) -> str:
    """The first folder that these texts name on a file system that has bytes but no inode left; "" if there is none:
    the kernel says "no space left on device" of both."""
    named = (path for text in complaints for path in _PATH.findall(text))
    return next((place for path in islice(named, _MOST_PATHS) if (place := out_of_inodes(path))), "")


def _plugin(process: HostProcess, command: str, now: datetime) -> str:
    # A script shows as its interpreter, and its path is the second word.
    words = [word for word in process.command if word.startswith("/")]
    name = words[-1].rpartition("/")[2] if words else process.name
    return (
        f"network plugin {name} (pid {process.pid}) has run {command} for {duration(now.timestamp() - process.began)}"
    )


def _runs(process: HostProcess, now: datetime) -> str:
    took = duration(now.timestamp() - process.began)
    return f"{' '.join(process.command)[:_SHOWN] or process.name} (pid {process.pid}) has run for {took}"
