"""The pressures that this node is under: written by the eviction manager, read by the node's status and admission."""

from __future__ import annotations


class NodePressures:
    """Node conditions (`MemoryPressure`, `DiskPressure`, `PIDPressure`) as of the last round."""

    def __init__(self) -> None:
        self._conditions: frozenset[str] = frozenset()

    def conditions(self) -> frozenset[str]:
        """The conditions that are true now."""
        return self._conditions

    def update(self, conditions: frozenset[str]) -> None:
        """Takes the result of a round."""
        self._conditions = conditions
