"""The fault table: what was done, what held, with which figures. Printed after the run."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

LONG = os.environ.get("GLASSLET_FAULTS") == "long"
"""Whether rows run with the parameters of the nightly lane."""


def sized(short: int, long: int) -> int:
    """A parameter of a row in the lane that runs."""
    return long if LONG else short


@dataclass
class Row:
    """One row, filled in by its test as it goes: what is not said at the end did not hold."""

    name: str
    done: str = ""
    held: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)
    passed: bool = False
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def did(self, what: str) -> None:
        """What was done to the agent."""
        self.done = what

    def holds(self, *facts: str) -> None:
        """Facts that were just shown."""
        self.held.extend(facts)

    def figure(self, name: str, value: object) -> None:
        """A number that a reader wants beside the row."""
        self.figures[name] = f"{value:.1f}" if isinstance(value, float) else str(value)

    def line(self) -> str:
        """As the table shows it."""
        figures = ", ".join(f"{name} {value}" for name, value in self.figures.items())
        verdict = "held" if self.passed else "BROKEN"
        parts = [self.done or "-", "; ".join(self.held) or "-", figures or "-", f"{self.seconds:.0f} s"]
        return f"{verdict:6} | {self.name} | " + " | ".join(parts)
