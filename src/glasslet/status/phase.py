"""The phase of a pod, from its container statuses. Pure; the counting rules are upstream's."""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.pod_status import ContainerStatus
from glasslet.api.restarts import is_sidecar, restarts_after
from glasslet.status.containers import has_run


class _Count(Struct):
    lost_init: int = 0
    """Failed, and not run again."""
    pending_init: int = 0
    pending_sidecar: int = 0
    waiting: int = 0
    running: int = 0
    stopped: int = 0
    succeeded: int = 0
    coming_back: int = 0
    """Of those that stopped, to be started again."""
    unknown: int = 0


def pod_phase(pod: Pod, init: tuple[ContainerStatus, ...], regular: tuple[ContainerStatus, ...], *, ended: bool) -> str:
    """Pending, Running, Succeeded or Failed. `ended`: the pod is being or was terminated (static pods never count)."""
    count = _Count()
    _count_init(pod, init, count)
    _count_regular(pod, regular, count)
    if count.lost_init:
        return "Failed"
    begun = any(has_run(status) for status in regular)
    if count.pending_init or (count.pending_sidecar and not begun) or count.waiting:
        return "Pending"
    if count.running and not count.unknown:
        return "Running"
    if not count.running and count.stopped and not count.unknown:
        return _phase_of_stopped(count, ended=ended)
    return "Pending"


def _phase_of_stopped(count: _Count, *, ended: bool) -> str:
    if count.coming_back and not ended:
        return "Running"
    return "Succeeded" if count.stopped == count.succeeded else "Failed"


def _count_init(pod: Pod, statuses: tuple[ContainerStatus, ...], count: _Count) -> None:
    by_name = {s.name: s for s in statuses}
    for container in pod.spec.init_containers:
        status = by_name.get(container.name)
        if is_sidecar(container):
            _count_sidecar(status, count)
        elif status is None or status.state.running:
            count.pending_init += 1
        elif status.state.terminated:
            count.lost_init += _is_lost(pod, container, status.state.terminated.exit_code)
        elif status.last_state.terminated:
            count.lost_init += _is_lost(pod, container, status.last_state.terminated.exit_code)
        else:
            count.pending_init += 1


def _is_lost(pod: Pod, container: Container, exit_code: int) -> bool:
    return exit_code != 0 and not restarts_after(container, pod.spec, exit_code)


def _count_sidecar(status: ContainerStatus | None, count: _Count) -> None:
    if status is None:
        count.unknown += 1
    elif status.state.running:
        count.running += 1
        count.pending_sidecar += not status.started
    elif status.state.terminated or status.last_state.terminated:
        return
    elif status.state.waiting:
        count.waiting += 1
        count.pending_sidecar += 1
    else:
        count.unknown += 1
        count.pending_sidecar += 1


def _count_regular(pod: Pod, statuses: tuple[ContainerStatus, ...], count: _Count) -> None:
    by_name = {s.name: s for s in statuses}
    for container in pod.spec.containers:
        status = by_name.get(container.name)
        ended = None
        if status is None:
            count.unknown += 1
        elif status.state.running:
            count.running += 1
        elif status.state.terminated:
            ended = status.state.terminated
        elif status.state.waiting and status.last_state.terminated:
            ended = status.last_state.terminated
        elif status.state.waiting:
            count.waiting += 1
        else:
            count.unknown += 1
        if ended is not None:
            count.stopped += 1
            count.succeeded += ended.exit_code == 0
            count.coming_back += restarts_after(container, pod.spec, ended.exit_code)
