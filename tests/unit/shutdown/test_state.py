"""The file of shutdown times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from glasslet.shutdown.state import ShutdownFile, ShutdownTimes, decode, encode

START = datetime(2025, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)


class Gauges:
    """What the metrics show."""

    def __init__(self) -> None:
        self.shown: tuple[float, float] | None = None

    def times(self, start: float, end: float) -> None:
        self.shown = (start, end)


def file(folder: Path, gauges: Gauges) -> ShutdownFile:
    moments = iter(START + timedelta(seconds=n) for n in (0, 30))
    return ShutdownFile(str(folder / "state"), now=lambda: next(moments), metrics=gauges)


def test_the_go_kubelets_file_is_understood() -> None:
    data = b'{"startTime":"2025-01-02T03:04:05.6Z","endTime":"2025-01-02T03:04:35.1Z"}'
    assert decode(data) == ShutdownTimes(START, START + timedelta(seconds=29.5))


def test_the_zero_time_is_no_time() -> None:
    # Upstream: "The zero time stands for "not ended""
    assert encode(ShutdownTimes(START)) == (
        b'{"startTime":"2025-01-02T03:04:05.600000000Z","endTime":"0001-01-01T00:00:00Z"}'
    )
    assert decode(encode(ShutdownTimes(START))) == ShutdownTimes(START)


def test_a_shutdown_is_kept_with_both_its_times(tmp_path: Path) -> None:
    # behaviours.md §27: "State file graceful_node_shutdown_state holds start and end times for metrics."
    written = file(tmp_path, Gauges())
    written.begin()
    written.end()
    gauges = Gauges()
    file(tmp_path, gauges).read()
    assert gauges.shown == (START.timestamp(), START.timestamp() + 30)


def test_a_shutdown_that_was_cut_off_has_no_end(tmp_path: Path) -> None:
    file(tmp_path, Gauges()).begin()
    gauges = Gauges()
    file(tmp_path, gauges).read()
    assert gauges.shown == (START.timestamp(), 0.0)


def test_no_file_shows_nothing(tmp_path: Path) -> None:
    gauges = Gauges()
    file(tmp_path, gauges).read()
    assert gauges.shown is None


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"startTime": 5}', b'{"startTime": "yesterday"}', b"x" * 9999])
def test_a_damaged_file_is_passed_over(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "state").write_bytes(data)
    gauges = Gauges()
    file(tmp_path, gauges).read()
    assert gauges.shown is None
