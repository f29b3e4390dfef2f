"""Writes the record to disk shortly after each event, off the event loop, and reads it back.

keeper = RecordKeeper(record=record, folder=<root-dir>/glasslet/records)
await keeper.run()               a service of the agent; on cancellation it writes once more and ends
await keeper.of(uid)             a pod's record: this run's from memory, earlier runs' from disk
await keeper.pods()              every pod that has a record, ended ones included
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.record.archive import Archive, Archived, made_record
from glasslet.record.disk import Line, NoSpace, Retention, SegmentWriter
from glasslet.record.events import Event, kept_name
from glasslet.record.history import PodRecord
from glasslet.record.standing import StandingFinding
from glasslet.record.store import Batch, Record


class Pace(Struct, frozen=True, kw_only=True):
    """Seconds from an event to its write (`write`), between signs of life and checks for open entries (`alive`), and
    from a failed write to the next try (`retry`)."""

    write: float = 0.25
    alive: float = 1.0
    retry: float = 30.0


class RecordKeeper:
    """The one writer of the records folder."""

    def __init__(
        self, *, record: Record, folder: Path, retention: Retention | None = None, pace: Pace | None = None
    ) -> None:
        self.record = record
        self.folder = folder
        self.pace = pace or Pace()
        self.run_id = f"{int(record.clock.now().timestamp() * 1000):x}-{os.getpid():x}"
        self._writer = SegmentWriter(folder=folder, run=self.run_id, retention=retention)
        self._opened = False
        self._shed = 0
        self._paused = ""
        """Why nothing is written now."""
        self._lost = 0
        """Events that an ended pause has cost, until they are reported."""
        self._pause = StandingFinding(record)
        self._writing = asyncio.Lock()
        self._one_writer = threading.Lock()
        self._threads = OwnThreads("record")
        self._readers = OwnThreads("record: reading", limit=2)
        self._earlier: Mapping[str, tuple[Event, ...]] | None = None
        self._retry_at = 0.0

    async def run(self) -> None:
        """Writes until cancelled, then once more."""
        loop = asyncio.get_running_loop()
        alive_at = 0.0
        unwritten = asyncio.Event()
        self.record.when_unwritten(unwritten.set)
        try:
            await self.flush()
            await self._threads.run(self._look_over)
            while True:
                await self._until_due(unwritten, within=alive_at - loop.time())
                await self.flush()
                if self._opened and loop.time() >= alive_at:
                    alive_at = loop.time() + self.pace.alive
                    self._writer.touch()
        finally:
            self._note(self._write(self.record.take_unwritten()))
            self._writer.touch()
            self._writer.close()

    async def _until_due(self, unwritten: asyncio.Event, *, within: float) -> None:
        """Waits for something to write, plus a moment for what follows, or until the next sign of life is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(within, self.pace.write)):
                await unwritten.wait()
        if unwritten.is_set():
            await asyncio.sleep(self.pace.write)
        unwritten.clear()

    async def flush(self) -> None:
        """Writes everything recorded so far, or drops it."""
        async with self._writing:
            batches = self.record.take_unwritten()
            if batches or not self._opened:
                self._note(await self._threads.run(self._write, batches))

    async def of(self, pod: PodRef | str | None) -> PodRecord | None:
        """A pod's whole record (`pod` None: the agent's own). None if there is none."""
        uid = pod.uid if isinstance(pod, PodRef) else pod or ""
        memory = self.record.of(uid)
        if memory is not None and memory.dropped:
            await self.flush()
        return await self._readers.run(self._read, uid, memory)

    async def pods(self) -> list[PodRef]:
        """Every pod with a record, the one written to last at the end."""
        archived = await self._readers.run(Archive(self.folder).pods)
        return list(dict.fromkeys([*archived, *self.record.pods()]))

    async def earlier(self) -> Mapping[str, tuple[Event, ...]]:
        """What lasts of each pod from earlier runs, by uid: read once, when first asked for."""
        if self._earlier is None:
            self._earlier = await self._readers.run(Archive(self.folder).earlier, self.run_id)
        return self._earlier

    def _read(self, uid: str, memory: PodRecord | None) -> PodRecord | None:
        """Blocks."""
        return self._joined(memory, Archive(self.folder).read(uid))

    def _joined(self, memory: PodRecord | None, archived: Archived | None) -> PodRecord | None:
        if archived is None or memory is None:
            return archived.record() if archived is not None else memory
        earlier = [event for run, events in archived.by_run.items() if run != self.run_id for event in events]
        written = archived.by_run.get(self.run_id, ())
        from_disk = bool(memory.dropped) and len(written) > len(memory.events)
        events = [*earlier, *(written if from_disk else memory.events)]
        joined = made_record(memory.pod, events, archived.gaps, dropped=archived.shed if from_disk else memory.dropped)
        return replace(
            joined, waits=memory.waits, stations=memory.stations, routine=memory.routine, holding=memory.holding
        )

    def _note(self, paused: str) -> None:
        if paused:
            self._pause.is_(paused)
        else:
            self._pause.over()
        if self._lost:
            lost, self._lost = self._lost, 0
            self.record.finding(f"the record on disk goes on after {lost} events were dropped")

    def _write(self, batches: list[Batch]) -> str:
        """Blocks; never raises; returns the reason of a pause, or "". A failed write costs these events and starts a
        pause. Locked, because a write whose caller was cancelled continues in its thread."""
        with self._one_writer:
            return self._write_alone(batches)

    def _write_alone(self, batches: list[Batch]) -> str:
        count = sum(len(batch.events) + batch.shed for batch in batches)
        now = self.record.clock.monotonic()
        if now < self._retry_at:
            self._shed += count
            return self._paused
        try:
            if not self._opened:
                self._writer.open(self.record.clock.now().timestamp())
                self._writer.trim()
                self._opened = True
            self._writer.write([self._line(batch) for batch in batches])
        except (OSError, NoSpace) as error:
            self._shed += max(1, count)
            self._retry_at = now + self.pace.retry
            self._paused = f"the record on disk pauses, newer history is kept in memory only: {error}"
            return self._paused
        self._lost, self._shed, self._paused = self._lost + self._shed, 0, ""
        return ""

    def _line(self, batch: Batch) -> Line:
        pod = tuple(map(kept_name, batch.pod)) if batch.pod is not None else ()
        return Line(run=self.run_id, pod=pod, events=tuple(batch.events), shed=batch.shed)

    def _look_over(self) -> None:
        """Reports once, at the start, the damaged lines of earlier runs."""
        archived = Archive(self.folder).read("")
        if archived is not None and archived.damaged:
            self.record.finding(
                f"{archived.damaged} damaged lines of the record at {self.folder} were skipped; the rest is read"
            )
