"""When a pod counts as stuck: one of its waits or actions takes longer than it may. Pure.

    a wait of a kind that ends by itself        longer than its kind is given
    a wait with a known end                     longer than a minute after that
    a busy worker without a named wait          longer than a minute

Waits whose length others decide have no limit: pulls, queues, probes, back-off, pauses, containers that run to
their end, preStop hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from glasslet.record.history import LiveWait
from glasslet.record.stations import Station, WaitKind

NAMELESS = 60.0
"""Seconds that a worker may be busy without a named wait."""
_AFTER_THE_END = 60.0
_OPEN_ENDED = frozenset(("PullImage", "StopContainer", "ExecSync"))
"""Calls that may take any time: downloads, the grace period, commands. The last two are inside a wait of their own."""

ALLOWED: Mapping[str, float] = {
    WaitKind.CRI_CALL: 60.0,
    WaitKind.API_CALL: 60.0,
    WaitKind.VOLUME: 90.0,
    WaitKind.CGROUP: 30.0,
    WaitKind.DEVICE: 120.0,
    WaitKind.CSI_CALL: 60.0,
    WaitKind.DRA_CALL: 20.0,
    WaitKind.HOOK: 600.0,
}
"""Seconds by kind of wait: half of its deadline or less, if it has one. Kinds that are not listed have no limit."""
CSI_LIMIT = 120.0
"""Seconds, csi.timeout; a test holds it against `volumes.csi`."""
_SANDBOX = 120.0
"""Seconds for calls that create a sandbox: networks may be slow."""


class Stuck(Struct, frozen=True):
    """A wait that takes too long: `on`, of `kind` ("" without a name), `since` (Unix time), `allowed` seconds."""

    kind: str
    on: str
    since: float
    allowed: float
    container: str = ""
    task: str = ""

    def is_same(self, other: Stuck) -> bool:
        """Whether it is still the same wait."""
        return (self.kind, self.on, self.container) == (other.kind, other.on, other.container)

    def __str__(self) -> str:
        who = f" (container {self.container})" if self.container else ""
        return f"no progress: {self.on}{who} takes longer than {self.allowed:.0f} s"


def is_planned(wait: LiveWait) -> bool:
    """Whether it belongs to a later action: the worker does something else meanwhile."""
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


def call_limit(wait: LiveWait, request: float) -> float | None:
    """Seconds after which the agent gives up such a wait, and tries again; None: it waits for as long as it takes.
    `request`: runtimeRequestTimeout."""
    if wait.until is not None:
        return max(wait.until - wait.since, 0.0)
    if wait.kind == WaitKind.CSI_CALL:
        return CSI_LIMIT
    if wait.kind != WaitKind.CRI_CALL or wait.on in _OPEN_ENDED:
        return None
    return 2 * request if wait.on == "RunPodSandbox" else request


def never_held(_since: float) -> float:
    """For a pod that no person holds."""
    return 0.0


def stuck_wait(waits: Iterable[LiveWait], now: float, held: Callable[[float], float] = never_held) -> Stuck | None:
    """The oldest of one pod's waits that takes too long. `now`: Unix time; `held(since)`: the seconds since then for
    which a person held the pod, which do not count."""
    for wait in sorted(waits, key=lambda one: one.since):
        limit = allowed(wait)
        if limit is not None and now - wait.since > limit and now - wait.since - held(wait.since) > limit:
            return Stuck(wait.kind, wait.on, wait.since, limit, wait.container, wait.task)
    return None


def nameless(seconds: float, now: float) -> Stuck | None:
    """The finding for a worker that was busy for `seconds` without any wait. `now`: Unix time."""
    return Stuck("", "its worker's present action", now - seconds, NAMELESS) if seconds > NAMELESS else None
