"""The origin of a pod, from its annotations: API server, file, URL; or the mirror of a static pod."""

from __future__ import annotations

from typing import Final

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod

SOURCE_ANNOTATION: Final = "kubernetes.io/config.source"
"""file, http or api."""
HASH_ANNOTATION: Final = "kubernetes.io/config.hash"
"""The UID of a static pod."""
SEEN_ANNOTATION: Final = "kubernetes.io/config.seen"
"""When this agent first saw the pod, RFC3339 with nine fraction digits."""
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""On the API object that mirrors a static pod: that pod's hash."""


def is_static(pod: Pod) -> bool:
    """Whether the pod comes from a file or URL of this node."""
    return pod.metadata.annotations.get(SOURCE_ANNOTATION, "api") != "api"


def is_mirror(pod: Pod) -> bool:
    """Whether this API object only shows a static pod."""
    return MIRROR_ANNOTATION in pod.metadata.annotations


def static_hash(pod: Pod) -> str:
    """The hash that a mirror of this static pod carries."""
    return pod.metadata.annotations.get(HASH_ANNOTATION, pod.metadata.uid)


def stands_for(pod: Pod) -> PodUID:
    """The UID of the pod that this API object shows: its own, or for a mirror that of the static pod."""
    return PodUID(pod.metadata.annotations.get(MIRROR_ANNOTATION) or pod.metadata.uid)
