"""JSON (and decoded YAML) to typed objects and back: the only module that configures msgspec for API objects.

The common case costs one native call. Only when it fails is the input read a second time: `null` in a list, map or
value field means "absent" to Kubernetes, so nulls are dropped and the decoding is repeated before an error is raised.
Whatever the input, the only exception is DecodeError, and its text is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_type_hints

import msgspec

from glasslet.api.quantity import Quantity
from glasslet.api.times import whole_seconds

T = TypeVar("T")

_MISMATCH = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_PLACE = re.compile(r" - at `(key in )?\$\.?([^`]*)`$")
_WORDS = {
    "object": "an object", "array": "a list", "str": "a string", "int": "a whole number", "float": "a number",
    "bool": "true or false", "null": "nothing", "datetime": "a time", "bytes": "base64 text",
}  # fmt: skip
_RANGES = {
    "Integer value out of range": "want a whole number of at most 64 bits",
    "Number out of range": "want a number that 64 bits hold",
    "Invalid RFC3339 encoded datetime": "want a time in RFC 3339, like 2026-01-02T03:04:05Z",
    "Invalid base64 encoded string": "want base64 text",
    "Expected `datetime` with a timezone component": "want a time with its zone, like 2026-01-02T03:04:05Z",
}
_NO_OFFSET = timedelta(0)
_TOO_DEEP = "nested too deeply"
_MAX_SHOWN = 500
_BAD_INPUT = (msgspec.MsgspecError, ValueError, ArithmeticError)
"""Errors of values that no type describes: not JSON, not UTF-8, numbers and times out of range."""


class DecodeError(msgspec.ValidationError):
    """Input that is not the wanted type. `path` is the field (`spec.containers[0].name`, empty for the whole input)."""

    def __init__(self, path: str, message: str) -> None:
        self.path = _cut(path)
        self.message = _cut(message)
        super().__init__(f"{self.path}: {self.message}" if path else self.message)


def decode(data: bytes | str, kind: type[T]) -> T:
    """Decodes JSON. Raises DecodeError, also for input that is not JSON."""
    try:
        decoded: T = _decoder(cast(Hashable, kind)).decode(data)
    except msgspec.ValidationError as error:
        return _without_nulls(lambda: msgspec.json.decode(data), kind, error)
    except RecursionError:
        raise DecodeError("", _TOO_DEEP) from None
    except _BAD_INPUT as error:
        raise DecodeError("", f"this is not JSON: {error}") from None
    return decoded


def convert(value: Any, kind: type[T]) -> T:
    """Turns plain Python data (a decoded YAML document) into a typed object; errors as `decode`."""
    try:
        try:
            converted = msgspec.convert(value, type=kind, dec_hook=_decode_hook)
        except msgspec.ValidationError as error:
            converted = _without_nulls(lambda: value, kind, error)
        # YAML can spell half of a surrogate pair; a text that holds one cannot be written anywhere.
        _encoder.encode(converted)
    except DecodeError:
        raise
    except RecursionError:
        raise DecodeError("", _TOO_DEEP) from None
    except UnicodeEncodeError:
        raise DecodeError(_not_unicode(value) or "", "want Unicode text, got half of a surrogate pair") from None
    except _BAD_INPUT as error:
        raise DecodeError("", f"this cannot be read: {error}") from None
    return converted


def encode(value: Any) -> bytes:
    """Compact JSON with absent and empty fields left out. Times of API objects are written in whole seconds."""
    return _encoder.encode(_wire_times(value))


def encode_sorted(value: Any) -> bytes:
    """As `encode`, all keys in alphabetical order: equal objects give equal bytes, whatever order they were read in."""
    return _sorted_encoder.encode(_wire_times(value))


def to_plain(value: Any) -> Any:
    """Plain dicts, lists and strings, as `encode` would write them."""
    return msgspec.json.decode(encode(value))


def _decode_hook(kind: type, value: Any) -> Any:
    if kind is Quantity:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError("want a quantity like 500m or 1Gi")
        return Quantity.parse(value)
    raise TypeError(f"cannot decode {kind!r}")


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    raise TypeError(f"cannot encode {type(value)!r}")


_encoder = msgspec.json.Encoder(enc_hook=_encode_hook)
_sorted_encoder = msgspec.json.Encoder(enc_hook=_encode_hook, order="sorted")


def _wire_times(value: Any) -> Any:
    """The same value with every time cut to whole seconds; shared where nothing changes."""
    if isinstance(value, msgspec.Struct):
        changed = {}
        for name in _fields_with_times(type(value)):
            held = getattr(value, name)
            if held and (new := _wire_times(held)) is not held:
                changed[name] = new
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, datetime):
        return value if value.microsecond == 0 and value.utcoffset() == _NO_OFFSET else whole_seconds(value)
    if isinstance(value, tuple | list):
        items = [_wire_times(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else type(value)(items)
    return value


@cache
def _fields_with_times(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields below which a time may stand: most of a pod has none and is not searched."""
    hints = get_type_hints(kind)
    return tuple(name for name in kind.__struct_fields__ if _may_hold_times(hints[name]))


def _may_hold_times(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return bool(_fields_with_times(hint))
    return hint is datetime or any(_may_hold_times(one) for one in get_args(hint))


@cache
def _decoder(kind: Any) -> Any:
    # A fraction for a quantity stays text: as a float it would lose digits, or be out of range.
    return msgspec.json.Decoder(kind, dec_hook=_decode_hook, float_hook=str)


def _without_nulls(read: Callable[[], Any], kind: type[T], first: msgspec.ValidationError) -> T:
    from glasslet.api.nulls import fill_nulls

    try:
        return msgspec.convert(fill_nulls(read(), kind), type=kind, dec_hook=_decode_hook)
    except msgspec.ValidationError as error:
        raise _clear(error) from None
    except (RecursionError, *_BAD_INPUT):
        raise _clear(first) from None


def _clear(error: msgspec.ValidationError) -> DecodeError:
    """msgspec's message in common words; it names types, never values: those may be secret."""
    text = str(error)
    path = ""
    if place := _PLACE.search(text):
        text, path = text[: place.start()], place[2]
        if place[1]:
            text += " (a key)"
    text = _RANGES.get(text, text)
    text = _MISMATCH.sub(lambda match: f"want {_in_words(match[1])}, got {_in_words(match[2])}", text)
    return DecodeError(path, text)


def _not_unicode(value: Any, path: str = "") -> str | None:
    """The path of the first text that UTF-8 cannot hold."""
    if isinstance(value, str):
        return None if value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value) else path
    inside: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        inside = ((f"{path}.{name}" if path else str(name), held) for name, held in value.items())
    elif isinstance(value, list):
        inside = ((f"{path}[{number}]", held) for number, held in enumerate(value))
    return next((found for where, held in inside if (found := _not_unicode(held, where)) is not None), None)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}... ({len(text)} characters)"


def _in_words(kinds: str) -> str:
    return " or ".join(
        _WORDS.get(one.strip(), one.strip()) for one in kinds.split("|") if one.strip() != "null" or kinds == "null"
    )
