"""Go durations in and out."""

from __future__ import annotations

import pickle

import pytest

from glasslet.config.duration import Duration


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        ("1m", 60 * 10**9, "1m0s"),
        ("4h", 14400 * 10**9, "4h0m0s"),
        ("100ms", 10**8, "100ms"),
        ("1.5h", 5400 * 10**9, "1h30m0s"),
        ("1h15m30.918s", 4530918 * 10**6, "1h15m30.918s"),
        ("-1.5s", -1500 * 10**6, "-1.5s"),
        ("+5s", 5 * 10**9, "5s"),
        (".5s", 5 * 10**8, "500ms"),
        ("5.s", 5 * 10**9, "5s"),
        ("1us", 1000, "1µs"),
        ("3µs", 3000, "3µs"),
        ("7ns", 7, "7ns"),
        ("1m0.000000001s", 60 * 10**9 + 1, "1m0.000000001s"),
        ("2540400h10m10s", 9145440610 * 10**9, "2540400h10m10s"),
    ],
)
def test_go_durations_are_read_exactly_and_printed_as_go_prints_them(text: str, nanoseconds: int, printed: str) -> None:
    duration = Duration.parse(text)
    assert (duration.nanoseconds, str(duration), float(duration)) == (nanoseconds, printed, nanoseconds / 10**9)


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-", "1 s", "1d", "1m-5s", "--1s", "1e3s", "3000000h", "x" * 500, "٣s", "1s\n"]
)
def test_what_is_no_duration_is_a_value_error_that_shows_one(text: str) -> None:
    with pytest.raises(ValueError, match="want"):
        Duration.parse(text)


def test_a_duration_is_a_number_of_seconds_that_survives_pickling() -> None:
    assert Duration.parse("1m30s") + 1 == 91
    assert pickle.loads(pickle.dumps(Duration.parse("7ns"))).nanoseconds == 7
