"""The answers to `trace` and about records: one pod's start in milliseconds."""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.pods import TimelineRow
from glasslet.answers.states import Milestone
from glasslet.answers.wire import WireMessage


class Span(WireMessage, frozen=True, kw_only=True):
    """A stretch of time, in milliseconds from the trace's `start`."""

    start_ms: float
    end_ms: float


class TraceWait(WireMessage, frozen=True, kw_only=True):
    """A wait inside a row, in milliseconds from the trace's `start`. `who`: its party, as in `shares`."""

    kind: str
    on: str
    start_ms: float
    end_ms: float
    outcome: str = ""
    who: str = ""


class TraceRow(WireMessage, frozen=True, kw_only=True):
    """One line of the waterfall. `busy_ms`: the sum of `spans`; `beside`: the rows whose spans overlap this one's;
    `open`: not over yet."""

    name: str
    container: str = ""
    busy_ms: float
    spans: tuple[Span, ...] = ()
    detail: str = ""
    outcome: str = ""
    beside: tuple[str, ...] = ()
    waits: tuple[TraceWait, ...] = ()
    open: bool = False


class Share(WireMessage, frozen=True, kw_only=True):
    """The time of one party. All shares and `unnamed_ms` add up to `total_ms`."""

    who: str
    ms: float


class LedgerSpan(WireMessage, frozen=True, kw_only=True):
    """A stretch of the trace that one party owns; `who` as in `shares`, "" without a name."""

    who: str
    start_ms: float
    end_ms: float


class Gap(WireMessage, frozen=True, kw_only=True):
    """A time in which no agent ran."""

    start: datetime
    end: datetime


class TraceAnswer(WireMessage, frozen=True, kw_only=True):
    """From seen to `milestone`. `later`: the newest events after it, without `later_left_out` older ones. `created`: of
    the API object, in whole seconds. `ledger`: the whole window, each instant with its owner, in order."""

    namespace: str
    name: str
    uid: str
    start: datetime
    end: datetime
    milestone: Milestone
    total_ms: float
    unnamed_ms: float
    rows: tuple[TraceRow, ...] = ()
    shares: tuple[Share, ...] = ()
    ledger: tuple[LedgerSpan, ...] = ()
    gaps: tuple[Gap, ...] = ()
    later: tuple[TimelineRow, ...] = ()
    later_left_out: int = 0
    ended: bool = False
    dropped: int = 0
    created: datetime | None = None


class RecordRow(WireMessage, frozen=True, kw_only=True):
    """One pod with a record. `alive`: it is on this node now."""

    namespace: str
    name: str
    uid: str
    alive: bool = False


class RecordsAnswer(WireMessage, frozen=True, kw_only=True):
    """Every pod with a record, the one written to last at the end."""

    records: tuple[RecordRow, ...] = ()
