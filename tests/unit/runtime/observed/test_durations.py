"""Durations in the words of the Go kubelet's messages."""

from __future__ import annotations

import pytest

from glasslet.runtime.observed.durations import go_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (180, "3m0s"),
        (3600, "1h0m0s"),
        (3723.5, "1h2m3.5s"),
        (1.234, "1.234s"),
        (0.25, "250ms"),
        (0.0015, "1.5ms"),
        (0.000012, "12µs"),
        (0.000000012, "12ns"),
        (59.999, "59.999s"),
        (-90, "-1m30s"),
    ],
)
def test_a_duration_reads_as_in_go(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text
