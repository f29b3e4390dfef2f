"""The pods to read figures of: what the runtime holds, what they were made of, and their cgroups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.resources.layout import CgroupNameInvalid
from glasslet.resources.pod_cgroups import PodCgroups
from glasslet.runtime.model import ObservedPod


class AgentPods:
    """Implements `collector.PodViews`. `pods`: those that have a worker; `cgroups`: None where the runtime's count."""

    def __init__(
        self,
        *,
        observed: Callable[[], Sequence[ObservedPod]],
        pods: Callable[[], Sequence[Pod]],
        cgroups: PodCgroups | None,
    ) -> None:
        self._observed = observed
        self._pods = pods
        self._cgroups = cgroups
        self._paths: dict[PodUID, str] = {}

    def observed(self) -> Sequence[ObservedPod]:
        """All pods of the runtime."""
        return self._observed()

    def pods(self) -> Sequence[Pod]:
        """All pods that have a worker."""
        pods = self._pods()
        uids = {pod.metadata.uid for pod in pods}
        self._paths = {uid: path for uid, path in self._paths.items() if uid in uids}
        return pods

    def pod_cgroup(self, pod: Pod) -> str:
        """The path of the pod's cgroup, "" for none. A pod's class never changes, so its path does not either."""
        if self._cgroups is None:
            return ""
        uid = PodUID(pod.metadata.uid)
        if uid not in self._paths:
            try:
                self._paths[uid] = self._cgroups.path(pod)
            except CgroupNameInvalid:
                self._paths[uid] = ""
        return self._paths[uid]
