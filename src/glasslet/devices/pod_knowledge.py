"""Facts about pods that the device manager needs before it frees or skips devices."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.runtime.model import ObservedPod


class PodKnowledge(Struct, frozen=True):
    """`observed`: a pod as the runtime holds it; `all_known`: whether every source has reported its pods."""

    observed: Callable[[PodUID], ObservedPod | None]
    all_known: Callable[[], bool]

    def stands(self, uid: PodUID) -> bool:
        """Whether the pod's sandbox is ready or a container of it runs: it was started with its devices, and the node
        was not restarted since."""
        pod = self.observed(uid)
        return pod is not None and (bool(pod.running()) or pod.ready_sandbox() is not None)
