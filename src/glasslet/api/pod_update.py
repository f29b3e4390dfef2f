"""What sources tell the pod workers: one change of one desired pod."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from glasslet.api.pod import Pod


class UpdateKind(StrEnum):
    """How a source's new view of a pod differs from its last one."""

    ADD = "add"
    UPDATE = "update"
    """Spec, labels, annotations (ours left out), deletion timestamp or deletion grace changed."""
    RECONCILE = "reconcile"
    """Only the status differs from what this agent last reported."""
    DELETE = "delete"
    """The API asks for graceful deletion (deletionTimestamp set)."""
    REMOVE = "remove"
    """The pod is no longer in the source: it has to go."""


class PodUpdate(Struct, frozen=True, kw_only=True):
    """One change. `source` is `file`, `http` or `api`; `seen_at` is the loop's time at which the change was noticed."""

    kind: UpdateKind
    pod: Pod
    source: str
    seen_at: float
