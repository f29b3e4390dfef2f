"""Every problem of one pod manifest, each with its field: for `glasslet check`, and the report on broken ones.

The kubelet stops at the first value of a wrong type. This goes on without that value, so that one reading shows all.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec

from glasslet.api.codec import DecodeError, convert
from glasslet.api.defaults.pod import default_pod
from glasslet.api.pod import Pod
from glasslet.api.validation.pod import pod_errors
from glasslet.config.document import parse_path
from glasslet.runtime.images.reference import InvalidImageName, parse_image_name
from glasslet.sources.names import FILE
from glasslet.sources.static import Origin, static_pod

_MOST = 50
"""Problems of types per manifest; each costs one decoding."""


class FieldProblem(NamedTuple):
    """One problem. `field` is a path below the pod, "" for the manifest as a whole; `text` begins with the field."""

    field: str
    text: str


def kubelet_problems(value: dict[str, Any], node_name: str) -> list[FieldProblem]:
    """The problems for which the kubelet refuses a pod: types, required fields, names, values."""
    pod, found = _decoded(value)
    return found if pod is None else [*found, *_validation_problems(pod, node_name, found)]


def all_problems(value: dict[str, Any], node_name: str) -> list[FieldProblem]:
    """As `kubelet_problems`, and what makes a pod wait or do less than meant: unknown fields, image names."""
    pod, found = _decoded(value)
    found += unknown_fields(value)
    if pod is not None:
        found += [*_validation_problems(pod, node_name, found), *_image_problems(pod)]
    return found


def unknown_fields(value: Any, kind: Any = Pod, path: str = "") -> Iterator[FieldProblem]:
    """Fields that the API does not have; the kubelet ignores them."""
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from unknown_fields(one, kind, f"{path}[{number}]")
    elif isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        inside = _fields(kind)
        for name, held in value.items():
            here = f"{path}.{name}" if path else name
            if name not in inside:
                import difflib

                near = difflib.get_close_matches(name, inside, n=1)
                hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(sorted(inside))}"
                yield FieldProblem(here, f"{here}: unknown field; {hint}")
            elif here != "status":
                yield from unknown_fields(held, inside[name], here)


def _decoded(value: dict[str, Any]) -> tuple[Pod | None, list[FieldProblem]]:
    """The pod without the values of a wrong type, and these values; None if what is left is no pod."""
    left = copy.deepcopy(value)
    found: list[FieldProblem] = []
    while len(found) < _MOST:
        try:
            return convert(left, Pod), found
        except DecodeError as error:
            found.append(FieldProblem(error.path, str(error)))
            if not _dropped(left, parse_path(error.path)):
                break
    return None, found


def _dropped(value: Any, path: list[str | int]) -> bool:
    """Removes the value from its mapping. False if there is none: without a list's element, others would move."""
    for step in path[:-1]:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    if not path or not isinstance(value, dict) or path[-1] not in value:
        return False
    del value[path[-1]]
    return True


def _validation_problems(written: Pod, node_name: str, known: list[FieldProblem]) -> Iterator[FieldProblem]:
    if not written.metadata.name:
        if not _is_known("metadata.name", known):
            yield FieldProblem("metadata.name", "metadata.name: Required value: name is needed for the pod")
        written = msgspec.structs.replace(written, metadata=msgspec.structs.replace(written.metadata, name="x"))
    pod = static_pod(written, default_pod(written), Origin(FILE, ""), node_name)
    for error in pod_errors(pod):
        if not _is_known(error.path, known):
            yield FieldProblem(error.path, str(error))


def _is_known(path: str, known: list[FieldProblem]) -> bool:
    """Whether the field, or one around it, was dropped: its absence is no second problem."""
    return any(path == one.field or path.startswith((f"{one.field}.", f"{one.field}[")) for one in known)


def _image_problems(pod: Pod) -> Iterator[FieldProblem]:
    for name, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
        for number, container in enumerate(containers):
            if not container.image or container.image != container.image.strip():
                continue
            try:
                parse_image_name(container.image)
            except InvalidImageName as error:
                path = f"spec.{name}[{number}].image"
                allowed = "allowed: [registry/]name[:tag][@digest], the name in lower case"
                yield FieldProblem(path, f"{path}: {error}; {allowed}")


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields by their wire names, each with the type that a look inside needs."""
    hints = get_type_hints(kind)
    pairs = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return {wire: _inner(hints[name]) for wire, name in pairs}


def _inner(hint: Any) -> Any:
    """The struct within `X | None`, `tuple[X, ...]` and the like; None for maps and plain values."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint
    if getattr(hint, "__origin__", None) is dict:
        return None
    return next((found for one in get_args(hint) if (found := _inner(one)) is not None), None)
