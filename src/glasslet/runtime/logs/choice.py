"""The choice of the instance for "the log of this container". Pure."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.object import ContainerID
from glasslet.api.pod_status import ContainerStatus, PodStatus

_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class NoLog(Struct, frozen=True):
    """There is no log to show; the message is the one of the Go kubelet."""

    message: str


def choose_log(pod_name: str, status: PodStatus, container: str, *, previous: bool = False) -> ContainerID | NoLog:
    """The instance (its id without the `<runtime>://` in front) whose log was requested.

    A waiting container with an earlier instance gives that one's; `previous` selects it also while another runs.
    """
    where = f'container "{container}" in pod "{pod_name}"'
    found = _status_of(status, container)
    if found is None:
        return NoLog(f"{where} is not available")
    state, last = found.state, found.last_state.terminated
    last_id = last.container_id if last is not None else ""
    if previous:
        return _instance(last_id) if last_id else NoLog(f"previous terminated {where} not found")
    if state.running is not None:
        return _instance(found.container_id)
    if state.terminated is not None or last is not None:
        instance = (state.terminated.container_id if state.terminated is not None else "") or last_id
        return _instance(instance) if instance else NoLog(f"{where} is terminated")
    if state.waiting is not None:
        return NoLog(f"{where} is waiting to start: {_WAITING.get(state.waiting.reason, state.waiting.reason)}")
    return NoLog(f"{where} is waiting to start - no logs yet")


def _status_of(status: PodStatus, container: str) -> ContainerStatus | None:
    every = (*status.container_statuses, *status.init_container_statuses, *status.ephemeral_container_statuses)
    return next((c for c in every if c.name == container), None)


def _instance(shown: str) -> ContainerID:
    return ContainerID(shown.rpartition("://")[2])
