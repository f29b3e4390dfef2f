"""Values of the agent as plain data: maps, lists and scalars with the names of the wire. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from google.protobuf.message import Message
from msgspec import Struct


def plain(value: object) -> Any:
    """Maps, lists and scalars. Fields of structures in camelCase, absent ones left out; times as RFC 3339 in UTC."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Message):
        # Only a pod that is inspected before a call of the runtime needs it.
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(value)
    if isinstance(value, Struct):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {camel(name): plain(field) for name, field in fields if field not in (None, (), "")}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [plain(one) for one in value]
    return str(value)


def camel(name: str) -> str:
    """`exit_code` as `exitCode`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
