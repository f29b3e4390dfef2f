"""An error in one field of an API object, printed as Kubernetes prints it.

`spec.containers[0].name: Required value`, `spec.dnsPolicy: Unsupported value: "Mine": supported values: ...`
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from msgspec import Struct

from glasslet.api.codec import to_plain


class ErrorKind(StrEnum):
    """The kinds of field errors; the text is what is printed after the path."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    NOT_SUPPORTED = "Unsupported value"
    DUPLICATE = "Duplicate value"
    FORBIDDEN = "Forbidden"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"
    NOT_FOUND = "Not found"


_MAX_SHOWN = 500
"""A manifest may hold a megabyte where a name belongs."""
_MAX_DETAIL = 2000
_WITHOUT_VALUE = (ErrorKind.REQUIRED, ErrorKind.FORBIDDEN, ErrorKind.TOO_LONG, ErrorKind.TOO_MANY)


class FieldPath(str):
    """The place of a field (`spec.containers[0].name`): text that grows by attribute, index and key."""

    __slots__ = ()

    def child(self, *names: str) -> FieldPath:
        """The field below, by its wire names."""
        return FieldPath(".".join((self, *names)) if self else ".".join(names))

    def at(self, number: int) -> FieldPath:
        """An element of a list."""
        return FieldPath(f"{self}[{number}]")

    def key(self, name: str) -> FieldPath:
        """A value of a map."""
        return FieldPath(f"{self}[{name}]")


class FieldError(Struct, frozen=True):
    """One error in one field."""

    path: str
    kind: ErrorKind
    value: Any = None
    detail: str = ""

    def __str__(self) -> str:
        text = f"{_cut(self.path)}: {self.kind}"
        if self.kind not in _WITHOUT_VALUE:
            text += f": {_shown(self.value)}"
        return f"{text}: {_cut(self.detail)}" if self.detail else text


def required(path: str, detail: str = "") -> FieldError:
    """The field must be set."""
    return FieldError(path, ErrorKind.REQUIRED, detail=detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """The value breaks a rule."""
    return FieldError(path, ErrorKind.INVALID, value, detail)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """The value is not one of a closed set; the set is printed in the order given."""
    allowed = ", ".join(json.dumps(one) for one in supported)
    return FieldError(path, ErrorKind.NOT_SUPPORTED, value, f"supported values: {allowed}" if allowed else "")


def duplicate(path: str, value: Any) -> FieldError:
    """The value must be unique in its list."""
    return FieldError(path, ErrorKind.DUPLICATE, value)


def forbidden(path: str, detail: str) -> FieldError:
    """The field may not be set here."""
    return FieldError(path, ErrorKind.FORBIDDEN, detail=detail)


def too_long(path: str, limit: int) -> FieldError:
    """The text has more than `limit` bytes."""
    return FieldError(path, ErrorKind.TOO_LONG, detail=f"may not be more than {limit} bytes")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    """The list has more than `limit` items."""
    return FieldError(path, ErrorKind.TOO_MANY, detail=f"{actual}: must have at most {limit} items")


def not_found(path: str, value: Any) -> FieldError:
    """The value names something that is not there."""
    return FieldError(path, ErrorKind.NOT_FOUND, value)


def joined(errors: Iterable[FieldError]) -> str:
    """All errors in one line; several in brackets, each once, as Kubernetes aggregates them."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    text = json.dumps(value if isinstance(value, str) else to_plain(value), separators=(",", ":"), ensure_ascii=False)
    return _cut(text, _MAX_SHOWN)


def _cut(text: str, limit: int = _MAX_DETAIL) -> str:
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"
