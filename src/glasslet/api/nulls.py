"""`null` in the input, read as Kubernetes reads it.

A field that is null is absent; a null in a list or a map is the zero value of its element (`command: [null]` is one
empty argument). This walk knows the types, so that it does not drop a map's keys; it runs only after a decoding failed.
"""

from __future__ import annotations

import types
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from glasslet.api.quantity import Quantity

_ZEROS: dict[Any, Any] = {str: "", int: 0, float: 0.0, bool: False, Quantity: "0"}


def fill_nulls(value: Any, kind: Any) -> Any:
    """Plain data of a value of type `kind`, without nulls where the type allows none."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return fill_nulls(value, next(one for one in get_args(kind) if one is not type(None)))
    if isinstance(value, dict):
        if isinstance(kind, type) and issubclass(kind, Struct):
            members = _members(kind)
            return {name: fill_nulls(held, members.get(name, Any)) for name, held in value.items() if held is not None}
        if origin is dict:
            element = get_args(kind)[1]
            return {name: _element(held, element) for name, held in value.items()}
    if isinstance(value, list) and origin in (tuple, list):
        element = get_args(kind)[0]
        return [_element(held, element) for held in value]
    return value


def _element(value: Any, kind: Any) -> Any:
    if value is None:
        return {} if isinstance(kind, type) and issubclass(kind, Struct) else _ZEROS.get(kind)
    return fill_nulls(value, kind)


@cache
def _members(kind: type[Struct]) -> dict[str, Any]:
    """Wire name to type of a struct's fields."""
    hints = get_type_hints(kind)
    return {field.encode_name: hints[field.name] for field in fields(kind)}
