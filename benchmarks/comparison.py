"""Two programs measured in turn: the figures of a round, and the table that compares them.

Absolute times move with the machine and with what else runs on it; so the ratio of a row is taken within each round,
where both ran one after the other, and the table shows the median of these ratios with their span.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True)
class Row:
    """One line of the table. `key`: as in the figures; `digits`: behind the point."""

    key: str
    what: str
    unit: str
    digits: int = 0
    more_is_better: bool = False


@dataclass(frozen=True)
class Spread:
    """Smallest, middle and largest of some samples."""

    least: float
    median: float
    most: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Returns the three of at least one sample."""
        return cls(min(samples), statistics.median(samples), max(samples))

    def text(self, digits: int) -> str:
        """`min / median / max`, or one figure where they are equal."""
        shown = [f"{value:.{digits}f}" for value in (self.least, self.median, self.most)]
        return shown[0] if len(set(shown)) == 1 else " / ".join(shown)


def median_range(samples: Sequence[float]) -> tuple[float, float]:
    """The order statistics around the median that hold the true one in 95 of 100 cases."""
    ordered, half = sorted(samples), 0.98 * sqrt(len(samples))
    low = max(0, round(len(ordered) / 2 - half) - 1)
    return ordered[low], ordered[len(ordered) - 1 - low]


Figures = Mapping[str, Sequence[float]]
"""Samples of one program in one round, by the key of their row."""


@dataclass(frozen=True)
class Round:
    """One round of both programs."""

    go: Figures
    ours: Figures


def ratios(row: Row, rounds: Sequence[Round]) -> list[float]:
    """glasslet's figure divided by the Go kubelet's, one for each round with samples of both."""
    found = []
    for one in rounds:
        go, ours = one.go.get(row.key), one.ours.get(row.key)
        if go and ours and (divisor := statistics.median(go)) > 0:
            found.append(statistics.median(ours) / divisor)
    return found


def table(rows: Sequence[Row], rounds: Sequence[Round]) -> str:
    """The table as Markdown, without rows that were not measured."""
    lines = [
        "| what | unit | Go kubelet: min / median / max | glasslet: min / median / max | ratio (span over rounds) |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        go = [sample for one in rounds for sample in one.go.get(row.key, ())]
        ours = [sample for one in rounds for sample in one.ours.get(row.key, ())]
        if go or ours:
            cells = (row.what, row.unit, _spread(row, go), _spread(row, ours), _ratio(row, ratios(row, rounds)))
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def slower(rows: Sequence[Row], rounds: Sequence[Round]) -> list[Row]:
    """The rows in which glasslet is behind, the worst first."""
    behind = []
    for row in rows:
        if found := ratios(row, rounds):
            ratio = statistics.median(found)
            cost = 1 / ratio if row.more_is_better and ratio > 0 else ratio
            if cost > 1:
                behind.append((cost, row))
    return [row for _, row in sorted(behind, key=lambda pair: -pair[0])]


def _spread(row: Row, samples: Sequence[float]) -> str:
    return Spread.of(samples).text(row.digits) if samples else "-"


def _ratio(row: Row, found: Sequence[float]) -> str:
    if not found:
        return "-"
    spread = Spread.of(found)
    digits = 1 if row.more_is_better else 2
    span = f" ({spread.least:.{digits}f}..{spread.most:.{digits}f})" if len(found) > 1 else ""
    return f"**{spread.median:.{digits}f}**{span}"
