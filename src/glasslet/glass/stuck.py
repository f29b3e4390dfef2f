"""When a pod counts as stuck: something goes on for it longer than such a thing may. Pure.

    a wait of a kind that ends by itself        longer than its kind is given
    a wait with a known end                     longer than a minute after that
    a worker at work that waits for nothing     longer than a minute: what has no name hangs

Waits that are somebody else's to end have no limit: pulls, queues, probes, back-off, pauses, containers that run to
their end, hooks before the end of a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from glasslet.record.history import LiveWait
from glasslet.record.stations import Station, WaitKind

NAMELESS = 60.0
"""Seconds that a worker may be at work without a named wait."""
_AFTER_THE_END = 60.0
_OPEN_ENDED = frozenset(("PullImage", "StopContainer", "ExecSync"))
"""Calls that last as long as what they do: downloads, the grace period, commands. The latter two stand below a wait of
their own."""

ALLOWED: Mapping[str, float] = {
    WaitKind.CRI_CALL: 60.0,
    WaitKind.API_CALL: 60.0,
    WaitKind.VOLUME: 90.0,
    WaitKind.CGROUP: 30.0,
    WaitKind.DEVICE: 120.0,
    WaitKind.HOOK: 600.0,
}
"""Seconds by kind of wait, half of the deadline or less where there is one; none given: no limit."""
_SANDBOX = 120.0
"""Seconds for what makes a sandbox: networks may be slow."""


class Stuck(Struct, frozen=True):
    """What hangs: `on`, of `kind` ("" without a name), since (Unix time), and the seconds that it may take."""

    kind: str
    on: str
    since: float
    allowed: float
    container: str = ""
    task: str = ""

    def is_same(self, other: Stuck) -> bool:
        """Whether it is still the same thing that hangs."""
        return (self.kind, self.on, self.container) == (other.kind, other.on, other.container)

    def __str__(self) -> str:
        who = f" (container {self.container})" if self.container else ""
        return f"no progress: {self.on}{who} takes longer than {self.allowed:.0f} s"


def is_planned(wait: LiveWait) -> bool:
    """Whether it is what a worker means to do later: such waits stand beside whatever it does just now."""
    return wait.kind in (WaitKind.BACK_OFF, WaitKind.PROBE) or (wait.kind == WaitKind.EXIT and wait.container != "")


def allowed(wait: LiveWait) -> float | None:
    """How many seconds a wait may last, None: as long as it takes."""
    if is_planned(wait) or wait.station == Station.PROBES or wait.on in _OPEN_ENDED:
        return None
    if wait.kind == WaitKind.HOOK and wait.station == Station.STOPPING:
        return None  # The grace period ends it.
    if wait.until is not None:
        return max(wait.until - wait.since, 0.0) + _AFTER_THE_END
    if wait.kind == WaitKind.CRI_CALL and wait.station == Station.SANDBOX:
        return _SANDBOX
    return ALLOWED.get(wait.kind)


def stuck_wait(waits: Iterable[LiveWait], now: float) -> Stuck | None:
    """The oldest of one pod's waits that takes too long. `now`: Unix time."""
    for wait in sorted(waits, key=lambda one: one.since):
        limit = allowed(wait)
        if limit is not None and now - wait.since > limit:
            return Stuck(wait.kind, wait.on, wait.since, limit, wait.container, wait.task)
    return None


def nameless(seconds: float, now: float) -> Stuck | None:
    """A worker that has been at work for so long without any wait. `now`: Unix time."""
    return Stuck("", "its worker's present step", now - seconds, NAMELESS) if seconds > NAMELESS else None
