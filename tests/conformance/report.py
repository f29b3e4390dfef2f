"""What the suite says: lines of its output while it runs, and its report at the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_ENDED = re.compile(r"(?:^|S|•)([S•]) (?:\[([A-Z ]+)\] )?\[([\d.]+) seconds\]$")
_OUTCOMES = {"": "PASS", "SKIPPED": "SKIP"}
_STATES = {"passed": "PASS", "skipped": "SKIP", "pending": "SKIP"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One test: PASS, FAIL or SKIP, its seconds, and why when it did not pass."""

    outcome: str
    name: str
    seconds: float
    reason: str = ""


def rows(report: Sequence[dict[str, Any]]) -> list[Row]:
    """The tests of Ginkgo's JSON report that ran, and what failed outside of any test, by name."""
    found = [_row(spec) for suite in report for spec in suite["SpecReports"] or () if _counts(spec)]
    return sorted(found, key=lambda row: row.name)


def _counts(spec: dict[str, Any]) -> bool:
    if spec["LeafNodeType"] != "It":
        return bool(spec["State"] != "passed")
    return not (spec["State"] == "pending" or (spec["State"] == "skipped" and not _message(spec)))


def _row(spec: dict[str, Any]) -> Row:
    name = " ".join((*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"])).strip()
    return Row(
        outcome=_STATES.get(spec["State"], "FAIL"),
        name=name or f"[{spec['LeafNodeType']}]",
        seconds=spec["RunTime"] / 1e9,
        reason=_message(spec),
    )


def _message(spec: dict[str, Any]) -> str:
    return str(spec.get("Failure", {}).get("Message", ""))


class Progress:
    """Reads the suite's output line by line; each test that ended is a row, without its reason."""

    def __init__(self) -> None:
        self._ended: tuple[str, float] | None = None

    def read(self, line: str) -> Row | None:
        """The row that this line completes: a test's name is on the line after its outcome."""
        line = line.rstrip("\n")
        if self._ended is not None:
            outcome, seconds = self._ended
            self._ended = None
            return Row(outcome=outcome, name=without_labels(line), seconds=seconds)
        found = _ENDED.search(line)
        if found is not None:
            self._ended = (_OUTCOMES.get(found[2] or "", "FAIL"), float(found[3]))
        return None


def without_labels(line: str) -> str:
    """A name as the output shows it, without the list of labels at its end and the kind of node that failed."""
    return re.sub(r" \[[\w:., \-]*, [\w:., \-]*\]$", "", line).replace(" [It] ", " ")


def line_of(row: Row) -> str:
    """One test on one line."""
    return f"{row.outcome} {row.seconds:7.1f} s  {row.name}"


def summary(found: Iterable[Row]) -> str:
    """Counts, and what failed with the first words of why."""
    listed = list(found)
    counts = Counter(row.outcome for row in listed)
    lines = [f"{len(listed)} tests: {counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped"]
    for row in listed:
        if row.outcome == "FAIL":
            lines += [f"FAIL {row.name}", f"     {' '.join(row.reason.split())[:300]}"]
    return "\n".join(lines)
