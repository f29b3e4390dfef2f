"""A pod's start as a waterfall in which every millisecond has a name or is counted as nameless. Pure.

The window is the pod's latest life, from its first event to its first Ready (accepted by the API server, if there is
one). Without an observed Ready it ends when the last of the containers had started, or now if one is still starting.
Each instant belongs to one party, the first of runtime > API > the pod itself > waiting > held > no agent > glasslet
that was active; the remainder has no name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from glasslet.answers.pods import TimelineRow
from glasslet.answers.states import Milestone
from glasslet.answers.trace import Gap, Span, TraceAnswer, TraceRow, TraceWait
from glasslet.glass.trace.shares import owners_of, party_of
from glasslet.glass.trace.start_window import Window, created_at, find_window, first_true
from glasslet.glass.trace.timeline import moment, timeline
from glasslet.record.events import OK, Decided, Event, FindingMade, FindingWithdrawn, StationSpan, Waited
from glasslet.record.history import LiveWait, PodRecord
from glasslet.record.milestones import READY, READY_ACCEPTED
from glasslet.record.stations import Station, WaitKind

_DETAILS = 8
"""Details of a row that are listed."""
_LATER_ROWS = 2000
"""Events after the start that an answer has."""

_POD_ROWS: dict[str, str] = {
    Station.SEEN: "seen, merged, admitted",
    Station.MERGED: "seen, merged, admitted",
    Station.ADMITTED: "seen, merged, admitted",
    Station.WOKEN: "seen, merged, admitted",
    Station.PLANNED: "planned",
    Station.STATUS: "status accepted",
}
_WAIT_ROWS: dict[str, str] = {
    WaitKind.CRI_CALL: "runtime read",
    WaitKind.API_CALL: "API call",
    WaitKind.EXIT: "runs to its end",
    WaitKind.BACK_OFF: "back-off",
}
_AGENT_EVENTS = (Decided, FindingMade, FindingWithdrawn)
_ARRIVALS = frozenset((Station.SEEN, Station.MERGED, Station.WOKEN))
_CONTAINER_ROWS: dict[str, str] = {Station.CREATED: "create, start", Station.STARTED: "create, start"}


class _Piece(Struct, frozen=True):
    """A station, or a wait outside of any station."""

    name: str
    container: str
    start: float
    end: float
    detail: str = ""
    outcome: str = ""
    open: bool = False


def waterfall(record: PodRecord, *, now: float) -> TraceAnswer:
    """The trace of a pod at Unix time `now`. A record without events gives an empty trace."""
    events = latest_life(record.events) if record.pod is not None else _latest_run(record)
    window = find_window(record, events, now=now)
    pieces = _pieces(record, events, window, now=now)
    waits = _waits(record, events, window, now=now)
    owners = owners_of(((piece.start, piece.end) for piece in pieces), waits, record.gaps, window)
    later, left_out = _later(record, window)
    pod = record.pod
    return TraceAnswer(
        namespace=pod.namespace if pod else "",
        name=pod.name if pod else "agent",
        uid=pod.uid if pod else "",
        created=created_at(events),
        start=moment(window.start),
        end=moment(window.end),
        milestone=window.milestone,
        total_ms=_ms(window.end - window.start),
        unnamed_ms=owners.unnamed_ms,
        rows=_rows(pieces, waits, window),
        shares=owners.shares,
        ledger=owners.ledger,
        gaps=tuple(Gap(start=moment(gap.start), end=moment(gap.end)) for gap in record.gaps if gap.end > window.start),
        later=later,
        later_left_out=left_out,
        ended=record.ended,
        dropped=record.dropped,
    )


def _later(record: PodRecord, window: Window) -> tuple[tuple[TimelineRow, ...], int]:
    """The newest events after the start, and how many before those are left out. The agent's own record has no start
    window: its decisions and findings."""
    if record.pod is not None and window.milestone == Milestone.NOW:
        return (), 0
    begin = window.end
    if record.pod is None:
        begin = window.start
        kept = tuple(event for event in record.events if isinstance(event, _AGENT_EVENTS))
        record = replace(record, events=kept, gaps=())
    events = sum(event.start >= begin for event in record.events)
    return timeline(record, after=begin, limit=_LATER_ROWS), max(0, events - _LATER_ROWS)


def latest_life(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Events since the pod was last added (a static pod that was removed and comes back keeps its uid)."""
    begin, removed = 0, False
    for index, event in enumerate(events):
        if not isinstance(event, StationSpan):
            continue
        if event.station == Station.GONE:
            removed = True
        elif removed and event.station in _ARRIVALS:
            begin, removed = index, False
    return events[begin:]


def _latest_run(record: PodRecord) -> tuple[Event, ...]:
    """The agent's own events since its last start."""
    begin = max((gap.end for gap in record.gaps), default=0.0)
    return tuple(event for event in record.events if event.start >= begin)


def _pieces(record: PodRecord, events: Sequence[Event], window: Window, *, now: float) -> list[_Piece]:
    pieces = []
    for event in events:
        if isinstance(event, StationSpan) and event.start <= window.end:
            name = _row_name(event.station, event.container)
            pieces.append(_Piece(name, event.container, event.start, event.end, event.detail, event.outcome))
        elif isinstance(event, Waited) and not event.station and event.start < window.end:
            name, container = _wait_row(event.kind, event.container)
            pieces.append(_Piece(name, container, event.start, event.end, _about(event), event.outcome))
    for standing in record.stations:
        name = _row_name(standing.station, standing.container)
        pieces.append(_Piece(name, standing.container, standing.since, now, standing.detail, open=True))
    pieces += [
        _Piece(*_wait_row(wait.kind, wait.container), wait.since, now, _about(wait), open=True)
        for wait in record.waits
        if not wait.station
    ]
    pieces += _agent_starts(record, events)
    pieces += _milestones(events)
    return [piece for piece in pieces if piece.start <= window.end]


