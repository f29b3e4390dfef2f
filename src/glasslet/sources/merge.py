"""The changes between a source's last set of pods and its new one. Pure.

Updates are distinguished by spec, labels, annotations (ours left out), deletion timestamp and deletion grace; a
status-only difference is a reconcile (behaviours.md §1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_update import PodUpdate, UpdateKind
from glasslet.api.times import rfc3339_nano
from glasslet.sources.names import LOCAL_ANNOTATIONS, SEEN_ANNOTATION, SOURCE_ANNOTATION

_DELIVERY_ORDER = (UpdateKind.REMOVE, UpdateKind.ADD, UpdateKind.UPDATE, UpdateKind.DELETE, UpdateKind.RECONCILE)
_FIRST = datetime.min.replace(tzinfo=UTC)


class Known(Struct, frozen=True):
    """A pod as the source gave it, and as the agent uses it (with its own annotations)."""

    given: Pod
    pod: Pod


class Moment(Struct, frozen=True):
    """The time of a change: wall time for people, loop time for measuring."""

    wall: datetime
    loop: float


class Merged(Struct, frozen=True):
    """The source's pods now, the updates for the workers (in this order), and pods left out as duplicates."""

    known: dict[PodUID, Known]
    updates: tuple[PodUpdate, ...]
    duplicates: tuple[Pod, ...]


def merge(known: Mapping[PodUID, Known], pods: Iterable[Pod], source: str, moment: Moment) -> Merged:
    """Merges all pods that a source has now into those that it had before."""
    now: dict[PodUID, Known] = {}
    changes: dict[UpdateKind, list[Pod]] = {kind: [] for kind in UpdateKind}
    duplicates = []
    names = set()
    for given in pods:
        uid = PodUID(given.metadata.uid)
        name = (given.metadata.namespace, given.metadata.name)
        if name in names or uid in now:
            duplicates.append(given)
            continue
        names.add(name)
        before = known.get(uid)
        if before is not None and before.given is given:
            now[uid] = before
            continue
        seen = before.pod.metadata.annotations.get(SEEN_ANNOTATION) if before else None
        pod = _annotated(given, source, seen or rfc3339_nano(moment.wall))
        now[uid] = Known(given, pod)
        kind = _change(before.pod, pod) if before else UpdateKind.ADD
        if kind is not None:
            changes[kind].append(pod)
    changes[UpdateKind.REMOVE] = [before.pod for uid, before in known.items() if uid not in now]
    changes[UpdateKind.ADD].sort(key=lambda pod: pod.metadata.creation_timestamp or _FIRST)
    updates = tuple(
        PodUpdate(kind=kind, pod=pod, source=source, seen_at=moment.loop)
        for kind in _DELIVERY_ORDER
        for pod in changes[kind]
    )
    return Merged(now, updates, tuple(duplicates))


def _change(before: Pod, after: Pod) -> UpdateKind | None:
    """The kind of change since before, or None."""
    if _differs(before, after):
        return UpdateKind.DELETE if after.metadata.deletion_timestamp else UpdateKind.UPDATE
    return UpdateKind.RECONCILE if before.status != after.status else None


def _differs(before: Pod, after: Pod) -> bool:
    old, new = before.metadata, after.metadata
    return (
        before.spec != after.spec
        or old.labels != new.labels
        or old.deletion_timestamp != new.deletion_timestamp
        or old.deletion_grace_period_seconds != new.deletion_grace_period_seconds
        or _own_annotations(before) != _own_annotations(after)
    )


def _own_annotations(pod: Pod) -> dict[str, str]:
    return {key: value for key, value in pod.metadata.annotations.items() if key not in LOCAL_ANNOTATIONS}


def _annotated(pod: Pod, source: str, seen: str) -> Pod:
    annotations = {**pod.metadata.annotations, SOURCE_ANNOTATION: source, SEEN_ANNOTATION: seen}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))
