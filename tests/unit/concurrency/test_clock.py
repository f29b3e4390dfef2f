"""Moments stay within the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from glasslet.concurrency.clock import moment_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_moment_is_so_many_seconds_later() -> None:
    assert moment_after(NOW, 90) == NOW + timedelta(seconds=90)


@pytest.mark.parametrize(("seconds", "year"), [(10**12, 9999), (2**63 - 1, 9999), (-(10**12), 1), (-(2**63), 1)])
def test_a_moment_beyond_the_calendar_is_its_end(seconds: int, year: int) -> None:
    assert moment_after(NOW, seconds).year == year
    assert moment_after(NOW, seconds).tzinfo is UTC
