"""Makes a static pod of a manifest: name, UID, node, annotations.

Pure. Rules: behaviours.md §13 (static and mirror pods).
"""

from __future__ import annotations

import hashlib

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.codec import encode_sorted
from glasslet.api.pod import Pod
from glasslet.api.pod_status import PodStatus
from glasslet.api.scheduling import Toleration
from glasslet.sources.names import FILE, HASH_ANNOTATION

_STAYS_ON_SICK_NODES = Toleration(operator="Exists", effect="NoExecute")


class Origin(Struct, frozen=True):
    """The origin of a manifest: `source` is file or http, `place` the path or the URL."""

    source: str
    place: str


def static_pod(manifest: Pod, defaulted: Pod, origin: Origin, node_name: str) -> Pod:
    """The pod that runs. `manifest` is as written (the UID is made of its content), `defaulted` has the API's defaults.

    The UID comes from the manifest without defaults, so that an agent with other defaults keeps the pods of its
    predecessor; upstream hashes the defaulted pod, but no other implementation can reproduce its bytes anyway.
    """
    meta, spec = defaulted.metadata, defaulted.spec
    uid = meta.uid or _uid(manifest, origin, node_name)
    if origin.source == FILE:
        spec = replace(spec, tolerations=_with_toleration(spec.tolerations))
    return replace(
        defaulted,
        metadata=replace(
            meta,
            uid=uid,
            name=f"{meta.name}-{node_name.lower()}",
            namespace=meta.namespace or "default",
            annotations={**meta.annotations, HASH_ANNOTATION: uid},
        ),
        spec=replace(spec, node_name=node_name),
        status=PodStatus(phase="Pending"),
    )


def _uid(manifest: Pod, origin: Origin, node_name: str) -> str:
    digest = hashlib.md5(encode_sorted(manifest), usedforsecurity=False)
    place = f"host:{node_name}file:{origin.place}" if origin.source == FILE else f"url:{origin.place}"
    digest.update(place.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _with_toleration(tolerations: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Static pods are not evicted when the node has problems; a like toleration with a time limit loses the limit."""
    changed = tuple(
        _STAYS_ON_SICK_NODES if replace(one, toleration_seconds=None) == _STAYS_ON_SICK_NODES else one
        for one in tolerations
    )
    return changed if _STAYS_ON_SICK_NODES in changed else (*changed, _STAYS_ON_SICK_NODES)
