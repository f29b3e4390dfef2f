"""Counts of pods and containers for the agent's metrics. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.runtime.model import ObservedPod
from glasslet.telemetry.metrics.pods import PodCounts


def pod_counts(
    observed: Sequence[ObservedPod], *, desired: Iterable[Pod], syncing: Iterable[Pod], mirrors: int
) -> PodCounts:
    """`syncing`: pods of sources that are to run; `mirrors`: how many mirror pods the API server shows."""
    states = Counter(str(container.phase) for pod in observed for container in pod.containers)
    wanted, active = Counter(map(is_static, desired)), Counter(map(is_static, syncing))
    return PodCounts(
        running_pods=sum(pod.ready_sandbox() is not None for pod in observed),
        containers=dict(states),
        desired_static=wanted[True],
        desired_api=wanted[False],
        active_static=active[True],
        active_api=active[False],
        mirror=mirrors,
    )