def _milestones(events: Sequence[Event]) -> Iterator[_Piece]:
    """Ready, as this agent saw it and as the API server accepted it. Without an API server: none."""
    accepted = first_true(events, READY_ACCEPTED)
    if accepted is None:
        return
    if (here := first_true(events, READY)) is not None:
        yield _Piece("Ready here", "", here, here)
    yield _Piece("Ready accepted at API", "", accepted, accepted)


def _agent_starts(record: PodRecord, events: Iterable[Event]) -> Iterator[_Piece]:
    """From the start of a new agent until it sees this pod; the parts of that time are in the agent's own record."""
    arrivals = sorted(e.start for e in events if isinstance(e, StationSpan) and e.station in _ARRIVALS)
    for gap in record.gaps:
        at = bisect_left(arrivals, gap.end)
        if at < len(arrivals):
            yield _Piece("agent starts", "", gap.end, arrivals[at])


def _waits(record: PodRecord, events: Iterable[Event], window: Window, *, now: float) -> list[Waited]:
    """The waits within the window."""
    ended = [event for event in events if isinstance(event, Waited) and event.start < window.end]
    live = [Waited(w.since, now, w.kind, w.on, w.container, w.station, "", w.until) for w in record.waits]
    return [*ended, *(wait for wait in live if wait.start < window.end)]


def _rows(pieces: list[_Piece], waits: list[Waited], window: Window) -> tuple[TraceRow, ...]:
    groups: dict[tuple[str, str], list[_Piece]] = {}
    for piece in sorted(pieces, key=lambda piece: piece.start):
        groups.setdefault((piece.name, piece.container), []).append(piece)
    spans = {key: _union([(p.start, min(p.end, window.end)) for p in group]) for key, group in groups.items()}
    inside: dict[tuple[str, str], list[Waited]] = {}
    for wait in waits:
        inside.setdefault(_row_of(wait), []).append(wait)
    return tuple(
        TraceRow(
            name=name,
            container=container,
            busy_ms=_ms(sum(end - start for start, end in spans[name, container])),
            spans=tuple(
                Span(start_ms=_ms(start - window.start), end_ms=_ms(end - window.start))
                for start, end in spans[name, container]
            ),
            detail=_detail(group),
            outcome=next((p.outcome for p in group if p.outcome not in (OK, "")), ""),
            beside=_beside((name, container), spans),
            waits=_row_waits(inside.get((name, container), ()), window),
            open=any(p.open for p in group),
        )
        for (name, container), group in groups.items()
    )


def _row_waits(waits: Iterable[Waited], window: Window) -> tuple[TraceWait, ...]:
    return tuple(
        TraceWait(
            kind=wait.kind,
            on=wait.on,
            who=party_of(wait.kind),
            start_ms=_ms(wait.start - window.start),
            end_ms=_ms(min(wait.end, window.end) - window.start),
            outcome=wait.outcome,
        )
        for wait in waits
    )


def _beside(key: tuple[str, str], spans: dict[tuple[str, str], list[tuple[float, float]]]) -> tuple[str, ...]:
    """Rows of other containers that overlap this one for at least a fifth of its time."""
    mine = spans[key]
    least = 0.2 * sum(end - start for start, end in mine)
    return tuple(
        " ".join(part for part in (container, name) if part)
        for (name, container), theirs in spans.items()
        if container and container != key[1] and _overlap(mine, theirs) > max(least, 0.001)
    )


def _overlap(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> float:
    """Of two unions: sorted, without overlaps of their own."""
    total, mine, theirs = 0.0, 0, 0
    while mine < len(one) and theirs < len(other):
        (start, end), (begin, until) = one[mine], other[theirs]
        total += max(0.0, min(end, until) - max(start, begin))
        if end < until:
            mine += 1
        else:
            theirs += 1
    return total


def _union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _detail(group: list[_Piece]) -> str:
    details = list(dict.fromkeys(piece.detail for piece in group if piece.detail))
    more = f" and {len(details) - _DETAILS} more" if len(details) > _DETAILS else ""
    return ", ".join(details[:_DETAILS]) + more


def _row_name(station: str, container: str) -> str:
    if container and station in _CONTAINER_ROWS:
        return _CONTAINER_ROWS[station]
    return _POD_ROWS.get(station, station)


def _wait_row(kind: str, container: str) -> tuple[str, str]:
    """Row of a wait outside of any station. All reads of the runtime are one row."""
    name = _WAIT_ROWS.get(kind, f"waiting: {kind.replace('_', ' ')}")
    return name, "" if kind == WaitKind.CRI_CALL else container


def _row_of(wait: Waited) -> tuple[str, str]:
    if wait.station:
        return _row_name(wait.station, wait.container), wait.container
    return _wait_row(wait.kind, wait.container)


def _about(wait: Waited | LiveWait) -> str:
    return "" if wait.kind == WaitKind.CRI_CALL else wait.on


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
