"""JSON (and decoded YAML) to typed objects and back: the one place that knows how msgspec is set up.

The common case costs one native call. Only when that fails is the input looked at again: `null` in a list, map or value
field means "absent" to Kubernetes, so nulls are dropped and the decoding tried once more before anybody is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

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


_NO_OFFSET = timedelta(0)


class DecodeError(msgspec.ValidationError):
    """Input that is not the wanted type. `path` is the field (`spec.containers[0].name`, empty for the whole input)."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def decode(data: bytes | str, kind: type[T]) -> T:
    """Decodes JSON. Raises DecodeError, also for what is not JSON at all."""
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_decode_hook)
    except msgspec.ValidationError as error:
        return _without_nulls(lambda: msgspec.json.decode(data), kind, error)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError("", f"this is not JSON: {error}") from None
    except RecursionError:
        raise DecodeError("", "nested too deeply") from None


def convert(value: Any, kind: type[T]) -> T:
    """Turns plain Python data (a decoded YAML document) into a typed object; errors as `decode`."""
    try:
        return msgspec.convert(value, type=kind, dec_hook=_decode_hook)
    except msgspec.ValidationError as error:
        return _without_nulls(lambda: value, kind, error)
    except RecursionError:
        raise DecodeError("", "nested too deeply") from None


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
    """The fields below which a time may stand: most of a pod has none and need not be looked at."""
    hints = get_type_hints(kind)
    return tuple(name for name in kind.__struct_fields__ if _may_hold_times(hints[name]))


def _may_hold_times(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return bool(_fields_with_times(hint))
    return hint is datetime or any(_may_hold_times(one) for one in get_args(hint))


def _without_nulls(read: Callable[[], Any], kind: type[T], first: msgspec.ValidationError) -> T:
    from glasslet.api.nulls import fill_nulls

    try:
        return msgspec.convert(fill_nulls(read(), kind), type=kind, dec_hook=_decode_hook)
    except msgspec.ValidationError as error:
        raise _clear(error) from None
    except (msgspec.DecodeError, RecursionError):
        raise _clear(first) from None


def _clear(error: msgspec.ValidationError) -> DecodeError:
    """msgspec's message in words a person knows; it names types, never values: those may be secret."""
    text = str(error)
    path = ""
    if place := _PLACE.search(text):
        text, path = text[: place.start()], place[2]
        if place[1]:
            text += " (a key)"
    text = _MISMATCH.sub(lambda match: f"want {_in_words(match[1])}, got {_in_words(match[2])}", text)
    return DecodeError(path, text)


def _in_words(kinds: str) -> str:
    return " or ".join(
        _WORDS.get(one.strip(), one.strip()) for one in kinds.split("|") if one.strip() != "null" or kinds == "null"
    )
