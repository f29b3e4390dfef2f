"""The patch that turns one node into another: metadata and status, never the spec. Pure.

It is a strategic merge patch. `conditions` merge by type, so that conditions of others are never touched, and a
directive keeps their order. The API declares `addresses` as merging by type as well, although a node may have two of
one type: a list that was there before is replaced whole. Other lists are replaced by the server anyway.
"""

from __future__ import annotations

from typing import Any

from glasslet.api.codec import to_plain
from glasslet.api.node import Node

Plain = dict[str, Any]


def node_patch(old: Node, new: Node) -> Plain:
    """The patch; empty if nothing differs."""
    patch: Plain = {}
    before, after = to_plain(old.metadata), to_plain(new.metadata)
    meta = _differences(
        {name: before.get(name, {}) for name in ("labels", "annotations")},
        {name: after.get(name, {}) for name in ("labels", "annotations")},
    )
    if meta:
        patch["metadata"] = meta
    status = _status(to_plain(old.status), to_plain(new.status))
    if status:
        patch["status"] = status
    return patch


def _status(old: Plain, new: Plain) -> Plain:
    patch = _differences(old, new)
    if "conditions" in patch:
        patch["conditions"] = _changed_conditions(old.get("conditions", []), new.get("conditions", []))
        patch["$setElementOrder/conditions"] = [{"type": one["type"]} for one in new.get("conditions", [])]
    if patch.get("addresses") and old.get("addresses"):
        patch["addresses"] = [*patch["addresses"], {"$patch": "replace"}]
    return patch


def _changed_conditions(old: list[Plain], new: list[Plain]) -> list[Plain]:
    before = {one["type"]: one for one in old}
    changed = []
    for one in new:
        difference = _differences(before.get(one["type"], {}), one)
        if difference:
            changed.append({"type": one["type"], **difference})
    return changed


def _differences(old: Plain, new: Plain) -> Plain:
    """The difference that turns `old` into `new`: null removes, lists are replaced whole."""
    patch: Plain = {}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = _differences(before, value)
            if inner:
                patch[name] = inner
        elif value != before:
            patch[name] = value
    for name in old.keys() - new.keys():
        patch[name] = None
    return patch
