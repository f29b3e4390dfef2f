"""Percentiles of calls from histograms that only ever grow."""

from __future__ import annotations

import pytest

from glasslet.glass.page.call_times import CallWindow, call_times, quantile
from glasslet.glass.page.source import Buckets

INFINITY = float("inf")


def buckets(fast: float, slow: float) -> Buckets:
    """Calls below 10 ms, and calls of 10 ms to 1 s."""
    return ((0.01, fast), (1.0, fast + slow), (INFINITY, fast + slow))


def test_a_percentile_lies_within_its_bucket() -> None:
    assert quantile(buckets(100, 0), 0.5) == pytest.approx(0.005)
    assert quantile(buckets(50, 50), 0.9) == pytest.approx(0.01 + 0.99 * 0.8)


def test_calls_beyond_the_last_bound_count_as_the_last_bound() -> None:
    assert quantile(((0.01, 0.0), (1.0, 1.0), (INFINITY, 100.0)), 0.99) == 1.0


def test_a_kind_without_calls_has_no_row() -> None:
    assert call_times("PullImage", buckets(10, 0), buckets(10, 0)) is None


def test_only_the_calls_of_the_window_count() -> None:
    times = call_times("PullImage", buckets(100, 10), buckets(100, 0))
    assert times is not None
    assert times.count == 10
    assert times.p50_ms > 100


def test_calls_three_times_slower_than_ever_are_slow() -> None:
    slow = call_times("PullImage", buckets(100, 10), buckets(100, 0))
    usual = call_times("PullImage", buckets(200, 0), buckets(100, 0))
    assert slow is not None
    assert usual is not None
    assert (slow.slow, usual.slow) == (True, False)


def test_the_window_is_the_whole_life_until_five_minutes_were_watched() -> None:
    now = [0.0]
    reading = {("runtime", "PullImage"): buckets(100, 0), ("API", "GET"): buckets(1, 0)}
    window = CallWindow(lambda: reading, lambda: now[0])
    first = window.read()
    assert first.seconds is None
    assert [row.count for row in first.runtime] == [100]
    assert [row.call for row in first.api] == ["GET"]
    now[0] = 300.0
    reading = {("runtime", "PullImage"): buckets(100, 7)}
    later = window.read()
    assert later.seconds == 300
    assert [row.count for row in later.runtime] == [7]
