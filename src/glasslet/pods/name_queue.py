"""Static pods of one full name take turns: the new one begins when the old one is finished, the oldest waiter first."""

from __future__ import annotations

import asyncio
from collections import deque

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind


class NameQueue:
    """Who of the static pods of one name may run. API pods never wait."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lines: dict[tuple[str, str], deque[PodUID]] = {}
        self._moved = asyncio.Event()

    def enter(self, pod: Pod) -> None:
        """The pod wants to run; its place is behind those that came before."""
        if is_static(pod):
            line = self._lines.setdefault(_full_name(pod), deque())
            if pod.metadata.uid not in line:
                line.append(PodUID(pod.metadata.uid))

    def leave(self, pod: Pod) -> None:
        """The pod has ended, or never will begin."""
        line = self._lines.get(_full_name(pod))
        if line is None or pod.metadata.uid not in line:
            return
        line.remove(PodUID(pod.metadata.uid))
        if not line:
            del self._lines[_full_name(pod)]
        self._moved.set()
        self._moved = asyncio.Event()

    def predecessor(self, pod: Pod) -> PodUID | None:
        """Whose end the pod waits for; None: it is its turn."""
        line = self._lines.get(_full_name(pod))
        return line[0] if line and pod.metadata.uid in line and line[0] != pod.metadata.uid else None

    async def wait_for_turn(self, pod: Pod) -> None:
        """Returns when the pod may begin."""
        while (before := self.predecessor(pod)) is not None:
            with self._recorder.wait(WaitKind.QUEUE, on=f"end of the pod of the same name (uid {before})"):
                await self._moved.wait()


def _full_name(pod: Pod) -> tuple[str, str]:
    return (pod.metadata.namespace, pod.metadata.name)
