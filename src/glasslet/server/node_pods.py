"""The pods of this node as the servers show them: what the sources want, each pod with its newest status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_status import PodStatus
from glasslet.runtime.model import ObservedPod


class Desired(Protocol):
    """The owner of the desired pods (`sources.DesiredPods`)."""

    def all(self) -> Sequence[Pod]: ...


class Observations(Protocol):
    """The owner of the observed pods (`runtime.observed.ObservedPods`)."""

    def all(self) -> Sequence[ObservedPod]: ...


class NodePods:
    """Implements `PodSource`. `status_of`: the status that this agent reports, None without a worker."""

    def __init__(
        self, *, desired: Desired, observed: Observations, status_of: Callable[[PodUID], PodStatus | None]
    ) -> None:
        self._desired = desired
        self._observed = observed
        self._status_of = status_of

    def pods(self) -> Sequence[Pod]:
        """Desired pods."""
        return [self._with_status(pod) for pod in self._desired.all()]

    def pod(self, namespace: str, name: str) -> Pod | None:
        """The desired pod of that name; of two (from two sources) the one that runs."""
        named = [
            self._with_status(pod)
            for pod in self._desired.all()
            if (pod.metadata.namespace, pod.metadata.name) == (namespace, name)
        ]
        running = (pod for pod in named if any(c.state.running for c in pod.status.container_statuses))
        return next(running, named[0] if named else None)

    def running_pods(self) -> Sequence[ObservedPod]:
        """Pods with a running container."""
        return [pod for pod in self._observed.all() if pod.running()]

    def _with_status(self, pod: Pod) -> Pod:
        status = self._status_of(PodUID(pod.metadata.uid))
        return replace(pod, status=status) if status is not None else pod
