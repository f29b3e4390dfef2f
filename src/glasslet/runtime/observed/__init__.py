"""Observed pods: what the container runtime holds, and as of when. One writer, snapshots for all readers.

    observed = ObservedPods(runtime=..., recorder=..., metrics=..., clock=..., periods=Periods())
    observed.get(uid)            the newest snapshot, at once
    await observed.refresh(uid)  a read that began after this call (after an own change)
    observed.subscribe(callback) called after every change
    await observed.synced.wait() the first full list has been taken in

    conditions = RuntimeConditions(runtime=..., recorder=..., clock=..., health={"PLEG": observed.health_problem})

Both have `async run()`. `diff.py` and `snapshots.py` are pure; `reads.py` decides which read answers which caller.
"""

from __future__ import annotations

from glasslet.runtime.observed.conditions import RuntimeConditions
from glasslet.runtime.observed.diff import ChangeKind, ObservedChange, changes
from glasslet.runtime.observed.pods import ObservedPods, Periods, RelistMetrics

__all__ = ["ChangeKind", "ObservedChange", "ObservedPods", "Periods", "RelistMetrics", "RuntimeConditions", "changes"]
