"""Holds, steps and breaks as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from glasslet.answers.pods import Hold, TimelineRow
from glasslet.answers.stops import BreakRow, ReleasedAnswer, StepAnswer
from glasslet.answers.words import duration, milliseconds, times
from glasslet.cli.output import clock_time, fitted, printable, styled, table


def break_line(row: BreakRow) -> str:
    """`break 1: at sandbox, before, for shop/web-*; each hold lasts 10 min at most`."""
    parts = [f"break {row.number}: at {row.at}, {'after' if row.after else 'before'}, for {_whom(row)}"]
    if row.when:
        parts.append(f"when {row.when}")
    parts.append(f"each hold lasts {duration(row.hold_seconds)} at most")
    if row.count:
        parts.append(f"holds {times(row.count)}")
    parts.append(f"fits {row.matching} of the pods that are here" if row.matching else "fits no pod that is here yet")
    return "; ".join(parts)


def breaks_table(rows: Sequence[BreakRow]) -> str:
    """The table of `breaks`."""
    if not rows:
        return "no breaks"
    headers = ("BREAK", "AT", "PODS", "WHEN", "HITS", "HOLDING", "PROBLEM")
    cells = [
        [
            str(row.number),
            f"after {row.at}" if row.after else row.at,
            _whom(row),
            row.when or "-",
            f"{row.hits}/{row.count}" if row.count else str(row.hits),
            ", ".join(row.holding) or "-",
            row.problem or "-",
        ]
        for row in rows
    ]
    return table(headers, fitted(cells, headers, columns=(2, 3, 5, 6)))


def hold_line(pod: str, hold: Hold, now: datetime) -> str:
    """Where the pod is held."""
    where = f"{'after ' if hold.after else ''}{hold.at}{' of ' + hold.container if hold.container else ''}"
    who = f"break {hold.by}" if hold.by else "a step"
    since = duration((now - hold.since).total_seconds())
    text = f"{pod} is held at {where} by {who} for {since}, until {hold.until.astimezone():%H:%M:%S}"
    return styled(f"{text}; then: {hold.next}" if hold.next else text, "yellow")


def step_text(answer: StepAnswer, now: datetime) -> str:
    """What happened on the way, and where the pod is."""
    pod = f"{answer.namespace}/{answer.name}"
    lines = [_passed(row) for row in answer.passed]
    if answer.hold is not None:
        lines.append(hold_line(pod, answer.hold, now))
    else:
        lines.append(f"{pod} is not held now; it is held where it comes to next: glasslet continue {pod} ends that")
    return "\n".join(lines)


def released_text(answer: ReleasedAnswer, *, nothing: str) -> str:
    """What was removed, and which pods go on."""
    lines = [f"removed break {number}" for number in answer.removed]
    lines += [printable(f"{pod} goes on") for pod in answer.released]
    return "\n".join(lines) or nothing


def _passed(row: TimelineRow) -> str:
    took = f"  {milliseconds(row.took_ms)}" if row.took_ms else ""
    outcome = f"  {row.outcome}" if row.outcome not in ("", "ok") else ""
    container = f"{row.container}  " if row.container else ""
    return printable(f"  {clock_time(row.at)}  {container}{row.text}{took}{outcome}")


def _whom(row: BreakRow) -> str:
    parts = [row.pod or (f"pods of {row.namespace}" if row.namespace else "all pods")]
    if row.pod and row.namespace:
        parts.append(f"in {row.namespace}")
    if row.selector:
        parts.append(f"with {row.selector}")
    if row.container:
        parts.append(f"container {row.container}")
    return " ".join(parts)
