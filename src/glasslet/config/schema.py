"""Checks a plain tree (decoded YAML or JSON) against the types of KubeletConfiguration, field by field.

Unlike a decoder it does not stop at the first mismatch: the caller hears of every unknown field and every wrong type.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct, field

from glasslet.api.quantity import Quantity
from glasslet.config.document import Path, format_path
from glasslet.config.duration import Duration
from glasslet.config.kubelet_configuration import Int32, Int64, KubeletConfiguration, UInt32

_WANTED: dict[Any, str] = {
    bool: "true or false", str: "text", float: "a number", Int32: "a whole number from -2147483648 to 2147483647",
    Int64: "a whole number of 64 bits", UInt32: "a whole number from 0 to 4294967295",
    Duration: "a duration such as 1m30s", Quantity: "a quantity such as 100Mi", datetime: "a time",
    list[str]: "a list of text", dict[str, str]: "a map of text to text",
    dict[str, bool]: "a map of text to true or false",
    dict[str, list[str]]: "a map of text to lists of text", dict[str, Quantity]: "a map of text to quantities",
}  # fmt: skip
Tree = dict[str, Any]
_REFUSED: Any = object()


class Mismatch(Struct, frozen=True):
    """A value of the wrong type: `wanted` says what is allowed, `found` what is there (its kind, not its content)."""

    path: tuple[str | int, ...]
    wanted: str
    found: str

    @property
    def field(self) -> str:
        """The path as text."""
        return format_path(self.path) or "the document"

    @property
    def message(self) -> str:
        """One line of text."""
        return f"{self.field}: want {self.wanted}, got {self.found}"


class Unknown(Struct, frozen=True):
    """A field that does not exist; `nearest` is the name probably meant, empty if none is near."""

    path: tuple[str | int, ...]
    nearest: str

    @property
    def message(self) -> str:
        """Upstream's text of strict decoding, with a hint."""
        hint = f", did you mean {self.nearest!r}?" if self.nearest else ""
        return f'unknown field "{format_path(self.path)}"{hint}'


class Checked(Struct):
    """The result of the check: `tree` holds only known fields of the right type, without nulls."""

    tree: Tree
    mismatches: list[Mismatch] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)


def check_types(tree: Any, *, keep_nulls: bool = False) -> Checked:
    """Compares a tree with KubeletConfiguration. With `keep_nulls`, nulls stay (they remove fields in a merge)."""
    result = Checked({})
    if not isinstance(tree, dict):
        result.mismatches.append(Mismatch((), "a map of fields", _kind_of(tree)))
        return result
    result.tree = _section(tree, KubeletConfiguration, (), result, keep_nulls)
    return result


def build(tree: Tree) -> KubeletConfiguration:
    """The typed object of a tree that `check_types` has passed. Raises ValueError if it has not."""
    try:
        return msgspec.convert(tree, KubeletConfiguration, dec_hook=decode_leaf)
    except msgspec.ValidationError as error:
        raise ValueError(f"the configuration does not fit its types: {error}") from error


def decode_leaf(kind: type, value: Any) -> Any:
    """msgspec's hook for our own types. Raises ValueError or TypeError."""
    if kind is Duration:
        if isinstance(value, int) and not isinstance(value, bool):
            return Duration.of_nanoseconds(value)
        if not isinstance(value, str):
            raise TypeError("want a duration such as 1m30s")
        return Duration.parse(value)
    if kind is Quantity:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise TypeError("want a quantity such as 100Mi")
        return Quantity.parse(value)
    raise TypeError(f"cannot decode {kind!r}")


@cache
def fields_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Wire name to declared type (unions with None unwrapped, Annotated kept)."""
    hints = get_type_hints(kind, include_extras=True)
    return {item.encode_name: _without_none(hints[item.name]) for item in msgspec.structs.fields(kind)}


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        return next(part for part in get_args(kind) if part is not NoneType)
    return kind


def _section(value: Tree, kind: type[msgspec.Struct], path: Path, result: Checked, keep_nulls: bool) -> Tree:
    fields = fields_of(kind)
    made: Tree = {}
    for name, item in value.items():
        place = (*path, name)
        declared = fields.get(name)
        if declared is None:
            result.unknown.append(Unknown(place, _nearest(name, fields)))
        elif item is not None:
            good = _accept(item, declared, place, result, keep_nulls)
            if good is not _REFUSED:
                made[name] = good
        elif keep_nulls:
            made[name] = None
    return made


def _accept(value: Any, kind: Any, path: Path, result: Checked, keep_nulls: bool) -> Any:
    """The value if it fits, else _REFUSED after the mismatch has been noted."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if isinstance(value, dict):
            return _section(value, kind, path, result, keep_nulls)
        return _refuse(path, "a map of fields", value, result)
    if get_origin(kind) is list and issubclass(item_kind := get_args(kind)[0], msgspec.Struct):
        if not isinstance(value, list):
            return _refuse(path, "a list of maps", value, result)
        items = [_accept(item, item_kind, (*path, index), result, False) for index, item in enumerate(value)]
        return [item for item in items if item is not _REFUSED]
    if get_origin(kind) is dict and isinstance(value, dict):
        return _accept_map(value, get_args(kind)[1], path, result, keep_nulls)
    return _accept_leaf(value, kind, path, result)


def _accept_map(value: Tree, kind: Any, path: Path, result: Checked, keep_nulls: bool) -> Any:
    made = {}
    for key, item in value.items():
        if item is not None:
            good = _accept_leaf(item, kind, (*path, key), result)
            if good is not _REFUSED:
                made[key] = good
        elif keep_nulls:
            made[key] = None
    return made


def _accept_leaf(value: Any, kind: Any, path: Path, result: Checked) -> Any:
    wanted = _WANTED.get(kind, "another type")
    if isinstance(value, float) and value.is_integer() and kind in (Int32, Int64, UInt32):
        value = int(value)
    if kind is Duration and not isinstance(value, str) and tuple(path) != ("logging", "flushFrequency"):
        return _refuse(path, wanted, value, result)
    try:
        msgspec.convert(value, kind, dec_hook=decode_leaf)
    except (msgspec.ValidationError, ValueError, TypeError):
        return _refuse(path, wanted, value, result)
    return value


def _refuse(path: Path, wanted: str, value: Any, result: Checked) -> Any:
    result.mismatches.append(Mismatch(tuple(path), wanted, _kind_of(value)))
    return _REFUSED


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case int():
            return f"the number {value}" if abs(value) < 10**20 else "a huge number"
        case float():
            return f"the number {value}"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a map"


def _nearest(name: str, known: dict[str, Any]) -> str:
    for candidate in known:
        if candidate.lower() == name.lower():
            return candidate
    import difflib

    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.75)), "")
