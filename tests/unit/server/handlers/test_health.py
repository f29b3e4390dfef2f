"""The text of health answers and the sync loop's check."""

from __future__ import annotations

import pytest

from glasslet.server.handlers.health import syncloop_check
from glasslet.server.health_report import report, single
from glasslet.server.protocols import PING, HealthCheck

SICK = HealthCheck("syncloop", lambda: "it stands still")


def test_all_well_is_ok() -> None:
    assert report([PING]) == (200, "ok")
    assert report([PING], verbose=True) == (200, "[+]ping ok\nhealthz check passed\n")


def test_reasons_are_withheld_unless_asked_for() -> None:
    assert "reason withheld" in report([SICK])[1]
    assert "it stands still" in report([SICK], show_reasons=True)[1]


def test_excluded_check_is_not_asked() -> None:
    def never() -> str | None:
        raise AssertionError

    assert report([HealthCheck("log", never)], excluded=["log"])[0] == 200


def test_each_result_is_observed() -> None:
    seen: list[tuple[str, bool]] = []
    report([PING, SICK], observe=lambda name, ok: seen.append((name, ok)))
    assert seen == [("ping", True), ("syncloop", False)]


def test_single_check_shows_its_error() -> None:
    assert single(SICK) == (500, "internal server error: it stands still\n")
    assert single(PING) == (200, "ok")


@pytest.mark.parametrize(
    ("frequency", "silent_for", "healthy"), [(60, 300, True), (60, 301, False), (200, 400, True), (200, 401, False)]
)
def test_syncloop_fails_after_two_periods_but_not_before_five_minutes(
    frequency: float, silent_for: float, healthy: bool
) -> None:
    # behaviours.md §1: "healthz syncloop fails when the loop did not turn for max(5 min, 2 x syncFrequency)."
    check = syncloop_check(lambda: 1000.0, lambda: 1000.0 + silent_for, frequency)
    assert (check.check() is None) is healthy
