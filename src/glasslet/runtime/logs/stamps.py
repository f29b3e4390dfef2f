"""Times at the beginning of log lines: RFC 3339 with up to nine digits, in the time zone of the runtime. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

_UTC_ZONES = (b"Z", b"+00:00", b"-00:00")


def nine_digits(seconds: bytes, fraction: bytes, zone: bytes) -> bytes:
    """`2026-01-01T00:00:00`, `12`, `Z` -> `2026-01-01T00:00:00.120000000Z`: as printed with timestamps=true."""
    return b"%b.%b%b" % (seconds, fraction.ljust(9, b"0"), b"Z" if zone in _UTC_ZONES else zone)


def sort_key(moment: datetime) -> bytes:
    """A text for an aware time that compares, byte by byte, with those of `StampKeys`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").encode() + b"000"


class StampKeys:
    """Log times as texts that sort like times. Neighbouring lines share their second, so the last one is kept."""

    def __init__(self) -> None:
        self._last: tuple[bytes, bytes] = (b"", b"")
        self._utc = b""

    def key(self, seconds: bytes, fraction: bytes, zone: bytes) -> bytes:
        """Raises ValueError for a time that does not exist (month 13)."""
        if zone in _UTC_ZONES:
            return b"%b.%b" % (seconds, fraction.ljust(9, b"0"))
        if self._last != (seconds, zone):
            moment = datetime.fromisoformat((seconds + zone).decode())
            self._utc = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
            self._last = (seconds, zone)
        return b"%b.%b" % (self._utc, fraction.ljust(9, b"0"))
