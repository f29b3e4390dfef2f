"""Times as the Kubernetes API writes them. All take aware datetimes and give text in UTC.

Three forms exist: `Time` (whole seconds; nearly every field), `MicroTime` (always six digits; leases and events), and
RFC3339Nano with all nine digits (the `kubernetes.io/config.seen` annotation).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

Time = Annotated[datetime, Meta(tz=True)]
"""A time of an API object: one without a zone is refused."""

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def rfc3339(moment: datetime) -> str:
    """`2026-01-02T03:04:05Z`: `meta/v1.Time`; the fraction is cut off."""
    return f"{_plain(moment).isoformat(timespec='seconds')}Z"


def rfc3339_micro(moment: datetime) -> str:
    """`2026-01-02T03:04:05.000006Z`: `meta/v1.MicroTime`, always six digits."""
    return f"{_plain(moment).isoformat(timespec='microseconds')}Z"


def rfc3339_nano(moment: datetime) -> str:
    """`2026-01-02T03:04:05.000006000Z`: nine digits (Python's clocks end at microseconds)."""
    return f"{_plain(moment).isoformat(timespec='microseconds')}000Z"


def parse_rfc3339(text: str) -> datetime:
    """Reads each of the three forms, with `Z` or an offset, cut to microseconds. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time: want RFC 3339, like 2026-01-02T03:04:05Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} is not a time: the zone is missing, want Z or an offset like +02:00")
    return _utc(moment)


def whole_seconds(moment: datetime) -> datetime:
    """The moment as the API keeps it: UTC, without a fraction."""
    return _utc(moment).replace(microsecond=0)


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone: API times are aware")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        # An offset can push the first or last day of the calendar out of it; the nearest moment that exists stands in.
        return _FIRST if moment.year == 1 else _LAST


def _plain(moment: datetime) -> datetime:
    return _utc(moment).replace(tzinfo=None)
