"""Pods that a node under pressure refuses."""

from __future__ import annotations

import pytest

from glasslet.admission.pressure import pressure_rule
from glasslet.api.pod import Pod
from glasslet.api.scheduling import Toleration
from tests.builders.admission import api_pod, candidate

MEMORY, DISK = "MemoryPressure", "DiskPressure"
BEST_EFFORT, BURSTABLE = api_pod("best-effort"), api_pod("burstable", requests={"memory": "1Mi"})
TOLERANT = api_pod(
    "tolerant",
    tolerations=(Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule"),),
)
CRITICAL = api_pod("critical", priority=2_000_000_000)


@pytest.mark.parametrize(
    ("conditions", "pod", "refused"),
    [
        (set(), BEST_EFFORT, False),
        ({MEMORY}, BEST_EFFORT, True),
        ({MEMORY}, BURSTABLE, False),
        ({MEMORY}, TOLERANT, False),
        ({MEMORY, DISK}, TOLERANT, True),
        ({DISK}, BURSTABLE, True),
        ({DISK}, CRITICAL, False),
    ],
)
def test_who_is_refused_under_which_pressure(conditions: set[str], pod: Pod, refused: bool) -> None:
    # behaviours.md §14: "Eviction handler: critical pods pass; with MemoryPressure alone everything but BestEffort
    # passes, BestEffort only with a toleration of node.kubernetes.io/memory-pressure:NoSchedule; else reason Evicted,
    # message `The node had condition: [<conditions>]. `."
    found = pressure_rule(lambda: frozenset(conditions))(candidate(pod))
    assert (found is not None) == refused
    if found is not None:
        text = f"The node had condition: [{' '.join(sorted(conditions))}]. "
        assert (found.reason, found.message) == ("Evicted", text)
