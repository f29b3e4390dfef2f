"""Durations as messages of the Go kubelet show them, so that tools which match on the text go on working."""

from __future__ import annotations

_SECOND = 1_000_000_000


def go_duration(seconds: float) -> str:
    """`3m0s`, `1h2m3.5s`, `1.234s`, `250ms`, `12µs`, `0s`: the text of Go's time.Duration, to the nanosecond."""
    nanos = round(seconds * _SECOND)
    if nanos == 0:
        return "0s"
    sign = "-" if nanos < 0 else ""
    nanos = abs(nanos)
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if nanos < size * 1_000:
            return f"{sign}{_decimal(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60 * _SECOND)
    text = f"{_decimal(rest, _SECOND)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _decimal(value: int, unit: int) -> str:
    """`value / unit`, exact, without trailing zeros."""
    whole, part = divmod(value, unit)
    if part == 0:
        return str(whole)
    digits = str(part).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}"
