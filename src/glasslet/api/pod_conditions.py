"""The writer of each pod condition (behaviours.md §6)."""

from __future__ import annotations

from typing import Final

OWNED: Final = (
    *("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"),
    *("PodResizePending", "PodResizeInProgress"),
)
"""The node agent's own; all others in the API are kept."""
DISRUPTION_TARGET: Final = "DisruptionTarget"
"""Shared: the node agent sets it together with the terminal phase of a pod that it ended by its own decision."""
BY_KUBELET: Final = "TerminationByKubelet"
"""The reason that marks the node agent's own DisruptionTarget."""
