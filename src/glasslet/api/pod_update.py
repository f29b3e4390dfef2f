"""One change of one desired pod, from a source to the pod workers."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from glasslet.api.pod import Pod


class UpdateKind(StrEnum):
    """The difference between a source's new view of a pod and its last one."""

    ADD = "add"
    UPDATE = "update"
    """Spec, labels, annotations (without the agent's own), deletion timestamp or deletion grace changed."""
    RECONCILE = "reconcile"
    """Only the status differs from what this agent last reported."""
    DELETE = "delete"
    """The API object is being deleted (deletionTimestamp set)."""
    REMOVE = "remove"
    """The pod is no longer in the source and must end."""


class PodUpdate(Struct, frozen=True, kw_only=True):
    """One change. `source` is `file`, `http` or `api`; `seen_at` is the loop's time at which the change was noticed."""

    kind: UpdateKind
    pod: Pod
    source: str
    seen_at: float
