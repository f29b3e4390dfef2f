"""Container statuses: the part of a PodStatus that shows each container (behaviours.md §5, §19)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from glasslet.api.container import Container, EphemeralContainer, ResourceRequirements
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    ContainerUser,
    LinuxContainerUser,
    VolumeMountStatus,
)
from glasslet.api.restarts import is_sidecar, restarts_after
from glasslet.exchange.facts import ProbeOutcome, StatusFacts
from glasslet.runtime.model import ContainerPhase, ObservedContainer

AnyContainer = Container | EphemeralContainer

MAX_LAST_WORDS = 12 * 1024
"""Bytes of termination messages that the containers of a pod have together, in equal shares."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_KILLED = 137
_VANISHED = "The container could not be located when the pod was terminated"
_VANISHED_EARLIER = "The container could not be located when the pod was deleted.  The container used to be Running"
_NO_PROBES = ProbeOutcome()


def has_run(status: ContainerStatus) -> bool:
    """Whether an instance of the container ever ran; one that is only declared lost at the pod's end did not."""
    ends = (status.state.terminated, status.last_state.terminated)
    return status.state.running is not None or any(end is not None and end.container_id for end in ends)


def declared_lost(statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    """Statuses at the end of an initialised pod: containers that the runtime does not show as ended count as lost. The
    phase is computed without this."""
    return tuple(
        status if status.state.terminated is not None else msgspec.structs.replace(status, state=_lost(_VANISHED))
        for status in statuses
    )


def restarts(pod: Pod, container: AnyContainer, exit_code: int) -> bool:
    """Whether an exited container is started again by its policy; init containers included."""
    if isinstance(container, EphemeralContainer):
        return False
    if any(c.name == container.name for c in pod.spec.init_containers) and not is_sidecar(container):
        return exit_code != 0 and restarts_after(container, pod.spec, exit_code)
    return restarts_after(container, pod.spec, exit_code)


class ContainerStatuses:
    """Builds the status of each container of one pod. One object per build."""

    def __init__(
        self, facts: StatusFacts, runtime_name: str, *, recursive_read_only: bool = False, stop_signals: bool = False
    ) -> None:
        self._recursive_read_only = recursive_read_only
        self._stop_signals = stop_signals
        self._facts = facts
        self._pod = facts.pod
        self._runtime = runtime_name
        previous = facts.previous
        self._old = {
            s.name: s
            for group in (
                previous.init_container_statuses,
                previous.container_statuses,
                previous.ephemeral_container_statuses,
            )
            for s in group
        }
        spec = facts.pod.spec
        parts = len(spec.containers) + len(spec.init_containers) + len(spec.ephemeral_containers)
        self._words = MAX_LAST_WORDS // max(parts, 1)
        self._instances: dict[str, list[ObservedContainer]] = {}
        for instance in facts.observed.containers if facts.observed else ():
            self._instances.setdefault(instance.name, []).append(instance)

    def init(self) -> tuple[ContainerStatus, ...]:
        """Init containers, in the order of the spec."""
        return tuple(self._status(c, regular_init=not is_sidecar(c)) for c in self._pod.spec.init_containers)

    def regular(self) -> tuple[ContainerStatus, ...]:
        """Regular containers, by name."""
        return tuple(self._status(c) for c in sorted(self._pod.spec.containers, key=lambda c: c.name))

    def ephemeral(self) -> tuple[ContainerStatus, ...]:
        """Ephemeral containers, by name."""
        return tuple(self._status(c) for c in sorted(self._pod.spec.ephemeral_containers, key=lambda c: c.name))

    def _status(self, container: AnyContainer, *, regular_init: bool = False) -> ContainerStatus:
        instances = self._instances.get(container.name, [])
        newest = instances[0] if instances else None
        older = instances[1] if len(instances) > 1 else None
        if newest is None:
            return self._without_instance(container)
        if newest.phase is ContainerPhase.UNKNOWN and self._was_running(container.name):
            return self._vanished(container)
        state, last = self._states(container, newest, older)
        started, ready = self._probed(container, newest)
        return ContainerStatus(
            name=container.name,
            state=state,
            last_state=last,
            ready=_done(state) if regular_init else ready,
            started=started,
            restart_count=newest.attempt,
            image=newest.image or container.image,
            image_id=newest.image_ref or newest.image_id,
            container_id=self._id(newest.id),
            allocated_resources=container.resources.requests,
            resources=self._given(container, newest),
            volume_mounts=tuple(self._mounts(container)),
            user=_user(newest),
            stop_signal=(newest.stop_signal or None) if self._stop_signals else None,
        )

    def _given(self, container: AnyContainer, newest: ObservedContainer) -> ResourceRequirements:
        """Resources of the running instance; during a resize they differ from the allocated ones."""
        if newest.phase is not ContainerPhase.RUNNING:
            return container.resources
        return self._facts.resizing.actuated.get(container.name, container.resources)

    def _mounts(self, container: AnyContainer) -> Iterator[VolumeMountStatus]:
        for mount in container.volume_mounts:
            recursive = None
            if mount.read_only:
                possible = mount.recursive_read_only == "IfPossible" and self._recursive_read_only
                recursive = "Enabled" if possible or mount.recursive_read_only == "Enabled" else "Disabled"
            yield VolumeMountStatus(
                name=mount.name, mount_path=mount.mount_path, read_only=mount.read_only, recursive_read_only=recursive
            )

    def _states(
        self, container: AnyContainer, newest: ObservedContainer, older: ObservedContainer | None
    ) -> tuple[ContainerState, ContainerState]:
        """(state, lastState)."""
        before = self._terminated(older) if older is not None else ContainerState()
        if newest.phase is ContainerPhase.RUNNING:
            return ContainerState(running=ContainerStateRunning(started_at=_time(newest.started_at))), before
        if newest.phase is ContainerPhase.EXITED:
            ended = self._terminated(newest)
            waiting = self._facts.waiting.get(container.name)
            if waiting and not self._ending() and restarts(self._pod, container, newest.exit_code):
                return self._waiting(container), ended
            return ended, before
        return self._waiting(container), before

    def _without_instance(self, container: AnyContainer) -> ContainerStatus:
        old = self._old.get(container.name)
        if self._was_running(container.name):
            return self._vanished(container)
        ended = old.state.terminated if old is not None else None
        really_ended = ended is not None and bool(ended.container_id)
        if old is not None and really_ended and container.name not in self._facts.waiting:
            return old
        before = ContainerState() if old is None else old.state if really_ended else old.last_state
        return ContainerStatus(
            name=container.name,
            state=self._waiting(container),
            last_state=before,
            ready=False,
            started=_unstarted(container),
            restart_count=old.restart_count if old else 0,
            image=container.image,
            image_id="",
            volume_mounts=tuple(self._mounts(container)),
        )

    def _vanished(self, container: AnyContainer) -> ContainerStatus:
        """The status of a container that was running and that the runtime lost: never just `waiting`."""
        old = self._old[container.name]
        comes_back = not self._ending() and restarts(self._pod, container, _KILLED)
        return msgspec.structs.replace(
            old,
            state=self._waiting(container) if comes_back else _lost(_VANISHED, old.container_id),
            last_state=_lost(_VANISHED_EARLIER, old.container_id) if comes_back else old.last_state,
            ready=False,
            started=_unstarted(container),
            restart_count=old.restart_count + (0 if self._facts.terminating else 1),
            volume_mounts=tuple(self._mounts(container)),
        )

    def _was_running(self, name: str) -> bool:
        old = self._old.get(name)
        return self._facts.observed is not None and old is not None and old.state.running is not None

    def _ending(self) -> bool:
        return self._facts.terminating or self._facts.finished or self._facts.verdict is not None

    def _waiting(self, container: AnyContainer) -> ContainerState:
        waiting = self._facts.waiting.get(container.name)
        if waiting is not None:
            return ContainerState(waiting=ContainerStateWaiting(reason=waiting.reason, message=waiting.message))
        reason = "PodInitializing" if self._pod.spec.init_containers else "ContainerCreating"
        return ContainerState(waiting=ContainerStateWaiting(reason=reason))

    def _terminated(self, instance: ObservedContainer) -> ContainerState:
        if instance.phase is not ContainerPhase.EXITED:
            return ContainerState()
        left = self._facts.termination_messages.get(instance.id, "")
        return ContainerState(
            terminated=ContainerStateTerminated(
                exit_code=instance.exit_code,
                reason=instance.reason or ("Completed" if instance.exit_code == 0 else "Error"),
                message=_cut(": ".join(part for part in (instance.message, left) if part), self._words),
                started_at=_time(instance.started_at),
                finished_at=_time(instance.finished_at),
                container_id=self._id(instance.id),
            )
        )

    def _probed(self, container: AnyContainer, newest: ObservedContainer) -> tuple[bool | None, bool]:
        """(started, ready): no probe of a kind means that kind passes as soon as the container runs. An ephemeral
        container has neither: it takes no part in the pod's readiness."""
        if newest.phase is not ContainerPhase.RUNNING or isinstance(container, EphemeralContainer):
            return _unstarted(container), False
        outcome = self._facts.probes.get(newest.id, _NO_PROBES)
        started = container.startup_probe is None or outcome.started is True
        return started, started and (container.readiness_probe is None or outcome.ready is True)

    def _id(self, container: ContainerID) -> str:
        return f"{self._runtime}://{container}"


def _cut(text: str, limit: int) -> str:
    data = text.encode()
    return text if len(data) <= limit else data[:limit].decode(errors="ignore")


def _lost(message: str, container_id: str = "") -> ContainerState:
    """`container_id`: of the instance that was seen running; "" for a container that was never seen."""
    return ContainerState(
        terminated=ContainerStateTerminated(
            exit_code=_KILLED, reason="ContainerStatusUnknown", message=message, container_id=container_id
        )
    )


def _done(state: ContainerState) -> bool:
    return state.terminated is not None and state.terminated.exit_code == 0


def _user(instance: ObservedContainer) -> ContainerUser | None:
    if instance.user is None:
        return None
    uid, gid, groups = instance.user
    return ContainerUser(linux=LinuxContainerUser(uid=uid, gid=gid, supplemental_groups=groups))


def _unstarted(container: AnyContainer) -> bool | None:
    return None if isinstance(container, EphemeralContainer) else False


def _time(moment: datetime | None) -> datetime:
    """A time of the runtime in whole seconds; "never" is 1970 in the API, as with the Go kubelet."""
    return (moment or _EPOCH).replace(microsecond=0)
