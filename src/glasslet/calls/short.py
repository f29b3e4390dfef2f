"""Values in short, for the arguments and results of calls. Never more than a line, never a secret.

Only text that is known to be a name is shown: a parameter, field or function whose last word is in `_NAMES`. All other
text, and all bytes, become their length; so do the entries of maps and lists. No method of a value is called but those
of built-in types, so a large or strange object costs no more than a small one.
"""

from __future__ import annotations

import re
from collections import deque
from datetime import timedelta
from enum import Enum
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType
from typing import Any

LONGEST_TEXT = 60
"""Characters of one value."""
LONGEST_LINE = 240
"""Characters of all arguments of a call."""
_NAMES = frozenset(
    (
        "action", "cgroup", "container", "device", "digest", "driver", "file", "folder", "gate", "group", "handler",
        "id", "image", "interface", "kind", "method", "mode", "name", "namespace", "node", "on", "outcome", "path",
        "phase", "plugin", "pod", "reason", "ref", "resource", "root", "runtime", "sandbox", "station", "subject",
        "target", "type", "uid", "unit", "verb", "version", "volume", "where",
    )
)  # fmt: skip
"""Last words of the names of parameters, fields and functions whose text is a name."""
_SECRET_ROOMS = ("glasslet/identity/", "glasslet/kubeapi/objects/", "glasslet/kubeapi/credentials")
"""Code that handles credentials and the data of Secrets and ConfigMaps: no text at all is shown."""
_SECRET_WORDS = frozenset(("auth", "credential", "credentials", "env", "environment", "password", "secret", "token"))
_FIELDS = ("namespace", "name", "id", "uid", "kind")
_WORD = re.compile(r"[a-z]+|[A-Z][a-z]*|[A-Z]+|\d+")


def arguments_of(frame: FrameType, file: str) -> str:
    """The arguments of a call that just began: `name=main, attempt=0`."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:count]
    if not names:
        return ""
    values = frame.f_locals
    parts, room = [], LONGEST_LINE
    for name in names:
        if name in ("self", "cls") or name not in values:
            continue
        part = f"{name}={_short(values[name], shows_text=shows_text(name, file))}"
        if len(part) > room:
            parts.append("…")
            break
        parts.append(part)
        room -= len(part) + 2
    return ", ".join(parts)


def result_of(value: object, code: CodeType, file: str) -> str:
    """The result of a call, "" for None."""
    return "" if value is None else _short(value, shows_text=shows_text(code.co_name, file))


def shows_text(name: str, file: str) -> bool:
    """Whether text under this name is itself a name."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or file.startswith(_SECRET_ROOMS):
        return False
    return words[-1] in _NAMES and _SECRET_WORDS.isdisjoint(words)


def _short(value: object, *, shows_text: bool = False, nested: bool = False) -> str:
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is float:
        return _number(value)
    if kind is str or kind is bytes or kind is bytearray:
        return _text(value, shows_text=shows_text)
    if isinstance(value, Enum):
        return str(value._value_)[:LONGEST_TEXT] if isinstance(value._value_, str | int) else kind.__name__
    if type(value) is timedelta:
        return f"{value.total_seconds():g} s"
    if kind in (FunctionType, MethodType, BuiltinFunctionType):
        return str(getattr(value, "__name__", "function"))[:LONGEST_TEXT]
    if isinstance(value, type):
        return value.__name__[:LONGEST_TEXT]
    if isinstance(value, list | tuple | set | frozenset | dict | deque) and not hasattr(kind, "_fields"):
        return _container(value, nested=nested)
    return _object(value)


def _number(value: object) -> str:
    # A huge int would take long to print.
    if type(value) is int and value.bit_length() > 256:
        return f"int of {value.bit_length()} bits"
    return repr(value)


def _text(value: Any, *, shows_text: bool) -> str:
    if shows_text and type(value) is str and len(value) <= 4 * LONGEST_TEXT:
        text = value if len(value) <= LONGEST_TEXT else f"{value[: LONGEST_TEXT - 1]}…"
        return text if text.isprintable() and text else repr(text)[:LONGEST_TEXT]
    if not value:
        return '""'
    unit = "characters" if type(value) is str else "bytes"
    return f"<{len(value)} {unit}>"


def _container(value: Any, *, nested: bool) -> str:
    base = next(kind for kind in (list, tuple, dict, deque, set, frozenset) if isinstance(value, kind))
    size: int = base.__len__(value)
    opening, closing = ("{", "}") if base in (dict, set, frozenset) else ("[", "]")
    if size == 0:
        return opening + closing
    if size <= 3 and not nested and base in (list, tuple):
        return opening + ", ".join(_short(item, nested=True) for item in base.__iter__(value)) + closing
    return f"{opening}{size}{closing}"


def _object(value: object) -> str:
    """The class, and the object's name if it has one as a plain field."""
    kind = type(value)
    if _is_named(kind.__name__):
        meta = _plain_field(value, "metadata")
        named = meta if meta is not None else value
        parts = [part for field in _FIELDS if isinstance(part := _plain_field(named, field), str) and part]
        if parts:
            shown = "/".join(parts[:2]) if _plain_field(named, "namespace") else parts[0]
            return f"{kind.__name__} {_text(shown, shows_text=True)}"
    return kind.__name__[:LONGEST_TEXT]


def _is_named(class_name: str) -> bool:
    return _SECRET_WORDS.isdisjoint(word.lower() for word in _WORD.findall(class_name))


def _plain_field(value: object, field: str) -> object:
    """A field of a dataclass, msgspec structure or named tuple; None if it is anything else, such as a property."""
    kind = type(value)
    for holder in ("__struct_fields__", "__dataclass_fields__", "_fields"):
        names = getattr(kind, holder, None)
        if isinstance(names, tuple | dict) and field in names:
            try:
                return object.__getattribute__(value, field)
            except AttributeError:
                return None
    return None
