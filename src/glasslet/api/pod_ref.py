"""Which pod is meant: the identity that is passed between components, logged, and kept in records."""

from __future__ import annotations

from typing import NamedTuple

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod


class PodRef(NamedTuple):
    """A pod's identity. `str()` gives `namespace/name`."""

    namespace: str
    name: str
    uid: PodUID

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def pod_ref(pod: Pod) -> PodRef:
    """The identity of a pod."""
    meta = pod.metadata
    return PodRef(meta.namespace, meta.name, PodUID(meta.uid))
