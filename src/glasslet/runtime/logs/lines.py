"""Log lines as runtimes write them -> what the container wrote. Pure: bytes in, bytes out.

Two forms exist. CRI: `<time> <stdout|stderr> <tag> <text>`, tag P for a part of a line that goes on, F for the rest of
it. Docker: one JSON object a line, `log` ends in a newline where the line does. Lines in neither form are left out.
"""

from __future__ import annotations

import re
from typing import Protocol

import msgspec

from glasslet.runtime.logs.options import LogOptions, LogStream
from glasslet.runtime.logs.stamps import StampKeys, nine_digits, sort_key

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
