"""Giving a whole volume to the pod's fsGroup in a thread, however long it takes, with events while it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.host.threads import Threads
from glasslet.volumes.ownership import belongs_to_group, give_to_group
from glasslet.volumes.plugin import REMOTE, volume_key

FIRST_REPORT = 30.0
NEXT_REPORT = 60.0
"""Seconds until the first event, and between the others."""

_ANY_TIME = 7 * 24 * 3600.0
_ADVICE = (
    "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/"
    "#configure-volume-permission-and-ownership-change-policy-for-pods"
)

EmitEvent = Callable[[PodRef, str, str, str], None]
"""Emits an event: pod, type, reason, message."""


class GroupOwner:
    """Changes owners, as fsGroupChangePolicy says."""

    def __init__(self, *, threads: Threads, emit: EmitEvent) -> None:
        self._threads = threads
        self._emit = emit

    async def give(self, pod: Pod, name: str, path: str) -> None:
        """Gives the volume `name`, whose root is `path`, to the pod's fsGroup, if it has one. Raises OSError."""
        context = pod.spec.security_context
        group = context.fs_group if context is not None else None
        if context is None or group is None:
            return
        done = 0
        left = False

        def passed(count: int) -> None:
            nonlocal done
            done += count
            if left:
                raise _CallerLeft

        def work() -> None:
            if context.fs_group_change_policy != "OnRootMismatch" or not belongs_to_group(path, group):
                give_to_group(path, group, passed=passed)

        with _Reports(partial(self._report, pod, path), lambda: done):
            # No limit: a walk that starts again after each try would never end.
            on, key = f"volume {name}: set fsGroup", volume_key(pod.metadata.uid, name)
            try:
                await self._threads.run(work, on=on, key=key, within=_ANY_TIME, place=REMOTE)
            finally:
                # The walk of a pod that is deleted meanwhile ends soon: the removal of the volume waits for it.
                left = True

    def _report(self, pod: Pod, path: str, done: int | None) -> None:
        uid = pod.metadata.uid
        shown = path[max(path.find(uid), 0) :]
        text = (
            f"Setting volume ownership for {shown} is taking longer than expected, consider using OnRootMismatch - "
            f"{_ADVICE}"
            if done is None
            else f"Setting volume ownership for {shown}, processed {done} files."
        )
        self._emit(pod_ref(pod), "Warning", "VolumePermissionChangeInProgress", text)


class _CallerLeft(Exception):
    """Ends a walk without a caller."""


class _Reports:
    """Reports from time to time while its body runs: None first, then the count."""

    def __init__(self, report: Callable[[int | None], None], count: Callable[[], int]) -> None:
        self._report = report
        self._count = count

    def __enter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(FIRST_REPORT, self._next, True)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _next(self, first: bool) -> None:
        self._report(None if first else self._count())
        self._timer = asyncio.get_running_loop().call_later(NEXT_REPORT, self._next, False)
