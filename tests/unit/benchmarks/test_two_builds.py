"""The table that compares two builds of the agent."""

from __future__ import annotations

from benchmarks.two_builds import ROWS, report


def test_ratio_is_that_within_a_round_whatever_the_speed_of_the_machine() -> None:
    before = [dict.fromkeys(ROWS, seconds) for seconds in (1.0, 2.0, 4.0)]
    now = [dict.fromkeys(ROWS, seconds) for seconds in (1.01, 2.02, 4.04)]
    lines = list(report(now, before))
    assert len(lines) == 2 + len(ROWS)
    assert lines[2].split(" | ")[3] == "**1.010**"
