"""Names of sources. The annotations that carry a pod's source are those of `api.pod_origin`."""

from __future__ import annotations

from typing import Final

from glasslet.api.pod_origin import HASH_ANNOTATION, MIRROR_ANNOTATION, SEEN_ANNOTATION, SOURCE_ANNOTATION

__all__ = [
    "API",
    "FILE",
    "HASH_ANNOTATION",
    "HTTP",
    "LOCAL_ANNOTATIONS",
    "MIRROR_ANNOTATION",
    "SEEN_ANNOTATION",
    "SOURCE_ANNOTATION",
]

FILE: Final = "file"
HTTP: Final = "http"
API: Final = "api"

LOCAL_ANNOTATIONS: Final = frozenset({SOURCE_ANNOTATION, SEEN_ANNOTATION, MIRROR_ANNOTATION})
"""Ours: a difference in these is no change of the pod."""
