"""Just enough of DER (X.690) to read certificates and signing requests that this node owns.

The cryptography library would cost a running agent 16 MB for the few fields that matter here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, OBJECT_ID = 0x01, 0x02, 0x03, 0x04, 0x06
UTF8, PRINTABLE, TELETEX, IA5, BMP = 0x0C, 0x13, 0x14, 0x16, 0x1E
UTC_TIME, GENERALIZED_TIME = 0x17, 0x18
SEQUENCE, SET = 0x30, 0x31


class BadDER(ValueError):
    """Not the structure that was expected."""


class Element(Struct, frozen=True):
    """One value: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    whole: bytes


def element(data: bytes) -> Element:
    """The first value of `data`. Raises BadDER."""
    if len(data) < 2:
        raise BadDER("data ends early")
    length, start = data[1], 2
    if length & 0x80:
        count = length & 0x7F
        if not 1 <= count <= 4 or len(data) < 2 + count:
            raise BadDER("length cannot be read")
        length, start = int.from_bytes(data[2 : 2 + count]), 2 + count
    if len(data) < start + length:
        raise BadDER("data ends early")
    return Element(data[0], data[start : start + length], data[: start + length])


def elements(data: bytes) -> Iterator[Element]:
    """All values that stand side by side."""
    while data:
        one = element(data)
        yield one
        data = data[len(one.whole) :]


def inside(one: Element, tag: int) -> list[Element]:
    """The values in a container of this tag. Raises BadDER if it is another one."""
    if one.tag != tag:
        raise BadDER(f"want tag {tag:#x}, found {one.tag:#x}")
    return list(elements(one.content))


def text(one: Element) -> str:
    """A string of any of the usual types."""
    encoding = {UTF8: "utf-8", BMP: "utf-16-be"}.get(one.tag, "latin-1")
    return one.content.decode(encoding, "replace")


def moment(one: Element) -> datetime:
    """A time, UTC. Two-digit years are of 1950..2049 (RFC 5280)."""
    digits = one.content.decode("ascii", "replace")
    try:
        if one.tag == UTC_TIME:
            century = "19" if digits[:2] >= "50" else "20"
            digits = century + digits
        return datetime.strptime(digits, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise BadDER("time cannot be read") from None
