"""When the volumes of a running pod are looked at again: what they were made from may have changed."""

from __future__ import annotations

from glasslet.api.pod import Pod
from glasslet.pods.steps import PodMemory


def refresh_due(memory: PodMemory, *, now: float, every: float) -> bool:
    """Whether somebody said that something changed, the pod itself did, or the last look is `every` seconds ago."""
    if memory.refreshed_at is None or memory.stale or memory.refreshed_for is None:
        return True
    return now >= memory.refreshed_at + every or _differs(memory.pod, memory.refreshed_for)


def _differs(pod: Pod, earlier: Pod) -> bool:
    if pod is earlier:
        return False
    new, old = pod.metadata, earlier.metadata
    return new.labels != old.labels or new.annotations != old.annotations or pod.spec != earlier.spec
