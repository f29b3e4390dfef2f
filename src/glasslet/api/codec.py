"""JSON (and decoded YAML) to typed objects and back: the one place that knows how msgspec is set up."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from glasslet.api.quantity import Quantity

T = TypeVar("T")


def _decode_hook(kind: type, value: Any) -> Any:
    if kind is Quantity:
        return Quantity.parse(value)
    raise TypeError(f"cannot decode {kind!r}")


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    raise TypeError(f"cannot encode {type(value)!r}")


_encoder = msgspec.json.Encoder(enc_hook=_encode_hook)


def decode(data: bytes | str, kind: type[T]) -> T:
    """Decodes JSON. Raises msgspec.ValidationError, whose text ends in the path of the field (`$.spec...`)."""
    return msgspec.json.decode(data, type=kind, dec_hook=_decode_hook)


def convert(value: Any, kind: type[T]) -> T:
    """Turns plain Python data (a decoded YAML document) into a typed object; errors as `decode`."""
    return msgspec.convert(value, type=kind, dec_hook=_decode_hook)


def encode(value: Any) -> bytes:
    """Compact JSON with absent and empty fields left out."""
    return _encoder.encode(value)


def to_plain(value: Any) -> Any:
    """Plain dicts, lists and strings, as `encode` would write them."""
    return msgspec.to_builtins(value, enc_hook=_encode_hook)
