"""API times in their three forms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from glasslet.api.times import parse_rfc3339, rfc3339, rfc3339_micro, rfc3339_nano, whole_seconds

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_time_has_whole_seconds_and_ends_in_z() -> None:
    assert rfc3339(MOMENT) == "2026-01-02T03:04:05Z"


def test_micro_time_always_has_six_digits() -> None:
    assert rfc3339_micro(MOMENT.replace(microsecond=0)) == "2026-01-02T03:04:05.000000Z"


def test_nano_time_has_nine_digits() -> None:
    # behaviours.md §13: "kubernetes.io/config.seen = time seen (RFC3339 with 9 fraction digits)"
    assert rfc3339_nano(MOMENT) == "2026-01-02T03:04:05.000006000Z"


def test_other_zones_are_written_in_utc() -> None:
    assert rfc3339(MOMENT.astimezone(timezone(timedelta(hours=5)))) == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize("form", [rfc3339_micro, rfc3339_nano])
def test_every_form_reads_back(form: object) -> None:
    assert parse_rfc3339(form(MOMENT)) == MOMENT  # type: ignore[operator]
    assert parse_rfc3339(rfc3339(MOMENT)) == whole_seconds(MOMENT)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z"])
def test_what_is_no_time_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_rfc3339(text)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        rfc3339(MOMENT.replace(tzinfo=None))
