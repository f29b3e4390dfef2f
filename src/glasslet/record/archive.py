"""Reads the record from disk: pods of earlier runs, deleted pods, and the times in which no agent ran."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import Struct

from glasslet.api.pod_ref import PodRef
from glasslet.record.disk import Line, raw_lines, unpacked
from glasslet.record.events import Event, end_of, settled
from glasslet.record.history import AgentGap, PodRecord
from glasslet.record.lasting import lasting


class Archived(Struct, frozen=True, kw_only=True):
    """One pod's record on disk. `by_run`: events by agent run, in the order of the runs."""

    pod: PodRef | None
    by_run: dict[str, tuple[Event, ...]]
    gaps: tuple[AgentGap, ...] = ()
    shed: int = 0
    damaged: int = 0
    """Lines of the whole archive that could not be read."""

    def record(self) -> PodRecord:
        """The record as readers get it, without anything from memory."""
        events = [event for run in self.by_run.values() for event in run]
        return made_record(self.pod, events, self.gaps, dropped=self.shed)


class Archive:
    """The records folder. Methods block (a scan of all segments): call them off the event loop."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, uid: str) -> Archived | None:
        """One pod's events (`uid` "": the agent's own), None if there are none."""
        needle = json.dumps(uid, ensure_ascii=False).encode() if uid else b""
        pod: PodRef | None = None
        by_run: dict[str, list[Event]] = {}
        ends: dict[str, float] = {}
        last_run = ""
        gaps: list[AgentGap] = []
        shed = damaged = 0
        for raw in raw_lines(self.folder):
            if b'"events":' in raw and needle not in raw:
                continue
            line = unpacked(raw)
            if line is None:
                damaged += raw != b"\n"
                continue
            if line.started is not None:
                gaps += _gap(line)
                if line.before is not None and line.run != last_run:
                    ends[last_run] = line.before
                last_run = line.run
            elif (line.pod[-1] if line.pod else "") == uid:
                pod = line.ref()
                by_run.setdefault(line.run, []).extend(line.events)
                shed += line.shed
        if not by_run:
            return None
        frozen = {run: tuple(settled(events, ends.get(run))) for run, events in by_run.items()}
        return Archived(pod=pod, by_run=frozen, gaps=tuple(gaps), shed=shed, damaged=damaged)

    def earlier(self, run: str) -> dict[str, tuple[Event, ...]]:
        """What lasts of each pod from other runs than this, by uid (see `record.lasting`)."""
        found: dict[str, list[Event]] = {}
        for raw in raw_lines(self.folder):
            line = unpacked(raw) if b'"events":' in raw else None
            if line is not None and line.pod and line.run != run:
                found.setdefault(line.pod[-1], []).extend(line.events)
        every = {uid: lasting(sorted(events, key=lambda event: event.start)) for uid, events in found.items()}
        return {uid: events for uid, events in every.items() if events}

    def pods(self) -> list[PodRef]:
        """Every pod on disk, the one written to last at the end."""
        found: dict[PodRef, None] = {}
        for raw in raw_lines(self.folder):
            if b'"pod":' in raw and (line := unpacked(raw)) is not None and (ref := line.ref()) is not None:
                found.pop(ref, None)
                found[ref] = None
        return list(found)


def made_record(pod: PodRef | None, events: list[Event], gaps: tuple[AgentGap, ...], *, dropped: int = 0) -> PodRecord:
    """A record without open waits or stations, with the gaps that lie within it."""
    events = sorted(events, key=lambda event: event.start)
    first = events[0].start if events else 0.0
    last = max((end_of(event) for event in events), default=0.0)
    within = tuple(gap for gap in gaps if gap.end > first and gap.start < last)
    return PodRecord(pod=pod, events=tuple(events), gaps=within, dropped=dropped)


def _gap(line: Line) -> list[AgentGap]:
    if line.before is None or line.started is None or line.before >= line.started:
        return []
    return [AgentGap(line.before, line.started)]
