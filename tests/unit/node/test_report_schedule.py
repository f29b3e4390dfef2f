"""When an unchanged status is reported."""

from __future__ import annotations

from glasslet.node.status_loop import ReportSchedule

FRESH = ReportSchedule(interval=300)


def test_the_first_report_is_due_at_once() -> None:
    assert FRESH.is_due(0.0)


def test_a_change_shifts_the_next_report_by_up_to_half_an_interval() -> None:
    # behaviours.md §12: "after a change the next unchanged post is shifted by up to +/-50 %"
    early = FRESH.reported(1000, changed=True, draw=lambda: 0.0)
    late = FRESH.reported(1000, changed=True, draw=lambda: 1.0)
    assert (early.is_due(1149.9), early.is_due(1150)) == (False, True)
    assert (late.is_due(1449.9), late.is_due(1450)) == (False, True)


def test_unchanged_reports_come_in_even_intervals() -> None:
    # behaviours.md §12: "posted when changed or every 5 min"
    second = FRESH.reported(0, changed=False, draw=lambda: 0.0).reported(150, changed=False, draw=lambda: 0.0)
    assert (second.is_due(449.9), second.is_due(450)) == (False, True)
