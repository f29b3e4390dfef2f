"""The syntax of flag values: text to plain data, as it would stand in a configuration file.

Every parser raises ValueError saying what is allowed, never what was given: a value may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from glasslet.config.duration import Duration
from glasslet.config.taint_syntax import parse_taints

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*)", re.ASCII)
_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)(?:[-+][0-9A-Za-z.+-]*)?", re.ASCII)


def parse_bool(text: str) -> bool:
    """Go's booleans: 1, t, T, true, True, TRUE and their opposites."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("want true or false")


def parse_integer(text: str, low: int, high: int) -> int:
    """A whole number, also as 0x1F, 0o17, 017 or 0b11."""
    allowed = f"want a whole number from {low} to {high}"
    if len(text) > 100 or not _INTEGER.fullmatch(text):
        raise ValueError(allowed)
    digits = text.replace("_", "")
    octal = re.fullmatch(r"([+-]?)0([0-9]+)", digits)
    try:
        value = int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)
    except ValueError:
        raise ValueError(allowed) from None
    if not low <= value <= high:
        raise ValueError(allowed)
    return value


def _ip(text: str) -> str:
    import ipaddress

    # Leading zeros in IPv4 are read as decimal, as upstream's lenient parser does.
    plain = re.sub(r"(?<![0-9.])0+(?=[0-9])|(?<=\.)0+(?=[0-9])", "", text) if "." in text else text
    try:
        ipaddress.ip_address(plain)
    except ValueError:
        raise ValueError("want an IP address") from None
    return text


def _duration(text: str) -> str:
    try:
        return str(Duration.parse(text))
    except ValueError:
        raise ValueError("want a duration such as 300ms, 10s or 2h45m") from None


def _quantity(text: str) -> str:
    from glasslet.api.quantity import Quantity

    try:
        Quantity.parse(text)
    except ValueError:
        raise ValueError("want a quantity such as 512Ki") from None
    return text


def _strings(text: str) -> list[str]:
    import csv

    if not text:
        return []
    try:
        return next(csv.reader([text], strict=True))
    except (csv.Error, StopIteration):
        raise ValueError("want values separated by commas") from None


def _pairs(separator: str, allowed: str) -> Callable[[str], dict[str, str]]:
    def parse(text: str) -> dict[str, str]:
        made = {}
        for part in filter(None, text.split(",")):
            key, found, value = part.partition(separator)
            if not found:
                raise ValueError(allowed)
            made[key.strip()] = value.strip()
        return made

    return parse


def _entry(text: str) -> dict[str, str]:
    key, found, value = text.partition("=")
    if not found:
        raise ValueError("want one name=value")
    return {key.strip(): value.strip()}


def _labels(text: str) -> dict[str, str]:
    parts = (part.partition("=") for part in text.split(",") if part)
    return {key.strip(): value.strip() for key, _, value in parts}


def _gates(text: str) -> dict[str, bool]:
    made = {}
    for part in filter(None, text.split(",")):
        name, found, value = part.partition("=")
        if not found:
            raise ValueError(f"want name=true or name=false, a value is missing for {name.strip()[:100]}")
        try:
            made[name.strip()] = parse_bool(value.strip())
        except ValueError:
            raise ValueError(f"want true or false for {name.strip()[:100]}") from None
    return made


def _headers(text: str) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    for part in filter(None, text.split(",")):
        name, found, value = part.partition(":")
        if not found:
            raise ValueError("want name:value, separated by commas")
        made.setdefault(name.strip(), []).append(value.strip())
    return made


def _taints(text: str) -> list[dict[str, str]]:
    return parse_taints(text.split(",")) if text else []


def _reserved_memory(text: str) -> list[dict[str, Any]]:
    allowed = "want node:type=quantity[,type=quantity...], nodes separated by ;, types memory or hugepages-<size>"
    made = []
    for node, found, limits in (part.partition(":") for part in text.split(";") if text):
        if not found or not re.fullmatch(r"\d{1,9}", node, re.ASCII):
            raise ValueError(allowed)
        amounts = {}
        for kind, equals, amount in (limit.partition("=") for limit in limits.split(",")):
            if not equals or not (kind == "memory" or kind.startswith("hugepages-")):
                raise ValueError(allowed)
            amounts[kind] = _quantity(amount)
        made.append({"numaNode": int(node), "limits": amounts})
    return made


def _vmodule(text: str) -> list[dict[str, Any]]:
    made = []
    for part in filter(None, text.split(",")):
        pattern, _, level = part.partition("=")
        if not pattern or not level.isascii() or not level.isdigit() or int(level[:12]) > 2**31 - 1:
            raise ValueError("want pattern=N, separated by commas, N from 0 to 2147483647")
        made.append({"filePattern": pattern, "verbosity": int(level)})
    return made


def _version(text: str) -> str:
    from glasslet.version import KUBERNETES_VERSION

    if text == "raw":
        return text
    if not text.startswith("v"):
        return "true" if parse_bool(text) else "false"
    wanted = _VERSION.fullmatch(KUBERNETES_VERSION)
    given = _VERSION.fullmatch(text)
    if given is None or wanted is None or given.groups() != wanted.groups():
        raise ValueError(f"want true, false, raw or a version of {KUBERNETES_VERSION} such as {KUBERNETES_VERSION}-1")
    return text


PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": parse_bool,
    "string": str,
    "ip": _ip,
    "duration": _duration,
    "quantity": _quantity,
    "int": lambda text: parse_integer(text, -(2**63), 2**63 - 1),
    "int32": lambda text: parse_integer(text, -(2**31), 2**31 - 1),
    "int64": lambda text: parse_integer(text, -(2**63), 2**63 - 1),
    "level": lambda text: parse_integer(text, 0, 2**31 - 1),
    "strings": _strings,
    "map": _pairs("=", "want name=value, separated by commas"),
    "map-entry": _entry,
    "thresholds": _pairs("<", "want signal<quantity, separated by commas"),
    "labels": _labels,
    "gates": _gates,
    "headers": _headers,
    "taints": _taints,
    "reserved-memory": _reserved_memory,
    "vmodule": _vmodule,
    "version": _version,
}


def combine(kind: str, earlier: Any, later: Any) -> Any:
    """The value after a further occurrence of the flag: lists and maps add up, everything else is replaced."""
    match kind:
        case "strings" | "reserved-memory" | "vmodule":
            return [*earlier, *later]
        case "map" | "map-entry" | "thresholds" | "labels" | "gates":
            return {**earlier, **later}
        case "headers":
            names = dict.fromkeys([*earlier, *later])
            return {name: [*earlier.get(name, []), *later.get(name, [])] for name in names}
        case _:
            return later
