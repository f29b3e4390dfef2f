"""Restart back-off of one pod's containers. Pure: entries in, entries out.

The first restart is immediate; then each waits longer, counted from the end of the newest instance. A container that
ran longer than twice the cap since its last restart starts over. A changed image or changed resources begin a new
entry. Kept in memory only: as upstream's, a restarted agent starts over.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from glasslet.api.codec import encode_sorted
from glasslet.api.container import Container


class BackOffLimits(Struct, frozen=True, kw_only=True):
    """Seconds. `reset` is how much longer than the last restart a container must run to be forgiven."""

    initial: float = 10.0
    maximum: float = 300.0

    @property
    def reset(self) -> float:
        """Seconds after which an entry is forgotten."""
        return 2 * self.maximum


def back_off_limits(*, reduced_decay: bool = False, node_maximum: float | None = None) -> BackOffLimits:
    """`reduced_decay`: gate ReduceDefaultCrashLoopBackOffDecay (1 s to 60 s). `node_maximum`: seconds (1..300) from the
    configuration, where gate KubeletCrashLoopBackOffMax is on; the start is lowered to it."""
    limits = BackOffLimits(initial=1.0, maximum=60.0) if reduced_decay else BackOffLimits()
    if node_maximum is not None:
        limits = BackOffLimits(initial=min(limits.initial, node_maximum), maximum=node_maximum)
    return limits


class BackOffKey(Struct, frozen=True, kw_only=True):
    """A container, by what starts its back-off over when it changes."""

    container: str
    image: str
    resources: bytes


class BackOffEntry(Struct, frozen=True, kw_only=True):
    """`delay`: seconds that the next restart has to wait. `since`: when the last restart was."""

    delay: float
    since: datetime


BackOffs = Mapping[BackOffKey, BackOffEntry]


def back_off_key(container: Container) -> BackOffKey:
    """The container's entry."""
    resources = container.resources
    text = encode_sorted(resources) if resources.requests or resources.limits else b""
    return BackOffKey(container=container.name, image=container.image, resources=text)


def held_until(
    entries: BackOffs, key: BackOffKey, finished_at: datetime, limits: BackOffLimits
) -> tuple[datetime, float] | None:
    """(when a restart is allowed, the delay in seconds), or None when no entry of the container counts."""
    entry = entries.get(key)
    if entry is None or _forgiven(entry, finished_at, limits):
        return None
    return finished_at + timedelta(seconds=entry.delay), entry.delay


def restarted(
    entries: BackOffs, key: BackOffKey, finished_at: datetime, now: datetime, limits: BackOffLimits
) -> dict[BackOffKey, BackOffEntry]:
    """The entries after a restart at `now` of an instance that ended at `finished_at`."""
    entry = entries.get(key)
    delay = limits.initial
    if entry is not None and not _forgiven(entry, finished_at, limits):
        delay = min(entry.delay * 2, limits.maximum)
    return {**entries, key: BackOffEntry(delay=delay, since=now)}


def _forgiven(entry: BackOffEntry, finished_at: datetime, limits: BackOffLimits) -> bool:
    return (finished_at - entry.since).total_seconds() > limits.reset
