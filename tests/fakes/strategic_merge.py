"""Strategic merge patches as the API server applies them to pods and nodes, on plain data. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Plain = dict[str, Any]

MERGE_KEYS: Mapping[str, str] = {
    "conditions": "type",
    "addresses": "type",
    "hostIPs": "ip",
    "podIPs": "ip",
    "ownerReferences": "uid",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "resourceClaimStatuses": "name",
}
"""Lists that are merged element by element; others are replaced whole, but for lists of plain values that merge."""
_REMOVAL = "$deleteFromPrimitiveList/"
MERGED_SETS = frozenset({"finalizers", "podCIDRs"})


def strategic_merge(old: Plain, patch: Plain) -> Plain:
    """The object after the patch; neither argument is changed."""
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    result = dict(old)
    for key, value in patch.items():
        if key.startswith(_REMOVAL):
            name = key.removeprefix(_REMOVAL)
            result[name] = [item for item in result.get(name, []) if item not in value]
            continue
        if key.startswith("$"):
            continue
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = strategic_merge(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, list) and key in MERGE_KEYS:
            result[key] = _merge_by_key(result.get(key, []), value, MERGE_KEYS[key])
        elif isinstance(value, list) and key in MERGED_SETS:
            result[key] = list(dict.fromkeys([*result.get(key, []), *value]))
        else:
            result[key] = value
    return result


def merge_patch(old: Plain, patch: Plain) -> Plain:
    """RFC 7386."""
    result = dict(old)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = merge_patch(before if isinstance(before, dict) else {}, value)
        else:
            result[key] = value
    return result


def _merge_by_key(old: list[Plain], patch: list[Plain], key: str) -> list[Plain]:
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    result = list(old)
    for item in patch:
        place = next((n for n, one in enumerate(result) if one.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            if place is not None:
                del result[place]
        elif place is None:
            result.append(strategic_merge({}, item))
        else:
            result[place] = strategic_merge(result[place], item)
    return result
