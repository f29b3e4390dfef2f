"""Ends pods for the node's sake, and waits until their resources are free."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.eviction.eviction_text import EvictionText
from glasslet.eviction.services import EndingPod, EvictablePods, EvictionReport
from glasslet.eviction.signals import Signal
from glasslet.exchange.facts import EVICTED, StatusOverride
from glasslet.record.recorder import working_for
from glasslet.record.stations import WaitKind

CLEAN_UP_LOOKS = 30
"""Looks, one a second, whether an evicted pod's volumes and cgroup are removed. Then the loop goes on."""
_LOOK_EVERY = 1.0
_LEAST_PATIENCE = 10.0
_WARNING = "Warning"

COUNTS_FOR = 120.0
"""Seconds for which what an evicted pod will free counts as on its way, where eviction waits for it."""


class _Coming(NamedTuple):
    signal: Signal
    amount: int
    since: float


class PodEnder:
    """Evicts pods. The order of events is upstream's: event, kill, wait."""

    def __init__(self, *, pods: EvictablePods, report: EvictionReport) -> None:
        self._pods = pods
        self._report = report
        self._evicting: dict[str, EndingPod] = {}
        self._coming: dict[str, _Coming] = {}

    def resists(self, pod: Pod) -> bool:
        """Whether the pod was evicted before and has not stopped: another one has to make room."""
        victim = self._evicting.get(pod.metadata.uid)
        return victim is not None and not victim.stopped.is_set()

    def still_to_come(self, signal: Signal) -> int:
        """What evicted pods that are not cleaned up yet will free of a signal; each counts for two minutes at most."""
        now = self._report.clock.monotonic()
        self._coming = {
            uid: one
            for uid, one in self._coming.items()
            if now - one.since < COUNTS_FOR and not self._pods.cleaned_up(PodUID(uid))
        }
        return sum(one.amount for one in self._coming.values() if one.signal is signal)

    def expect(self, victim: EndingPod, signal: Signal, amount: int) -> None:
        """The end of this pod will free so much."""
        self._coming[victim.ref.uid] = _Coming(signal, amount, self._report.clock.monotonic())

    def end(self, pod: Pod, text: EvictionText, *, grace: int, disrupts: bool) -> EndingPod | None:
        """Begins to stop the pod, which shows why. None if it has left meanwhile. `disrupts`: the pod gets the
        condition DisruptionTarget."""
        ref = pod_ref(pod)
        verdict = StatusOverride(
            phase="Failed", reason=EVICTED, message=text.message, disruption=text.message if disrupts else ""
        )
        self._report.pod_event(ref, _WARNING, EVICTED, text.message, annotations=text.annotations)
        victim = self._pods.evict(ref.uid, verdict, grace)
        if victim is not None:
            self._evicting[ref.uid] = victim
        return victim

    async def wait(self, victims: Sequence[EndingPod]) -> None:
        """Returns when all have stopped and are cleaned up, or had their time."""
        await asyncio.gather(*(self._stopped(victim) for victim in victims))
        await self.cleaned_up([victim.ref for victim in victims])
        self._evicting = {uid: one for uid, one in self._evicting.items() if not one.stopped.is_set()}

    async def cleaned_up(self, stopped: Sequence[PodRef]) -> None:
        """Returns when volumes and cgroups of these stopped pods are removed, or had their time."""
        until = self._report.clock.now() + timedelta(seconds=CLEAN_UP_LOOKS * _LOOK_EVERY)
        names = ", ".join(map(str, stopped))
        with self._report.recorder.wait(WaitKind.EXIT, on=f"clean-up of evicted {names}", until=until):
            for _ in range(CLEAN_UP_LOOKS):
                if all(self._pods.cleaned_up(ref.uid) for ref in stopped):
                    break
                await asyncio.sleep(_LOOK_EVERY)

    async def _stopped(self, victim: EndingPod) -> None:
        patience = max(_LEAST_PATIENCE, victim.grace * 1.5)
        until = self._report.clock.now() + timedelta(seconds=patience)
        try:
            with (
                working_for(victim.ref),
                self._report.recorder.wait(WaitKind.EXIT, on="end of the evicted pod", until=until),
            ):
                async with asyncio.timeout(patience):
                    await victim.stopped.wait()
        except TimeoutError:
            text = "Container runtime did not kill the pod within specified grace period."
            self._report.pod_event(victim.ref, _WARNING, "ExceededGracePeriod", text)
