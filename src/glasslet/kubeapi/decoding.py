"""Decoding of single API objects: one that cannot be decoded never takes another along.

A LIST or a WATCH holds objects of many owners. If one of them is not what its type says, its metadata is decoded field
by field, so that the object has a name in findings and its deletion is still understood.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields, replace

from glasslet.api.codec import DecodeError, decode
from glasslet.api.meta import ObjectMeta

T = TypeVar("T")

UNDECODABLE = (msgspec.DecodeError, ValueError, ArithmeticError, TypeError, RecursionError)
"""Errors of decoding: also those of a field's own parser."""
_UNUSED = ("managed_fields",)


class UndecodableObject(Struct, frozen=True, kw_only=True):
    """An object that cannot be decoded. `problem`: the field and the reason, never a value. `metadata` holds the fields
    that can be decoded; `status` is None if the object has none or it is what cannot be decoded."""

    metadata: ObjectMeta
    status: Struct | None
    problem: str

    def __str__(self) -> str:
        name = "/".join(filter(None, (self.metadata.namespace, self.metadata.name)))
        return f'"{name}" cannot be decoded: {self.problem}'


class _Parts(Struct, frozen=True):
    metadata: Raw = Raw(b"{}")
    status: Raw = Raw(b"null")


def decode_object(data: bytes, kind: type[T]) -> T | UndecodableObject:
    """The object, or its metadata and the reason. Raises nothing."""
    try:
        return decode(data, kind)
    except DecodeError as error:
        return _undecodable(data, kind, str(error))
    except UNDECODABLE as error:
        return _undecodable(data, kind, type(error).__name__)


def updated(known: T, newer: UndecodableObject) -> T:
    """The last decoded form of an object with what can be decoded of a newer one: metadata and status."""
    status = {} if newer.status is None else {"status": newer.status}
    return replace(known, metadata=newer.metadata, **status)  # type: ignore[type-var] # every API object is a Struct


def _undecodable(data: bytes, kind: type, problem: str) -> UndecodableObject:
    try:
        parts = decode(data, _Parts)
    except UNDECODABLE:
        return UndecodableObject(metadata=ObjectMeta(), status=None, problem=problem)
    return UndecodableObject(
        metadata=_metadata(bytes(parts.metadata)), status=_status(bytes(parts.status), kind), problem=problem
    )


def _status(data: bytes, kind: type) -> Struct | None:
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        return None
    wanted = next((field.type for field in fields(kind) if field.name == "status"), None)
    if wanted is None:
        return None
    try:
        status: Struct = decode(data, wanted)
    except UNDECODABLE:
        return None
    return status


def _metadata(data: bytes) -> ObjectMeta:
    try:
        parts = decode(data, dict[str, Raw])
    except UNDECODABLE:
        return ObjectMeta()
    decoded: dict[str, Any] = {}
    for field in fields(ObjectMeta):
        if field.name in _UNUSED or field.encode_name not in parts:
            continue
        try:
            decoded[field.name] = decode(bytes(parts[field.encode_name]), field.type)
        except UNDECODABLE:
            # The field keeps its default: the object is reported as undecodable anyway.
            continue
    return ObjectMeta(**decoded)
