"""Names of sources, and the annotations in which a pod carries where it comes from."""

from __future__ import annotations

from typing import Final

FILE: Final = "file"
HTTP: Final = "http"
API: Final = "api"

SOURCE_ANNOTATION: Final = "kubernetes.io/config.source"
"""file, http or api."""
HASH_ANNOTATION: Final = "kubernetes.io/config.hash"
"""The UID of a static pod."""
SEEN_ANNOTATION: Final = "kubernetes.io/config.seen"
"""When this agent first saw the pod, RFC3339 with nine fraction digits."""
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""On the API object that mirrors a static pod: that pod's hash."""
LOCAL_ANNOTATIONS: Final = frozenset({SOURCE_ANNOTATION, SEEN_ANNOTATION, MIRROR_ANNOTATION})
"""Ours: a difference in these is no change of the pod."""
