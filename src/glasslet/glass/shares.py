"""Whose time a start was: each instant of the window belongs to one party. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.answers.trace import Share
from glasslet.glass.start_window import Window
from glasslet.record.events import Waited
from glasslet.record.history import AgentGap
from glasslet.record.stations import WaitKind

PARTIES = ("runtime", "API", "pod", "waiting", "no agent", "glasslet")
"""In this order: an instant belongs to the first that was active."""
_PARTY_OF_WAIT: dict[str, int] = {
    WaitKind.CRI_CALL: 0,
    WaitKind.API_CALL: 1,
    WaitKind.EXIT: 2,
    WaitKind.HOOK: 2,
    WaitKind.PROBE: 2,
}
_WAITING, _NO_AGENT, _OWN = 3, 4, 5


def shares_of(
    own: Iterable[tuple[float, float]], waits: Iterable[Waited], gaps: Iterable[AgentGap], window: Window
) -> tuple[tuple[Share, ...], float]:
    """The shares and the milliseconds without a name, in one sweep. `own`: when the agent was active for the pod."""
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
    taken = [0.0] * len(PARTIES)
    unnamed = 0.0
    at = window.start
    for time, step, party in [*sorted(marks), (window.end, 0, 0)]:
        owner = next((index for index, count in enumerate(active) if count), None)
        if owner is None:
            unnamed += time - at
        else:
            taken[owner] += time - at
        at = time
        active[party] += step
    shares = tuple(Share(who=who, ms=_ms(seconds)) for who, seconds in zip(PARTIES, taken, strict=True) if seconds > 0)
    return shares, _ms(unnamed)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
