"""Reads of pods, shared by their callers.

A caller needs at least the state at the time of its call: a read that began earlier may have missed its own change. So
at most one read of a pod is under way and at most one more is wanted after it; all callers since the first one began
share the second. The first of them does the read in its own task (so that the call is recorded as its own wait); when
that task is cancelled, the next one takes over.

Pods are independent of each other: a read that hangs holds only the callers for its own pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from glasslet.api.object import PodUID
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError


class _Slot:
    """The reads of one pod. Reads are numbered from 1; `ended` is the number of the newest one that came to an end."""

    __slots__ = ("askers", "began", "ended", "error", "under_way", "wanted")

    def __init__(self) -> None:
        self.askers = 0
        self.wanted = 0
        self.began = 0
        self.ended = 0
        self.error: RuntimeCallError | None = None
        self.under_way: asyncio.Future[None] | None = None


class PodReads:
    """Runs `read(uid)` so that every caller of `fresh` is answered by a read that began after the call."""

    def __init__(self, *, read: Callable[[PodUID], Awaitable[None]], recorder: Recorder) -> None:
        self._read = read
        self._recorder = recorder
        self._slots: dict[PodUID, _Slot] = {}

    def pending(self, uid: PodUID) -> bool:
        """Whether a caller waits for a read of this pod that has not begun yet."""
        slot = self._slots.get(uid)
        return slot is not None and slot.wanted > slot.began

    def under_way(self, uid: PodUID) -> bool:
        """Whether this pod is being read now."""
        slot = self._slots.get(uid)
        return slot is not None and slot.under_way is not None

    async def idle(self, uid: PodUID) -> None:
        """Waits until the read that is under way now, if any, has ended."""
        slot = self._slots.get(uid)
        if slot is not None and slot.under_way is not None:
            await asyncio.shield(slot.under_way)

    async def fresh(self, uid: PodUID) -> None:
        """Returns after a read that began after this call. Raises what that read raised."""
        slot = self._slots.setdefault(uid, _Slot())
        slot.askers += 1
        slot.wanted = wanted = slot.began + 1
        try:
            while slot.ended < wanted:
                if slot.under_way is None:
                    await self._lead(uid, slot)
                else:
                    with self._recorder.wait(WaitKind.CRI_CALL, on="a read of this pod that is under way"):
                        await asyncio.shield(slot.under_way)
            if slot.error is not None:
                raise slot.error
        finally:
            slot.askers -= 1
            if slot.askers == 0:
                self._slots.pop(uid, None)

    async def _lead(self, uid: PodUID, slot: _Slot) -> None:
        slot.under_way = asyncio.get_running_loop().create_future()
        try:
            # Callers of this same turn of the loop can share this read.
            await asyncio.sleep(0)
            slot.began += 1
            error: RuntimeCallError | None = None
            try:
                await self._read(uid)
            except RuntimeCallError as failed:
                error = failed
            slot.ended, slot.error = slot.began, error
        finally:
            slot.under_way.set_result(None)
            slot.under_way = None
