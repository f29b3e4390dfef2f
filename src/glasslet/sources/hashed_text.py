"""The text that a Go kubelet of v1.34 hashes for the UID of a static pod: the pod as Go prints its internal type.

Equal texts give equal UIDs, so static pods go on when one kubelet takes over from the other. The text has every field
of every struct in Go's order (`hashed_fields.json`, printed from the types by tests/go/static-pods), with its Go type
and its value, after defaults. Absent and empty differ for lists and maps, and a quantity keeps traces of how it was
written: both are read from the manifest. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from glasslet.sources.hashed_quantity import NotKnown, quantity_text

_Written = Any
"""The part of the manifest that belongs to a value, None where it has none."""
_QUANTITIES = "core.ResourceList"
_LISTS_BY_NAME = {_QUANTITIES: "map[core.ResourceName]resource.Quantity"}
_RESOURCES = "core.ResourceRequirements"
_OF_THE_POD = "core.PodSecurityContext"
_MOVED = {
    "HostNetwork": "hostNetwork", "HostPID": "hostPID", "HostIPC": "hostIPC",
    "ShareProcessNamespace": "shareProcessNamespace", "HostUsers": "hostUsers",
}  # fmt: skip
"""Fields that the pod's spec has in version 1, and its security context has in the internal type."""
_NO_TIME = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"
_NUMBER = re.compile(r"u?int(8|16|32|64)?")


def hashed_text(defaulted: dict[str, Any], written: dict[str, Any]) -> str | None:
    """The text of a pod without status, from its plain form with defaults and as it was written; None if not known.

    Not known are those with times, managed fields, and quantities that no manifest has.
    """
    if written.get("status"):
        return None
    try:
        return f"(*core.Pod){_struct('core.Pod', _with_moved(defaulted), _with_moved(written))}"
    except NotKnown:
        return None


def _with_moved(pod: dict[str, Any]) -> dict[str, Any]:
    spec = pod.get("spec") or {}
    moved = {f" {name}": spec[name] for name in _MOVED.values() if name in spec}
    context = (spec.get("securityContext") or {}) | moved
    return {**pod, "status": {}, "spec": {**spec, "securityContext": context}}


@cache
def _fields() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = json.loads(files(__package__).joinpath("hashed_fields.json").read_text())
    return found


def _struct(kind: str, value: dict[str, Any], written: _Written) -> str:
    written = written if isinstance(written, dict) else {}
    if kind == _RESOURCES:
        written = _with_requests_from_limits(written)
    parts = []
    for name, field_kind, key in _fields()[kind]:
        if kind == "v1.TypeMeta":
            part, source = None, None
        elif key == "":
            part, source = value, written
        else:
            key = f" {_MOVED[name]}" if kind == _OF_THE_POD and name in _MOVED else key
            part, source = value.get(key), written.get(key)
        parts.append(f"{name}:({field_kind}){_text(field_kind, part, source)}")
    return f"{{{' '.join(parts)}}}"


def _with_requests_from_limits(written: dict[str, Any]) -> dict[str, Any]:
    """A limit without a request is the request as well, to the letter."""
    limits, requests = written.get("limits") or {}, written.get("requests") or {}
    return {**written, "requests": {**limits, **requests} or written.get("requests")}


def _text(kind: str, value: Any, written: _Written) -> str:
    if kind.startswith("*"):
        return "<nil>" if value is None else _text(kind[1:], value, written)
    if special := _SPECIAL.get(kind):
        return special(value, written)
    kind = _LISTS_BY_NAME.get(kind, kind)
    if kind.startswith("[]"):
        return _list(kind[2:], value, written)
    if kind.startswith("map["):
        return _map(kind.partition("]")[2], value, written)
    if kind in _fields():
        return _struct(kind, value or {}, written)
    return _scalar(kind, value)


def _list(kind: str, value: Any, written: _Written) -> str:
    sources = written if isinstance(written, list) else []
    if not value:
        return "<nil>" if written is None else "[]"
    if kind in ("uint8", "v1.ManagedFieldsEntry") or (sources and len(sources) != len(value)):
        raise NotKnown(kind)
    sources = sources or [None] * len(value)
    return f"[{' '.join(_text(kind, one, source) for one, source in zip(value, sources, strict=True))}]"


def _map(kind: str, value: Any, written: _Written) -> str:
    sources = written if isinstance(written, dict) else {}
    if not value:
        return "<nil>" if written is None else "map[]"
    keys = sorted(value, key=lambda key: str(key).encode())
    return f"map[{' '.join(f'{key}:{_text(kind, value[key], sources.get(key))}' for key in keys)}]"


def _scalar(kind: str, value: Any) -> str:
    if kind == "bool":
        return "true" if value else "false"
    if _NUMBER.fullmatch(kind):
        return str(value or 0)
    return "" if value is None else str(value)


def _number_or_text(value: Any, written: _Written) -> str:
    number, text = (0, value) if isinstance(value, str) else (value or 0, "")
    return f"{{Type:(intstr.Type){int(isinstance(value, str))} IntVal:(int32){number} StrVal:(string){text}}}"


def _time(value: Any, written: _Written) -> str:
    if value is not None:
        raise NotKnown("a time")
    return _NO_TIME


def _resource_list(value: Any, written: _Written) -> str:
    sources = written if isinstance(written, dict) else {}
    if not value:
        return "<nil>" if written is None else "map[]"
    keys = sorted(value, key=lambda key: str(key).encode())
    return f"map[{' '.join(f'{key}:{quantity_text(sources.get(key), to_milli=True)}' for key in keys)}]"


def _quantity(value: Any, written: _Written) -> str:
    return quantity_text("" if value is None and written is None else written, to_milli=False)


_SPECIAL: dict[str, Callable[[Any, _Written], str]] = {
    "v1.Time": _time,
    "intstr.IntOrString": _number_or_text,
    "resource.Quantity": _quantity,
    _QUANTITIES: _resource_list,
}
