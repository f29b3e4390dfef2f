"""Conditions of breaks: the protocol of their evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

FIELDS: Final = (
    *("namespace", "name", "uid", "node", "at", "after", "container", "attempt", "held"),
    *("pod", "lifecycle", "source", "status", "observed", "volumes", "probes"),
    *("plan", "retries", "backOffs", "waits", "request", "probe", "newStatus", "failure", "stack", "tasks"),
)
"""The fields at the top of the tree that conditions see."""


class BadCondition(Exception):
    """A condition that is wrong. `line`, `column`: the place of the mistake, from 1; 0 if it is unknown."""

    def __init__(self, message: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class ConditionFailed(Exception):
    """A condition that gives no answer for this pod: a field that the pod does not have, a value that is no boolean."""


class ConditionTooSlow(ConditionFailed):
    """The evaluation took longer than it may."""


class Conditions(Protocol):
    """Evaluates conditions beside the event loop, in bounded time."""

    async def check(self, condition: str) -> None:
        """Raises BadCondition, ConditionFailed if conditions cannot be evaluated on this node."""

    async def holds(self, condition: str, tree: Mapping[str, object]) -> bool:
        """Whether it holds for the tree that `inspect` shows. Raises ConditionFailed."""

    def idle(self) -> None:
        """No break has a condition any more."""
