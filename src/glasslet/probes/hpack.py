"""HPACK, the header compression of HTTP/2 (RFC 7541): the part that a client with one call needs. Pure.

Headers are written uncompressed; all forms are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

_LENGTHS = (
    "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca"
    "d67777777777777777777777878djde6f56565666577666567655677777fbeds"
    "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn"
    "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq"
)
"""The length of each byte's Huffman code, in base 31. The code is canonical: the lengths define it."""
_BASE = 31
_LONGEST = 30
_MOST_PADDING = 7

_STATIC_NAMES = (
    "accept-language", "accept-ranges", "accept", "access-control-allow-origin", "age", "allow", "authorization",
    "cache-control", "content-disposition", "content-encoding", "content-language", "content-length",
    "content-location", "content-range", "content-type", "cookie", "date", "etag", "expect", "expires", "from", "host",
    "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "last-modified", "link",
    "location", "max-forwards", "proxy-authenticate", "proxy-authorization", "range", "referer", "refresh",
    "retry-after", "server", "set-cookie", "strict-transport-security", "transfer-encoding", "user-agent", "vary",
    "via", "www-authenticate",
)  # fmt: skip
_STATIC: tuple[tuple[str, str], ...] = (
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    *((name, "") for name in _STATIC_NAMES),
)
_TABLE_BYTES = 4096
_ENTRY_BYTES = 32
"""The size of an entry beyond its texts."""
_MOST_SHIFT = 21
"""Numbers have up to 28 bits beyond their first byte, also those that are padded with zeros."""


class BadHeaders(ValueError):
    """A header block that breaks the rules."""


def encode_header(name: str, value: str) -> bytes:
    """A header, uncompressed and not indexed."""
    return b"\x00" + _encode_text(name) + _encode_text(value)


class HeaderDecoder:
    """Reads the header blocks of one connection, in order: later ones refer to earlier ones."""

    def __init__(self) -> None:
        self._recent: list[tuple[str, str]] = []
        self._size = 0
        self._limit = _TABLE_BYTES

    def decode(self, block: bytes) -> dict[str, str]:
        """The headers of a block; of two with one name the first. Raises BadHeaders."""
        found: dict[str, str] = {}
        at = 0
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = _integer(block, at, 7)
                name, value = self._entry(index)
            elif first & 0xE0 == 0x20:
                self._limit, at = _integer(block, at, 5)
                self._evict()
                continue
            else:
                remembered = first & 0xC0 == 0x40
                index, at = _integer(block, at, 6 if remembered else 4)
                if index:
                    name = self._entry(index)[0]
                else:
                    name, at = _text(block, at)
                value, at = _text(block, at)
                if remembered:
                    self._recent.insert(0, (name, value))
                    self._size += _size(name, value)
                    self._evict()
            found.setdefault(name, value)
        return found

    def _entry(self, index: int) -> tuple[str, str]:
        if 0 < index <= len(_STATIC):
            return _STATIC[index - 1]
        recent = index - len(_STATIC) - 1
        if not 0 <= recent < len(self._recent):
            raise BadHeaders(f"no header with index {index}")
        return self._recent[recent]

    def _evict(self) -> None:
        if self._limit > _TABLE_BYTES:
            raise BadHeaders("header table larger than agreed")
        while self._size > self._limit:
            self._size -= _size(*self._recent.pop())


def _size(name: str, value: str) -> int:
    return len(name) + len(value) + _ENTRY_BYTES


def _encode_text(text: str) -> bytes:
    data = text.encode()
    if len(data) < 0x7F:
        return bytes((len(data),)) + data
    rest, length = len(data) - 0x7F, bytearray(b"\x7f")
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    length.append(rest)
    return bytes(length) + data


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    shift = 0
    while at < len(block) and shift <= _MOST_SHIFT:
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise BadHeaders("number that does not end")


def _text(block: bytes, at: int) -> tuple[str, int]:
    if at >= len(block):
        raise BadHeaders("header that does not end")
    compressed = bool(block[at] & 0x80)
    length, at = _integer(block, at, 7)
    data = block[at : at + length]
    if len(data) < length:
        raise BadHeaders("header that does not end")
    return (decompress(data) if compressed else data).decode("latin-1"), at + length


def decompress(data: bytes) -> bytes:
    """The text behind a Huffman code. Raises BadHeaders."""
    codes = _codes()
    out = bytearray()
    code = length = 0
    for bit in _bits(data):
        code, length = code << 1 | bit, length + 1
        byte = codes.get((length, code))
        if byte is not None:
            out.append(byte)
            code = length = 0
        elif length >= _LONGEST:
            raise BadHeaders("no such code")
    if length > _MOST_PADDING or code != (1 << length) - 1:
        raise BadHeaders("text that ends within a code")
    return bytes(out)


def _bits(data: bytes) -> Iterator[int]:
    for byte in data:
        for shift in range(7, -1, -1):
            yield byte >> shift & 1


@lru_cache(maxsize=1)
def _codes() -> dict[tuple[int, int], int]:
    """Bytes by the length and value of their code: counted up in the order of lengths, then of bytes."""
    lengths = [int(digit, _BASE) for digit in _LENGTHS]
    codes: dict[tuple[int, int], int] = {}
    code = before = 0
    for byte in sorted(range(256), key=lambda one: (lengths[one], one)):
        code <<= lengths[byte] - before
        before = lengths[byte]
        codes[before, code] = byte
        code += 1
    return codes
