"""The eviction loop: reads figures, makes room, and ends one pod at a time while a threshold is crossed.

Every decision uses figures read after the last eviction. Missing figures silence only the thresholds that need them,
and are a finding.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.eviction.decision import MOST_PAUSE, assess, is_crossed, next_look, relieved
from glasslet.eviction.ending import PodEnder
from glasslet.eviction.eviction_text import EvictionText, eviction_text
from glasslet.eviction.explanation import arithmetic
from glasslet.eviction.local_limits import limit_exceeded
from glasslet.eviction.ranking import Ranked, rank
from glasslet.eviction.reading import NodeReader, Reading
from glasslet.eviction.reclaiming import reclaim_disk
from glasslet.eviction.services import EndingPod, EvictablePods, EvictionReport, EvictionSettings, Reclaim, WatchedNode
from glasslet.eviction.signals import Signal, what_is_on_disk_of
from glasslet.eviction.thresholds import Threshold
from glasslet.podspec.qos import is_critical
from glasslet.record.recorder import working_for
from glasslet.stats.pages.summary import StatsUnavailable

logger = logging.getLogger(__name__)

_HARD_GRACE = 1
_SHOWN = 10
"""Pods of a ranking in one entry of the record; further entries hold the rest."""
_BLIND = "eviction has no figures, so no pod is evicted: "
_BLIND_SIGNAL = "eviction has no figures of {}: its threshold is not checked"


class EvictionManager:
    """One loop per node. `run` is a service; the other methods are its steps."""

    def __init__(
        self,
        *,
        node: WatchedNode,
        pods: EvictablePods,
        reclaim: Reclaim,
        settings: EvictionSettings,
        report: EvictionReport,
    ) -> None:
        self._reader = NodeReader(figures=node.figures, pods=pods, thresholds=settings.thresholds)
        self._pods = pods
        self._ender = PodEnder(pods=pods, report=report)
        self._reclaim = reclaim
        self._pressures = node.pressures
        self._notices = node.notices
        self._settings = settings
        self._report = report
        self._recorder = report.recorder
        self._clock = report.clock
        self._findings: frozenset[str] = frozenset()
        self._pause = MOST_PAUSE
        self._limits_at = 0.0
        self._waited_for_others = False

    async def run(self) -> None:
        """Until cancelled. Nothing is to do without thresholds and limits."""
        if not self._settings.thresholds and not self._settings.local_limits:
            return
        try:
            while True:
                victims = await self.round()
                if victims:
                    await self._ender.wait(victims)
                else:
                    await self._notices.wait(self._pause)
        finally:
            self._notices.close()

    async def round(self) -> list[EndingPod]:
        """Reads, decides, acts. The pods that are being evicted."""
        node = await self._read(self._reader.read_node)
        if node is None:
            return []
        assessment = assess(
            self._pressures.memory(),
            node.thresholds,
            node.observations,
            now=node.taken,
            transition=self._settings.transition,
        )
        self._pressures.update(node, assessment)
        self._notices.renew(node)
        self._pause = next_look(node.thresholds, node.observations)
        limits = self._settings.local_limits and self._limits_are_due(node.taken)
        if not assessment.due and not limits:
            return []
        reading = await self._read(partial(self._reader.read_pods, node))
        if reading is None:
            return []
        if limits and (victims := self._enforce_limits(reading)):
            return victims
        return await self._relieve(assessment.due, reading) if assessment.due else []

    def _limits_are_due(self, now: float) -> bool:
        """Every 10 s, while some pod has a limit."""
        if now < self._limits_at or not self._reader.any_limited():
            return False
        self._limits_at = now + MOST_PAUSE
        return True

    async def _read(self, read: Callable[[float], Awaitable[Reading]]) -> Reading | None:
        try:
            reading = await read(self._clock.monotonic())
        except StatsUnavailable as error:
            logger.warning("Eviction manager: failed to get summary stats", extra={"error": str(error)})
            self._find({f"{_BLIND}{error}"})
            return None
        self._find(
            {_BLIND_SIGNAL.format(signal) for signal in reading.blind() if signal is not Signal.ALLOCATABLE_MEMORY}
        )
        return reading

    def _find(self, findings: Iterable[str]) -> None:
        now = frozenset(findings)
        for text in now - self._findings:
            self._recorder.finding(text)
        for text in self._findings - now:
            self._recorder.withdrawn(text)
        self._findings = now

    def _enforce_limits(self, reading: Reading) -> list[EndingPod]:
        """Every pod that is above a limit of its own."""
        victims = []
        for one in reading.candidates:
            if one.stats is None or is_critical(one.pod) or self._ender.resists(one.pod):
                continue
            found = limit_exceeded(one.pod, one.stats, layers_apart=reading.layout.layers_apart)
            if found is None:
                continue
            with working_for(pod_ref(one.pod)):
                self._recorder.decided("evict", signal=found.signal, used=found.used, limit=found.limit)
            text = EvictionText(message=found.message)
            if (victim := self._ender.end(one.pod, text, grace=_HARD_GRACE, disrupts=False)) is not None:
                self._report.metrics.evicted(found.signal)
                victims.append(victim)
        return victims

    async def _relieve(self, due: tuple[Threshold, ...], reading: Reading) -> list[EndingPod]:
        """Makes room for the most urgent threshold."""
        first = due[0]
        resource = first.signal.resource
        logger.warning("Eviction manager: attempting to reclaim", extra={"resource": resource})
        self._report.node_event("Warning", "EvictionThresholdMet", f"Attempting to reclaim {resource}")
        self._decided_to_relieve(first, reading)
        if garbage := what_is_on_disk_of(first.signal, reading.layout).garbage:
            await reclaim_disk(self._reclaim, garbage, self._recorder)
            fresh = await self._read(partial(self._reader.read_pods, reading))
            if fresh is None:
                return []
            if relieved(fresh.thresholds, fresh.observations):
                logger.info("Eviction manager: able to reduce resource pressure without evicting pods.")
                return []
            reading = fresh
        if await self._waited_for_earlier():
            return []
        if self._settings.waits and self._enough_is_coming(first, reading):
            return []
        ranked = rank(reading.candidates, first.signal, reading.layout)
        for one in due:
            self._report.metrics.decided(one.signal, self._clock.monotonic() - reading.taken)
        return self._evict_one(first, ranked, reading)

    async def _waited_for_earlier(self) -> bool:
        """Once in an agent's life, before its first eviction: an earlier agent may have evicted a pod and died. What is
        still being cleaned up has its time, then the node is read again."""
        if self._waited_for_others:
            return False
        self._waited_for_others = True
        earlier = [pod_ref(pod) for pod in self._pods.in_clean_up()]
        if earlier:
            await self._ender.cleaned_up(earlier)
        return bool(earlier)

    def _enough_is_coming(self, crossed: Threshold, reading: Reading) -> bool:
        """Whether the pods that were evicted before will free as much as is missing."""
        coming, seen = self._ender.still_to_come(crossed.signal), reading.observations.get(crossed.signal)
        if seen is None or not coming or seen.available + coming < crossed.wanted(seen.capacity).value():
            return False
        self._recorder.decided("wait for evicted pods", signal=crossed.signal, available=seen.available, coming=coming)
        return True

    def _evict_one(self, crossed: Threshold, ranked: list[Ranked], reading: Reading) -> list[EndingPod]:
        for place, one in enumerate(ranked):
            if one.critical or self._ender.resists(one.pod):
                continue
            self._decided_to_evict(crossed, ranked, place, reading)
            text = eviction_text(one, crossed, reading.observations.get(crossed.signal))
            victim = self._ender.end(one.pod, text, grace=self._grace(crossed, one.pod), disrupts=True)
            if victim is not None:
                self._report.metrics.evicted(crossed.signal)
                self._ender.expect(victim, crossed.signal, one.usage or 0)
                return [victim]
        logger.warning("Eviction manager: unable to evict any pods from the node")
        return []

    def _grace(self, crossed: Threshold, pod: Pod) -> int:
        """Seconds. Hard thresholds leave no time."""
        if crossed.hard:
            return _HARD_GRACE
        own = pod.spec.termination_grace_period_seconds
        longest = self._settings.max_grace
        return min(longest, own) if self._settings.own_grace and own is not None else longest

    # -- the record --------------------------------------------------------------------------------------------------

    def _decided_to_relieve(self, crossed: Threshold, reading: Reading) -> None:
        seen = reading.observations.get(crossed.signal)
        self._recorder.decided(
            "relieve the node",
            signal=crossed.signal,
            below=crossed.amount,
            minimum_reclaim=crossed.minimum_reclaim,
            available=seen.available if seen is not None else "unknown",
            capacity=seen.capacity if seen is not None else "unknown",
            still_wanted_reclaim=not is_crossed(crossed, reading.observations),
        )

    def _decided_to_evict(self, crossed: Threshold, ranked: list[Ranked], place: int, reading: Reading) -> None:
        """The whole decision, so that it can be made again from the record: figures, thresholds, and all pods."""
        one = ranked[place]
        seen = reading.observations.get(crossed.signal)
        figures: dict[str, Any] = {
            "signal": crossed.signal,
            "threshold": f"{'hard' if crossed.hard else 'soft'}, below {crossed.amount}",
            "how": arithmetic(seen) if seen is not None else "unknown",
        }
        with working_for(pod_ref(one.pod)):
            self._recorder.decided(
                "evict",
                **figures,
                usage=one.usage if one.usage is not None else "unknown",
                request=one.request,
                priority=one.priority,
                grace=self._grace(crossed, one.pod),
                place=place + 1,
                among=len(ranked),
            )
        others = [f"{signal}={other.available}/{other.capacity}" for signal, other in reading.observations.items()]
        self._recorder.decided("evict", pod=str(pod_ref(one.pod)), **figures, signals=others)
        words = (_in_words(each, resists=self._ender.resists(each.pod)) for each in ranked)
        order = ((str(at), text) for at, text in enumerate(words, 1))
        while part := dict[str, Any](islice(order, _SHOWN)):
            self._recorder.decided(f"order of {len(ranked)} pods", **part)


def _in_words(one: Ranked, *, resists: bool) -> str:
    stays = ", critical: stays" if one.critical else ", evicted before: passed over" if resists else ""
    usage = one.usage if one.usage is not None else "unknown"
    return f"{pod_ref(one.pod)} (uses {usage}, requests {one.request}, priority {one.priority}{stays})"
