"""Grace periods: the seconds that containers get to end by themselves."""

from __future__ import annotations

from glasslet.api.pod import Pod

MIN_GRACE = 1
"""Seconds; the smallest grace inside workers, so that hooks start even at a forced delete."""
MIN_CONTAINER_GRACE = 2
"""Seconds; what every container gets after its turn, whatever hooks and waiting ate."""
MAX_GRACE = 2**31 - 1
"""Seconds (68 years); more is cut. A pod may have any 64-bit number, but runtimes count nanoseconds in 64 bits."""
DEFAULT_GRACE = 30
"""Seconds; the API's default."""


def termination_grace(pod: Pod, *, override: int | None = None, before: int | None = None) -> int:
    """Seconds for the whole pod: the smallest of deletion, override and the last try, else the spec's."""
    given = [value for value in (pod.metadata.deletion_grace_period_seconds, override, before) if value is not None]
    grace = min(given) if given else pod.spec.termination_grace_period_seconds
    return min(max(MIN_GRACE, DEFAULT_GRACE if grace is None else grace), MAX_GRACE)


def restart_grace(pod: Pod) -> int:
    """Seconds for one container that is stopped and then started again."""
    return _first(pod.metadata.deletion_grace_period_seconds, pod.spec.termination_grace_period_seconds)


def probe_grace(pod: Pod, probe_seconds: int | None) -> int:
    """Seconds for a container whose liveness or startup probe failed; `probe_seconds` is the probe's own setting."""
    meta, spec = pod.metadata, pod.spec
    return _first(meta.deletion_grace_period_seconds, probe_seconds, spec.termination_grace_period_seconds)


def _first(*values: int | None) -> int:
    return min(next((value for value in values if value is not None), MIN_CONTAINER_GRACE), MAX_GRACE)
