"""The duration of a pod's start, once per pod: from the moment it was seen here, and from its creation in the API."""

from __future__ import annotations

from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_status import ContainerStatus, PodStatus
from glasslet.api.restarts import is_sidecar
from glasslet.concurrency.clock import Clock
from glasslet.pods.memory import PodMemory
from glasslet.pods.reporting import StartDurations

_STATELESS = ("config_map", "secret", "projected", "downward_api", "empty_dir")


class StartTimes:
    """One pod's. `seen_at`: monotonic time at which this agent saw it first. A pod that runs already (the agent was
    restarted) is not counted."""

    def __init__(self, *, metrics: StartDurations, pod: Pod, seen_at: float) -> None:
        self._metrics = metrics
        self._seen_at = seen_at
        self._waiting = pod.status.phase in ("", "Pending")

    def look(self, memory: PodMemory, status: PodStatus, clock: Clock) -> None:
        """Counts the pod when all its containers have started."""
        if not self._waiting or status.phase != "Running":
            return
        pod = memory.pod
        if not all(_has_started(one) for one in status.container_statuses):
            return
        self._waiting = False
        images, memory.images = memory.images or [], None
        self._metrics.running(max(0.0, clock.monotonic() - self._seen_at))
        created = pod.metadata.creation_timestamp
        if created is None or is_static(pod):
            return
        total = max(0.0, (clock.now() - created).total_seconds())
        apart = covered(images) + sum(_ran(one) for one in regular_init(pod, status))
        sli = max(0.0, total - apart) if is_stateless(pod) else None
        self._metrics.started(total, sli_seconds=sli, host_network=bool(pod.spec.host_network))


def covered(spans: list[tuple[float, float]]) -> float:
    """Seconds that lie in any of the spans."""
    seconds, until = 0.0, float("-inf")
    for began, ended in sorted(spans):
        seconds += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return seconds


def is_stateless(pod: Pod) -> bool:
    """Whether the pod has only volumes that are made on the node."""
    return all(any(getattr(volume, kind) is not None for kind in _STATELESS) for volume in pod.spec.volumes)


def regular_init(pod: Pod, status: PodStatus) -> list[ContainerStatus]:
    """Init containers that run to their end."""
    sidecars = {one.name for one in pod.spec.init_containers if is_sidecar(one)}
    return [one for one in status.init_container_statuses if one.name not in sidecars]


def _has_started(status: ContainerStatus) -> bool:
    states = (status.state, status.last_state)
    return any(state.running is not None or state.terminated is not None for state in states)


def _ran(status: ContainerStatus) -> float:
    ended = status.state.terminated
    if ended is None or ended.started_at is None or ended.finished_at is None:
        return 0.0
    return max(0.0, (ended.finished_at - ended.started_at).total_seconds())
