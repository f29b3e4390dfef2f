"""The mirrors that are missing, wrong or left over. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.meta import ObjectMeta, OwnerReference
from glasslet.api.node import Node
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import MIRROR_ANNOTATION, static_hash
from glasslet.api.pod_status import PodStatus

FullName = tuple[str, str]
"""(namespace, name)."""


class Create(Struct, frozen=True):
    """Create a mirror."""

    mirror: Pod


class Delete(Struct, frozen=True):
    """Delete this object, at once."""

    mirror: Pod


Step = Create | Delete


def plan(
    static: Iterable[Pod], mirrors: Iterable[Pod], *, node: Node | None, stopping: Collection[FullName], complete: bool
) -> Iterator[Step]:
    """The steps, in order. `static`: the pods that sources want; `stopping`: names of static pods that are still being
    stopped, whose mirrors show that; `complete`: every source has reported, so that a mirror of no pod is left over."""
    wanted = {full_name(pod): pod for pod in static}
    there = {full_name(mirror): mirror for mirror in mirrors}
    for name, mirror in there.items():
        if name in stopping:
            continue
        if name not in wanted:
            if complete:
                yield Delete(mirror)
        elif mirror.metadata.deletion_timestamp is not None or not shows(mirror, wanted[name]):
            yield Delete(mirror)
            yield from _create(wanted[name], node)
    for name, pod in wanted.items():
        if name not in there and name not in stopping:
            yield from _create(pod, node)


def full_name(pod: Pod) -> FullName:
    """The name that a static pod shares with its mirror."""
    return pod.metadata.namespace, pod.metadata.name


def shows(mirror: Pod, static: Pod) -> bool:
    """Whether the mirror was made from this very pod."""
    return mirror.metadata.annotations.get(MIRROR_ANNOTATION) == static_hash(static)


def mirror_of(static: Pod, node: Node) -> Pod:
    """The API object to create. It is owned by the Node object and deleted with it."""
    meta = static.metadata
    owner = OwnerReference(
        api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid, controller=True
    )
    return replace(
        static,
        api_version="v1",
        kind="Pod",
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations={**meta.annotations, MIRROR_ANNOTATION: static_hash(static)},
            owner_references=(owner,),
            finalizers=meta.finalizers,
        ),
        status=PodStatus(),
    )


def _create(static: Pod, node: Node | None) -> Iterator[Create]:
    if node is not None and node.metadata.uid and node.metadata.deletion_timestamp is None:
        yield Create(mirror_of(static, node))
