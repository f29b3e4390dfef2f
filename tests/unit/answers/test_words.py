"""Durations in words."""

from __future__ import annotations

import pytest

from glasslet.answers.words import duration, milliseconds, size_words, times


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 ms"),
        (0.28, "280 ms"),
        (0.9996, "1 s"),
        (1.5, "1.5 s"),
        (9.97, "10 s"),
        (41.2, "41 s"),
        (59.6, "1 min"),
        (252, "4 min 12 s"),
        (3599.9, "1 h"),
        (7500, "2 h 5 min"),
        (86399.9, "1 d"),
        (3 * 86400 + 4 * 3600, "3 d 4 h"),
        (400 * 86400, "400 d"),
    ],
)
def test_seconds_become_the_two_largest_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.42, "0.4 ms"),
        (128.4, "128 ms"),
        (999.6, "1.00 s"),
        (2314, "2.31 s"),
        (12_000, "12 s"),
        (90_000, "1 min 30 s"),
    ],
)
def test_milliseconds_keep_what_matters(value: float, words: str) -> None:
    assert milliseconds(value) == words


def test_counts_are_words() -> None:
    assert [times(count) for count in (0, 1, 2)] == ["0 times", "once", "2 times"]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (-1, "0 bytes"),
        (312, "312 bytes"),
        (1024, "1 KiB"),
        (3.1 * 2**20, "3.1 MiB"),
        (128 * 2**20, "128 MiB"),
        (1023.6 * 2**20, "1 GiB"),
        (5000 * 2**30, "5000 GiB"),
    ],
)
def test_sizes_have_the_unit_that_keeps_them_short(count: float, words: str) -> None:
    assert size_words(count) == words
