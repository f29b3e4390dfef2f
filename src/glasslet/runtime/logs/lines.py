"""Log lines as runtimes write them -> the output of the container. Pure: bytes in, bytes out.

Two forms exist. CRI: `<time> <stdout|stderr> <tag> <text>`, tag P for a part of a line that goes on, F for the rest of
it. Docker: one JSON object a line, `log` ends in a newline where the line does. Lines in neither form are left out.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from glasslet.runtime.logs.options import LogOptions, LogStream

_STAMP = rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)"
_CRI_LINE = re.compile(rb"^" + _STAMP + rb" (stdout|stderr) ([^ \n]*) (.*)", re.MULTILINE)
_JSON_STAMP = re.compile(_STAMP)

# The quick way: everything before the text of a whole line, the preceding newline included. It does not look at the
# digits; every match takes at least one newline, so as many matches as newlines means that each line had its prefix.
_WHOLE_LINE = re.compile(rb"\n[^ ]{20,35} std(?:out|err) F ")


class UnknownLogFormat(ValueError):
    """The file is no container log."""


class Decoder(Protocol):
    """Takes whole lines (only the very last may lack its newline) and returns the requested part."""

    def decode(self, lines: bytes) -> bytes: ...


def decoder_for(first_lines: bytes, options: LogOptions) -> Decoder:
    """Chooses by the first line of a file. Raises UnknownLogFormat."""
    first = first_lines.partition(b"\n")[0]
    if _CRI_LINE.match(first):
        return CRIDecoder(options)
    if _json_line(first) is not None:
        return DockerDecoder(options)
    # Without its content: the path may have been bent to a file that the asker must not see.
    raise UnknownLogFormat("unsupported log format")


class _Selection:
    """The filter of the options; knows whether the next piece begins a line."""

    def __init__(self, options: LogOptions) -> None:
        self._since = sort_key(options.since) if options.since is not None else None
        self._timestamps = options.timestamps
        self._stream = b"" if options.stream is LogStream.ALL else options.stream.value.lower().encode()
        self._keys = StampKeys()
        self._at_line_start = True
        self.everything = self._since is None and not self._timestamps and not self._stream

    def show(self, stamp: tuple[bytes, bytes, bytes], stream: bytes, text: bytes) -> bytes:
        """The text, with its time in front if requested and if it begins a line; empty if it is filtered out."""
        if self._stream and stream != self._stream:
            return b""
        if self._since is not None:
            try:
                if self._keys.key(*stamp) < self._since:
                    return b""
            except ValueError:
                return b""
        if self._timestamps and self._at_line_start:
            self._at_line_start = text.endswith(b"\n")
            return nine_digits(*stamp) + b" " + text
        self._at_line_start = text.endswith(b"\n")
        return text


class CRIDecoder:
    """CRI form."""

    def __init__(self, options: LogOptions) -> None:
        self._selection = _Selection(options)

    def decode(self, lines: bytes) -> bytes:
        """See `Decoder`."""
        if self._selection.everything:
            texts = _WHOLE_LINE.split(b"\n" + lines)
            if len(texts) - 1 == lines.count(b"\n") and lines.endswith(b"\n"):
                del texts[0]
                return b"\n".join(texts)
        return self._line_by_line(lines)

    def _line_by_line(self, lines: bytes) -> bytes:
        show = self._selection.show
        shown = []
        for match in _CRI_LINE.finditer(lines):
            seconds, fraction, zone, stream, tag, text = match.groups(b"")
            # More tags may follow after a colon one day; the first one is P or F.
            partial = tag == b"P" or tag.startswith(b"P:")
            if not partial and lines.startswith(b"\n", match.end()):
                text += b"\n"
            shown.append(show((seconds, fraction, zone), stream, text))
        return b"".join(shown)


class _JSONLine(msgspec.Struct):
    log: str = ""
    stream: str = ""
    time: str = ""


_json_decoder = msgspec.json.Decoder(_JSONLine)


def _json_line(line: bytes) -> tuple[tuple[bytes, bytes, bytes], bytes, bytes] | None:
    """(stamp, stream, text) of a line in Docker's form."""
    try:
        found = _json_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    stamp = _JSON_STAMP.fullmatch(found.time.encode())
    if stamp is None or found.stream not in {"stdout", "stderr"}:
        return None
    seconds, fraction, zone = stamp.groups(b"")
    return (seconds, fraction, zone), found.stream.encode(), found.log.encode("utf-8", "replace")


class DockerDecoder:
    """Docker's JSON form."""

    def __init__(self, options: LogOptions) -> None:
        self._selection = _Selection(options)

    def decode(self, lines: bytes) -> bytes:
        """See `Decoder`."""
        found = (_json_line(line) for line in lines.split(b"\n") if line)
        return b"".join([self._selection.show(*parts) for parts in found if parts is not None])


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
            try:
                self._utc = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
            except OverflowError as error:
                raise ValueError("a time beyond the calendar's ends") from error
            self._last = (seconds, zone)
        return b"%b.%b" % (self._utc, fraction.ljust(9, b"0"))
