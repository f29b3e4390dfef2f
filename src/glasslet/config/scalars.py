"""The values of plain YAML scalars. The rules are those of the YAML reader that Kubernetes uses, not PyYAML's:
`y` and `on` are booleans, `0644` is octal, dates and `1:30` stay strings."""

from __future__ import annotations

import re

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BASED = {"0x": 16, "0X": 16, "0b": 2, "0B": 2, "0o": 8, "0O": 8}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NUMBER_START = frozenset("+-.0123456789")

Scalar = str | int | float | bool | None


class NotFinite(ValueError):
    """NaN or infinity: YAML can say it, JSON and the Kubernetes API cannot."""


def resolve_plain(text: str) -> Scalar:
    """The value of an unquoted, untagged scalar. Raises NotFinite."""
    if text in _NULLS:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text[0] in _NUMBER_START:
        return _number(text)
    return text


def resolve_tagged(text: str, tag: str) -> Scalar:
    """The value of a scalar with a core tag (`tag:yaml.org,2002:int`). Raises ValueError for any other."""
    kind = tag.removeprefix("tag:yaml.org,2002:")
    if tag == "!" or kind == "str":
        return text
    wanted: dict[str, type | tuple[type, ...]] = {
        "int": int, "float": (int, float), "bool": bool, "null": type(None),
    }  # fmt: skip
    if kind not in wanted:
        raise ValueError(f"tag {tag} is not supported")
    value = resolve_plain(text)
    if not isinstance(value, wanted[kind]) or (isinstance(value, bool) and kind != "bool"):
        raise ValueError(f"the value of a {kind} tag is not of that type")
    return float(value) if kind == "float" and isinstance(value, int) else value


def _number(text: str) -> Scalar:
    if _NOT_FINITE.fullmatch(text):
        raise NotFinite("NaN and infinity are not allowed")
    plain = text.replace("_", "")
    sign, digits = (plain[0], plain[1:]) if plain[0] in "+-" else ("", plain)
    whole = _whole(digits)
    if whole is not None and whole < 2**64:
        return -whole if sign == "-" else whole
    if _FLOAT.fullmatch(plain):
        value = float(plain)
        if value in (float("inf"), float("-inf")):
            raise NotFinite("the number is out of range")
        return value
    return text


def _whole(digits: str) -> int | None:
    base = _BASED.get(digits[:2])
    if base is None:
        # A leading zero means octal; 08 is no octal number and is read as a float below, as upstream reads it.
        base, body = (8, digits) if digits.startswith("0") and len(digits) > 1 else (10, digits)
    else:
        body = digits[2:]
    if not body.isascii() or not body.isalnum() or len(body) > 64:
        return None
    try:
        return int(body, base)
    except ValueError:
        return None
