"""Comparing and joining snapshots of one pod. Pure."""

from __future__ import annotations

from msgspec import structs

from glasslet.api.object import SandboxID
from glasslet.runtime.model import ObservedPod, ObservedSandbox


def same_content(old: ObservedPod | None, new: ObservedPod | None) -> bool:
    """Whether two snapshots have the same content, whatever their times."""
    if old is None or new is None:
        return old is new
    return (
        old.sandboxes == new.sandboxes
        and old.containers == new.containers
        and old.name == new.name
        and old.namespace == new.namespace
    )


def differs_from_list(known: ObservedPod | None, listed: ObservedPod | None) -> bool:
    """Whether a listing (ids and states, no details) contradicts what is known, so that the pod has to be read."""
    if known is None or listed is None:
        return known is not listed
    return _outline(known) != _outline(listed)


def with_last_ips(old: ObservedPod | None, new: ObservedPod | None) -> ObservedPod | None:
    """`new`, with the addresses that `old` knew of sandboxes that are not ready any more.

    Runtimes forget the addresses when the network of a sandbox is torn down, but a terminated pod keeps its podIPs.
    """
    if old is None or new is None or all(s.ips or s.ready for s in new.sandboxes):
        return new
    known = {s.id: s.ips for s in old.sandboxes if s.ips}
    if not known:
        return new
    return structs.replace(new, sandboxes=tuple(_with_ips(s, known) for s in new.sandboxes))


def _with_ips(sandbox: ObservedSandbox, known: dict[SandboxID, tuple[str, ...]]) -> ObservedSandbox:
    if sandbox.ready or sandbox.ips or sandbox.id not in known:
        return sandbox
    return structs.replace(sandbox, ips=known[sandbox.id])


def _outline(pod: ObservedPod) -> tuple[frozenset[tuple[str, bool]], frozenset[tuple[str, str]]]:
    sandboxes = frozenset((s.id, s.ready) for s in pod.sandboxes)
    containers = frozenset((c.id, c.phase.value) for c in pod.containers)
    return sandboxes, containers
