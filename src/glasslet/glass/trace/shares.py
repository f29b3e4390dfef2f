"""Whose time a start was: each instant of the window belongs to one party. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from glasslet.answers.trace import LedgerSpan, Share
from glasslet.glass.trace.start_window import Window
from glasslet.record.events import Waited
from glasslet.record.history import AgentGap
from glasslet.record.stations import WaitKind

PARTIES = ("runtime", "API", "pod", "waiting", "held", "no agent", "glasslet")
"""In this order: an instant belongs to the first that was active."""
_PARTY_OF_WAIT: dict[str, int] = {
    WaitKind.CRI_CALL: 0,
    WaitKind.API_CALL: 1,
    WaitKind.EXIT: 2,
    WaitKind.HOOK: 2,
    WaitKind.PROBE: 2,
    WaitKind.PAUSE: 4,
}
_WAITING, _NO_AGENT, _OWN = 3, 5, 6


class Ownership(Struct, frozen=True, kw_only=True):
    """The owners of a window. `shares` and `unnamed_ms` add up to it; `ledger` covers it without a gap, in order."""

    shares: tuple[Share, ...]
    unnamed_ms: float
    ledger: tuple[LedgerSpan, ...]


def party_of(kind: str) -> str:
    """The party that a wait of this kind is for."""
    return PARTIES[_PARTY_OF_WAIT.get(kind, _WAITING)]


def owners_of(
    own: Iterable[tuple[float, float]], waits: Iterable[Waited], gaps: Iterable[AgentGap], window: Window
) -> Ownership:
    """The owner of each instant, in one sweep. `own`: when the agent was active for the pod."""
    marks: list[tuple[float, int, int]] = []

    def add(start: float, end: float, party: int) -> None:
        start, end = max(start, window.start), min(end, window.end)
        if end > start:
            marks.append((start, 1, party))
            marks.append((end, -1, party))

    for start, end in own:
        add(start, end, _OWN)
    for wait in waits:
        add(wait.start, wait.end, _PARTY_OF_WAIT.get(wait.kind, _WAITING))
    for gap in gaps:
        add(gap.start, gap.end, _NO_AGENT)
    active = [0] * len(PARTIES)
    stretches: list[tuple[int | None, float, float]] = []
    at = window.start
    for time, step, party in [*sorted(marks), (window.end, 0, 0)]:
        owner = next((index for index, count in enumerate(active) if count), None)
        if time > at:
            if stretches and stretches[-1][0] == owner:
                stretches[-1] = (owner, stretches[-1][1], time)
            else:
                stretches.append((owner, at, time))
        at = time
        active[party] += step
    return _counted(stretches, window)


def _counted(stretches: list[tuple[int | None, float, float]], window: Window) -> Ownership:
    taken = [0.0] * len(PARTIES)
    unnamed = 0.0
    for owner, start, end in stretches:
        if owner is None:
            unnamed += end - start
        else:
            taken[owner] += end - start
    return Ownership(
        shares=tuple(Share(who=who, ms=_ms(took)) for who, took in zip(PARTIES, taken, strict=True) if took > 0),
        unnamed_ms=_ms(unnamed),
        ledger=tuple(
            LedgerSpan(
                who="" if owner is None else PARTIES[owner],
                start_ms=_ms(start - window.start),
                end_ms=_ms(end - window.start),
            )
            for owner, start, end in stretches
        ),
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
