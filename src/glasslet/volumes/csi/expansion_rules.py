"""Whether a volume that grew behind its claim is to grow on this node, and what its claim then says. Pure.

controller has grown the volume ──▶ NodeResizePending ──▶ NodeResizeInProgress ──▶ done: capacity is the new size
                                                refused for good ──▶ NodeResizeInfeasible
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from glasslet.api.codec import to_plain
from glasslet.api.persistent_volume import PersistentVolumeClaim
from glasslet.api.times import rfc3339

PENDING, IN_PROGRESS, INFEASIBLE = "NodeResizePending", "NodeResizeInProgress", "NodeResizeInfeasible"
NOT_REQUIRED: Final = "volume.kubernetes.io/node-expansion-not-required"
_STORAGE: Final = "storage"
_ERROR: Final = "NodeResizeError"
_OF_RESIZING: Final = frozenset({"FileSystemResizePending", "Resizing", "ControllerResizeError", "NodeResizeError"})

Plain = dict[str, Any]


class ExpansionNeed(StrEnum):
    """What the agent does."""

    NONE = "none"
    """It has the size, or nobody asks this node."""
    WAIT = "wait"
    """The controller is not done, or has given up."""
    EXPAND = "expand"
    EXPAND_HERE_TOO = "expand here too"
    """Another node has told the claim; each node of a shared volume grows its own view."""


def expansion_need(claim: PersistentVolumeClaim, wanted: int) -> ExpansionNeed:
    """For a volume whose size shall be `wanted` bytes."""
    has, status = storage_of(claim), claim.status.allocated_resource_statuses.get(_STORAGE, "")
    if not _recovers(claim):
        return ExpansionNeed.EXPAND if has < wanted else ExpansionNeed.NONE
    if status in (PENDING, IN_PROGRESS):
        return ExpansionNeed.EXPAND
    if has >= wanted and not status:
        shared = "ReadWriteMany" in claim.spec.access_modes and NOT_REQUIRED not in claim.metadata.annotations
        return ExpansionNeed.EXPAND_HERE_TOO if shared else ExpansionNeed.NONE
    return ExpansionNeed.WAIT


def target_size(claim: PersistentVolumeClaim, wanted: int) -> int:
    """The size to ask for, in bytes."""
    allocated = claim.status.allocated_resources.get(_STORAGE)
    return allocated.value() if allocated is not None else wanted


def storage_of(claim: PersistentVolumeClaim) -> int:
    """The size that the claim says it has, 0 for none."""
    found = claim.status.capacity.get(_STORAGE)
    return found.value() if found is not None else 0


def spec_changed(claim: PersistentVolumeClaim, target: int) -> bool:
    """Whether the user asks for another size meanwhile."""
    asked = claim.spec.resources.requests.get(_STORAGE)
    return asked is not None and asked.value() != target


def begun(claim: PersistentVolumeClaim) -> Plain:
    """The merge patch of a claim whose volume begins to grow; {} where it says so."""
    if not _recovers(claim) or claim.status.allocated_resource_statuses.get(_STORAGE) == IN_PROGRESS:
        return {}
    return _patch(claim, {"allocatedResourceStatuses": {_STORAGE: IN_PROGRESS}})


def finished(claim: PersistentVolumeClaim, target: int) -> Plain:
    """The merge patch of a claim whose volume has grown to `target` bytes."""
    others = [to_plain(one) for one in claim.status.conditions if one.type not in _OF_RESIZING]
    status: Plain = {"capacity": {_STORAGE: _quantity(claim, target)}, "conditions": others}
    if _STORAGE in claim.status.allocated_resource_statuses:
        status["allocatedResourceStatuses"] = {_STORAGE: None}
    return _patch(claim, status)


def failed(claim: PersistentVolumeClaim, said: str, *, infeasible: bool, now: datetime) -> Plain:
    """The merge patch of a claim whose volume could not grow. A condition that is there keeps its words and time."""
    conditions = [to_plain(one) for one in claim.status.conditions]
    if not any(one["type"] == _ERROR and one["status"] == "True" for one in conditions):
        conditions = [one for one in conditions if one["type"] != _ERROR]
        message = f"failed to expand pvc with {said}"
        told = {"type": _ERROR, "status": "True", "lastTransitionTime": rfc3339(now), "message": message}
        conditions.append(told)
    status: Plain = {"conditions": conditions}
    if infeasible:
        status["allocatedResourceStatuses"] = {_STORAGE: INFEASIBLE}
    return _patch(claim, status)


def _recovers(claim: PersistentVolumeClaim) -> bool:
    """Whether the controller keeps account of the expansion in the claim."""
    status = claim.status
    return _STORAGE in status.allocated_resources or _STORAGE in status.allocated_resource_statuses


def _quantity(claim: PersistentVolumeClaim, target: int) -> str:
    """The size as the claim has it, so that 1Gi stays 1Gi."""
    for amounts in (claim.status.allocated_resources, claim.spec.resources.requests):
        found = amounts.get(_STORAGE)
        if found is not None and found.value() == target:
            return str(found)
    return str(target)


def _patch(claim: PersistentVolumeClaim, status: Plain) -> Plain:
    return {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
