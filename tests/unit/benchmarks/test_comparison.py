"""The table that compares two programs."""

from __future__ import annotations

from benchmarks.comparison import Round, Row, median_range, ratios, slower, table

START = Row("start", "one pod", "ms")
LOGS = Row("logs", "`logs`", "MB/s", 1, more_is_better=True)


def test_ratio_is_taken_within_each_round() -> None:
    """The second round ran on a machine twice as slow: that is no spread of the ratio."""
    rounds = [
        Round(go={"start": [100, 200, 300]}, ours={"start": [50]}),
        Round(go={"start": [400]}, ours={"start": [90, 100, 130]}),
    ]
    assert ratios(START, rounds) == [0.25, 0.25]


def test_round_without_samples_of_both_has_no_ratio() -> None:
    rounds = [Round(go={}, ours={"start": [50]}), Round(go={"start": [0]}, ours={"start": [50]})]
    assert ratios(START, rounds) == []


def test_table_shows_least_median_and_most_and_the_span_of_the_ratios() -> None:
    rounds = [
        Round(go={"start": [100, 200, 300]}, ours={"start": [50]}),
        Round(go={"start": [400]}, ours={"start": [200]}),
    ]
    assert table([START, LOGS], rounds).splitlines()[2:] == [
        "| one pod | ms | 100 / 250 / 400 | 50 / 125 / 200 | **0.38** (0.25..0.50) |",
    ]


def test_row_that_failed_for_one_of_them_has_a_dash() -> None:
    rounds = [Round(go={}, ours={"start": [50]})]
    assert table([START], rounds).splitlines()[2:] == ["| one pod | ms | - | 50 | - |"]


def test_slower_rows_come_worst_first_and_know_when_more_is_better() -> None:
    stop = Row("stop", "end", "ms")
    rounds = [
        Round(go={"start": [100], "logs": [30], "stop": [10]}, ours={"start": [200], "logs": [10], "stop": [9]}),
    ]
    assert slower([START, LOGS, stop], rounds) == [LOGS, START]


def test_range_of_a_median_leaves_out_the_extremes_of_many_samples() -> None:
    assert median_range([1.0]) == (1.0, 1.0)
    assert median_range([float(number) for number in range(1, 21)]) == (6.0, 15.0)
