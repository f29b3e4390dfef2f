"""Makes a static pod of a manifest: name, UID, node, annotations.

Pure. Rules: behaviours.md §13 (static and mirror pods).
"""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.codec import encode_sorted, to_plain
from glasslet.api.pod import Pod
from glasslet.api.pod_status import PodStatus
from glasslet.api.scheduling import Toleration
from glasslet.sources.names import FILE, HASH_ANNOTATION

_STAYS_ON_SICK_NODES = Toleration(operator="Exists", effect="NoExecute")


class Origin(Struct, frozen=True):
    """The origin of a manifest: `source` is file or http, `place` the path or the URL."""

    source: str
    place: str


def static_pod(
    manifest: Pod, defaulted: Pod, origin: Origin, node_name: str, written: dict[str, Any] | None = None
) -> Pod:
    """The pod that runs. `manifest` is as written, `defaulted` has the API's defaults; `written` is the document.

    The UID is the one that a Go kubelet of v1.34 gives it, so its containers go on when one takes over from the other.
    Where that is not known (`hashed_text`), it is a hash of the manifest without defaults.
    """
    meta, spec = defaulted.metadata, defaulted.spec
    uid = meta.uid or _uid(manifest, defaulted, origin, node_name, written)
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


def _uid(manifest: Pod, defaulted: Pod, origin: Origin, node_name: str, written: dict[str, Any] | None) -> str:
    text = None
    if written is not None:
        # Nodes without static pods never load the table of fields.
        from glasslet.sources.hashed_text import hashed_text

        text = hashed_text(to_plain(defaulted), written)
    digest = hashlib.md5(encode_sorted(manifest) if text is None else text.encode(), usedforsecurity=False)
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
