"""Answers and requests to JSON and back."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T", bound="WireMessage")

_encoder = msgspec.json.Encoder()


class WireMessage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all answers and requests."""


class ErrorAnswer(WireMessage, frozen=True, kw_only=True):
    """Why a request was refused. `field`, `value` and `allowed` are set if one input was wrong; `nearest`: names that
    may have been meant."""

    error: str
    field: str = ""
    value: str = ""
    allowed: str = ""
    nearest: tuple[str, ...] = ()


def encode(answer: WireMessage) -> bytes:
    """Compact JSON."""
    return _encoder.encode(answer)


def decode(data: bytes | str, kind: type[T]) -> T:
    """One answer. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(data, type=kind)


def to_plain(answer: WireMessage) -> dict[str, object]:
    """The answer as dicts, lists and strings, with the names of the wire."""
    plain: dict[str, object] = msgspec.to_builtins(answer)
    return plain
