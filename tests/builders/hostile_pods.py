"""Pods with every field, of which a few hold something else: the ends of numbers, wrong types, texts of any length."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

Place = tuple[str | int, ...]
VALUES: list[Any] = [
    None, True, [], {}, "", 0, -1, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 1.5, 1e63, "1e63", "1e999999999",
    "9" * 5000, "\x00", "\ud800", "%", "a" * 3000, "2026-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00", [[]], [None], {"a": None}, {"": ""}, [{}], {"a": {}},
]  # fmt: skip
NUMBERS = (0, -1, 2**31, 2**63 - 1, -(2**63))
AMOUNTS = ("0", "-1", "1e63", "9e999999", "-1e63", "0.0000001")
_AMOUNTS_BELOW = {"limits", "requests", "overhead", "sizeLimit", "divisor"}


@cache
def whole_pod() -> Any:
    """A pod that sets every field, as plain data."""
    text = (Path(__file__).parents[1] / "data/manifests/everything.yaml").read_text()
    return json.loads(json.dumps(yaml.safe_load(text), default=str))


@st.composite
def changed_pods(draw: st.DrawFn) -> Any:
    """The whole pod with one to three places changed."""
    value = whole_pod()
    for _ in range(draw(st.integers(1, 3))):
        value = put(value, draw(st.sampled_from(_all_places())), draw(st.sampled_from(VALUES)))
    return value


def pods_with_numbers_at_their_ends() -> list[Any]:
    """One pod for each number or quantity of the whole pod and each end."""
    pods = []
    for place in _all_places():
        held = _get(whole_pod(), place)
        if isinstance(held, int) and not isinstance(held, bool):
            pods += [put(whole_pod(), place, number) for number in NUMBERS]
        elif isinstance(held, str) and _AMOUNTS_BELOW.intersection(place):
            pods += [put(whole_pod(), place, amount) for amount in AMOUNTS]
    return pods


def pods_with_amount(amount: str) -> list[Any]:
    """One pod for each quantity of the whole pod, which is replaced by this one."""
    places = [place for place in _all_places() if _AMOUNTS_BELOW.intersection(place)]
    return [put(whole_pod(), place, amount) for place in places if isinstance(_get(whole_pod(), place), str)]


def put(value: Any, path: Place, new: Any) -> Any:
    """A copy with that place changed; unchanged where an earlier change took the place away."""
    if not path:
        return new
    key = path[0]
    here = isinstance(value, dict) and key in value
    if not here and not (isinstance(value, list) and isinstance(key, int) and key < len(value)):
        return value
    changed = value.copy()
    changed[key] = put(value[key], path[1:], new)
    return changed


@cache
def _all_places() -> list[Place]:
    return _places(whole_pod())


def _places(value: Any, path: Place = ()) -> list[Place]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, held in inside for place in _places(held, (*path, key)))]


def _get(value: Any, path: Place) -> Any:
    for key in path:
        value = value[key]
    return value
