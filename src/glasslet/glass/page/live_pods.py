"""The pods as the page's table shows them, kept current.

Only what changed is computed again. A pod that is fine and about which nothing new was recorded costs a comparison.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from glasslet.answers.live import PodStart
from glasslet.answers.pods import PodRow
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.glass.handlers import GlassHandlers, is_ready
from glasslet.glass.page.live import Values
from glasslet.glass.source import GlassSource, SeenPod
from glasslet.record.history import PodRecord
from glasslet.record.stations import WaitKind
from glasslet.record.store import Record

TICK = 0.5
_OLD = 1.0
_AGAIN_AT_ONCE = 5
"""Unchanged pods that are read again in one turn: on a node where all pods fail, the page must not take a core."""
_STARTS_AT_ONCE = 4


class _Known(Struct, frozen=True):
    """A pod as it was read last."""

    pod: Pod
    status: PodStatus
    mark: tuple[object, ...]
    at: float
    row: PodRow
    fields: dict[str, object]


class LivePods:
    """The rows of all pods, by uid. Shared by all views."""

    def __init__(self, *, glass: GlassHandlers, source: GlassSource, record: Record) -> None:
        self._glass = glass
        self._source = source
        self._record = record
        self._known: dict[str, _Known] = {}
        self._starts: dict[str, PodStart] = {}
        self._read_at = -TICK
        self._lock = asyncio.Lock()
        self._values: Values = {}

    async def read(self) -> Values:
        """The rows now. Views that read at the same time share one reading."""
        now = self._record.now()
        async with self._lock:
            if now - self._read_at >= TICK / 2:
                self._read_at = now
                await self._read(now)
        return self._values

    async def _read(self, now: float) -> None:
        earlier = await self._glass.earlier()
        agent, standings = self._source.agent(), self._record.standings()
        every = self._source.pods()
        known: dict[str, _Known] = {}
        again = self._due(now - _OLD)
        for seen in every:
            uid, mark = seen.pod.metadata.uid, self._mark(seen, standings, (agent.runtime_error, agent.network_error))
            old = self._known.get(uid)
            if old is not None and uid not in again and _is_the_same(old, seen, mark):
                known[uid] = old
                continue
            row = self._glass.row(seen, standings, agent, earlier)
            known[uid] = _Known(seen.pod, seen.status, mark, now, row, self._fields(seen, row))
            # A millisecond or two for a pod with a long history: other work has its turn in between.
            await asyncio.sleep(0)
        self._known = known
        self._values = {uid: one.fields for uid, one in known.items()}
        await self._learn_starts(every)

    def _due(self, too_old: float) -> set[str]:
        """Pods to read again although nothing was recorded: the text of a row that is not fine has durations."""
        old = [(one.at, uid) for uid, one in self._known.items() if one.at < too_old and one.row.now]
        return {uid for _, uid in sorted(old)[:_AGAIN_AT_ONCE]}

    def mark(self, seen: SeenPod) -> tuple[object, ...]:
        """Changes whenever something new is known about the pod, its probes left out."""
        return self._mark(seen, {pod_ref(seen.pod): self._record.standing_of(pod_ref(seen.pod))}, ())

    def _mark(
        self, seen: SeenPod, standings: Mapping[PodRef | None, PodRecord], around: tuple[str, ...]
    ) -> tuple[object, ...]:
        ref = pod_ref(seen.pod)
        standing = standings.get(ref)
        waits = standing.waits if standing is not None else ()
        going = tuple((wait.kind, wait.on, round(wait.since, 2)) for wait in waits if wait.kind != WaitKind.PROBE)
        stations = tuple(at.station for at in standing.stations) if standing is not None else ()
        stuck = self._source.stuck(ref.uid)
        return self._record.revision(ref), seen.lifecycle, going, stations, stuck, *around

    def _fields(self, seen: SeenPod, row: PodRow) -> dict[str, object]:
        spec = seen.pod.spec
        images = tuple(dict.fromkeys(container.image for container in (*spec.init_containers, *spec.containers)))
        fields: dict[str, object] = to_builtins(row)
        start = self._starts.get(row.uid)
        fields |= {"images": images, "start": to_builtins(start) if start is not None else None}
        return fields

    async def _learn_starts(self, every: Sequence[SeenPod]) -> None:
        """Computes how some more pods started, a few at a time."""
        alive = {seen.pod.metadata.uid for seen in every}
        self._starts = {uid: start for uid, start in self._starts.items() if uid in alive}
        missing = [seen for seen in every if seen.pod.metadata.uid not in self._starts and is_ready(seen)]
        for seen in missing[:_STARTS_AT_ONCE]:
            ref = pod_ref(seen.pod)
            trace = await self._glass.trace_of(str(ref))
            if trace.uid != ref.uid:
                continue
            start = PodStart(
                total_ms=trace.total_ms, milestone=trace.milestone, shares=trace.shares, unnamed_ms=trace.unnamed_ms
            )
            self._starts[ref.uid] = start
            if (known := self._known.get(ref.uid)) is not None:
                # A new dict: the old one is what pages were sent.
                fields = {**known.fields, "start": to_builtins(start)}
                self._known[ref.uid] = replace(known, fields=fields)
                self._values = {**self._values, ref.uid: fields}


def _is_the_same(old: _Known, seen: SeenPod, mark: tuple[object, ...]) -> bool:
    return old.pod is seen.pod and old.status is seen.status and old.mark == mark
