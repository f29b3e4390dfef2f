"""Changing frozen values without copying what stays the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

S = TypeVar("S", bound=Struct)
T = TypeVar("T")


def with_changes(value: S, **fields: Any) -> S:
    """The value itself when every field already is what is wanted, else a copy with those fields."""
    changed = {name: new for name, new in fields.items() if not _same(getattr(value, name), new)}
    return replace(value, **changed) if changed else value


def each(items: tuple[T, ...], change: Callable[[T], T]) -> tuple[T, ...]:
    """`change` applied to every item; the tuple itself when no item changed."""
    changed = tuple(map(change, items))
    return items if all(new is old for new, old in zip(changed, items, strict=True)) else changed


def _same(old: Any, new: Any) -> bool:
    """Identity for structures (they are shared when unchanged), equality for plain values."""
    return old is new or (isinstance(new, str | int) and type(old) is type(new) and old == new)
