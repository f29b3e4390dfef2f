"""The smallest strategic merge patch from the API's status of a pod to the agent's. Pure.

Only what this agent owns is touched: conditions of others and fields that controllers fill stay as they are. The server
merges list elements by their key (conditions by `type`, IPs by `ip`); other lists are replaced whole.
"""

from __future__ import annotations

from typing import Any

import msgspec

from glasslet.api.codec import to_plain
from glasslet.api.object import PodUID
from glasslet.api.pod_conditions import BY_KUBELET, DISRUPTION_TARGET, OWNED
from glasslet.api.pod_status import PodCondition, PodStatus

_NOT_OURS = ("nominated_node_name", "resource_claim_statuses", "extended_resource_claim_status")
_MERGED_BY_IP = ("host_ips", "pod_ips")
_FIELDS = tuple((f.name, f.encode_name) for f in msgspec.structs.fields(PodStatus) if f.name not in _NOT_OURS)
"""Names here and on the wire; looked up once, as that costs more than a whole patch."""


def status_patch(uid: PodUID, theirs: PodStatus, ours: PodStatus) -> dict[str, Any] | None:
    """The patch body, None when nothing differs. It carries the UID, so that a new pod of the same name is refused."""
    changes: dict[str, Any] = {}
    for name, wire_name in _FIELDS:
        old, new = getattr(theirs, name), getattr(ours, name)
        if old == new:
            continue
        if name == "conditions":
            if conditions := _conditions(old, new):
                changes["conditions"] = conditions
        elif name in _MERGED_BY_IP:
            changes[wire_name] = [{"$patch": "replace"}, *to_plain(new)]
        else:
            # An explicit null removes the field; leaving it out would keep the old value.
            changes[wire_name] = to_plain(new) or None
    return {"metadata": {"uid": uid}, "status": changes} if changes else None


def _conditions(old: tuple[PodCondition, ...], new: tuple[PodCondition, ...]) -> list[dict[str, Any]]:
    before = {c.type: c for c in old}
    now = {c.type for c in new}
    changed = [_explicit(c) for c in new if _ours(c) and before.get(c.type) != c]
    return changed + [{"$patch": "delete", "type": kind} for kind in before if kind in OWNED and kind not in now]


def _ours(condition: PodCondition) -> bool:
    """The agent's own conditions. Foreign ones in its list are copies, which may be outdated."""
    return condition.type in OWNED or (condition.type == DISRUPTION_TARGET and condition.reason == BY_KUBELET)


def _explicit(condition: PodCondition) -> dict[str, Any]:
    """The condition with all fields: a missing one would keep its earlier value."""
    plain: dict[str, Any] = to_plain(condition)
    for absent in ("reason", "message", "lastProbeTime", "lastTransitionTime"):
        plain.setdefault(absent, None)
    return plain
