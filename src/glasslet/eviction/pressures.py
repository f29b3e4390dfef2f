"""The pressures that this node is under: written by the eviction manager, read by the node's status, admission, and by
those who ask why."""

from __future__ import annotations

from glasslet.eviction.decision import Assessment, PressureMemory
from glasslet.eviction.reading import Reading
from glasslet.eviction.trends import Trends


class NodePressures:
    """Node conditions (`MemoryPressure`, `DiskPressure`, `PIDPressure`) as of the last round, and what the loop knows
    beyond a single reading."""

    def __init__(self) -> None:
        self._conditions: frozenset[str] = frozenset()
        self._memory = PressureMemory()
        self.trends = Trends()

    def conditions(self) -> frozenset[str]:
        """The conditions that are true now."""
        return self._conditions

    def memory(self) -> PressureMemory:
        """Since when which thresholds are crossed."""
        return self._memory

    def update(self, reading: Reading, assessment: Assessment) -> None:
        """Takes the result of a round."""
        self._conditions = assessment.conditions
        self._memory = assessment.memory
        self.trends.note(reading.taken, reading.observations)
