"""The format of profiles: google.github.com/pprof, profile.proto, compressed by gzip. Pure.

profile = Profile((ValueType("samples", "count"),))
profile.add((leaf, ..., root), (1,))
profile.encoded() -> bytes
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import NamedTuple

from msgspec import Struct, field

DEEPEST = 128
"""Frames of one stack, from the leaf on."""


class Place(NamedTuple):
    """One frame: a line of a function."""

    function: str
    file: str
    first_line: int
    line: int


class ValueType(NamedTuple):
    """A value of each sample, and its unit: ("cpu", "nanoseconds")."""

    kind: str
    unit: str


Stack = tuple[Place, ...]
"""The leaf first."""


class Profile(Struct):
    """Values by stack. `started`: Unix nanoseconds; `period`: of `period_type`, between samples."""

    types: Sequence[ValueType]
    started: int = 0
    duration: int = 0
    period_type: ValueType | None = None
    period: int = 0
    samples: dict[tuple[Stack, str], list[int]] = field(default_factory=dict)

    def add(self, stack: Stack, values: Iterable[int], *, thread: str = "") -> None:
        """Adds to the values of this stack. `thread`: a label, the name of the thread or task."""
        known = self.samples.setdefault((stack, thread), [0] * len(self.types))
        for index, value in enumerate(values):
            known[index] += value

    def encoded(self) -> bytes:
        """The profile as a file."""
        return gzip.compress(_Encoder(self).encode(), compresslevel=1, mtime=0)


def stack_of(frame: FrameType | None) -> Stack:
    """The stack of a running thread or a suspended coroutine."""
    places: list[Place] = []
    while frame is not None and len(places) < DEEPEST:
        places.append(place_of(frame))
        frame = frame.f_back
    return tuple(places)


def place_of(frame: FrameType) -> Place:
    """Where one frame is."""
    code = frame.f_code
    return Place(code.co_qualname, code.co_filename, code.co_firstlineno, frame.f_lineno or code.co_firstlineno)


class _Encoder:
    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._strings: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._locations: dict[Place, int] = {}

    def encode(self) -> bytes:
        profile = self._profile
        out = bytearray()
        for kind in profile.types:
            out += _message(1, self._value_type(kind))
        thread = self._string("thread")
        for (stack, name), values in profile.samples.items():
            sample = _packed(1, (self._location(place) for place in stack)) + _packed(2, values)
            if name:
                sample += _message(3, _number(1, thread) + _number(2, self._string(name)))
            out += _message(2, sample)
        period = self._value_type(profile.period_type) if profile.period_type is not None else b""
        # Locations, functions and strings are complete only now.
        out += _message(3, _number(1, 1) + _number(7, 1) + _number(8, 1) + _number(9, 1))
        for place, number in self._locations.items():
            function = self._function(place)
            line = _message(4, _number(1, function) + _number(2, place.line))
            out += _message(4, _number(1, number) + _number(2, 1) + line)
        for (name, file, first), number in self._functions.items():
            text = self._string(name)
            body = _number(1, number) + _number(2, text) + _number(3, text) + _number(4, self._string(file))
            out += _message(5, body + _number(5, first))
        for string in self._strings:
            out += _message(6, string.encode("utf-8", "replace"))
        out += _number(9, profile.started) + _number(10, profile.duration)
        if period:
            out += _message(11, period) + _number(12, profile.period)
        return bytes(out)

    def _value_type(self, kind: ValueType) -> bytes:
        return _number(1, self._string(kind.kind)) + _number(2, self._string(kind.unit))

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _location(self, place: Place) -> int:
        return self._locations.setdefault(place, len(self._locations) + 1)

    def _function(self, place: Place) -> int:
        key = (place.function, place.file, place.first_line)
        return self._functions.setdefault(key, len(self._functions) + 1)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field_number: int, value: int) -> bytes:
    return _varint(field_number << 3) + _varint(value) if value else b""


def _message(field_number: int, body: bytes) -> bytes:
    return _varint(field_number << 3 | 2) + _varint(len(body)) + body


def _packed(field_number: int, values: Iterable[int]) -> bytes:
    return _message(field_number, b"".join(_varint(value) for value in values))
