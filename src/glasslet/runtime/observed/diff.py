"""Two snapshots of a pod, one after the other -> what happened in between. Pure."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from glasslet.runtime.model import ContainerPhase, ObservedContainer, ObservedPod, ObservedSandbox


class ChangeKind(StrEnum):
    """The kind of a change of a container or sandbox between two reads."""

    CONTAINER_STARTED = "container_started"
    CONTAINER_DIED = "container_died"
    CONTAINER_REMOVED = "container_removed"
    CONTAINER_CHANGED = "container_changed"
    """Created, or in a state that the runtime does not know, or other details than the state differ."""
    SANDBOX_READY = "sandbox_ready"
    SANDBOX_DIED = "sandbox_died"
    SANDBOX_REMOVED = "sandbox_removed"
    SANDBOX_CHANGED = "sandbox_changed"


class ObservedChange(Struct, frozen=True, kw_only=True):
    """One change. `old` and `new` are words (`running`, `exited 1`, `absent`); `container` is "" for sandboxes."""

    kind: ChangeKind
    id: str
    container: str = ""
    old: str = "absent"
    new: str = "absent"

    @property
    def subject(self) -> str:
        """`container main`, or `sandbox`."""
        return f"container {self.container}" if self.container else "sandbox"


def changes(old: ObservedPod | None, new: ObservedPod | None) -> tuple[ObservedChange, ...]:
    """Sandboxes first, then containers; removed ones come last. None: the runtime held nothing of the pod.

    A container that ran and died between two reads gives one change, its death: the state in between was never seen.
    """
    found = [*_sandbox_changes(old, new), *_container_changes(old, new)]
    return tuple(found)


def container_state(container: ObservedContainer | None) -> str:
    """The state in words: `created`, `running`, `exited 137`, `unknown`, `absent`."""
    if container is None:
        return "absent"
    if container.phase is ContainerPhase.EXITED:
        return f"exited {container.exit_code}"
    return container.phase.value


def sandbox_state(sandbox: ObservedSandbox | None) -> str:
    """The state in words: `ready`, `not ready`, `absent`."""
    if sandbox is None:
        return "absent"
    return "ready" if sandbox.ready else "not ready"


def _container_changes(old: ObservedPod | None, new: ObservedPod | None) -> list[ObservedChange]:
    before = {c.id: c for c in old.containers} if old else {}
    after = {c.id: c for c in new.containers} if new else {}
    found = []
    # Oldest first, so that a restart reads as it happened.
    for container in reversed(after.values()):
        was = before.get(container.id)
        if was == container:
            continue
        found.append(
            ObservedChange(
                kind=_container_kind(was, container),
                id=container.id,
                container=container.name,
                old=container_state(was),
                new=container_state(container),
            )
        )
    gone = [c for c in reversed(before.values()) if c.id not in after]
    removed = ChangeKind.CONTAINER_REMOVED
    return found + [ObservedChange(kind=removed, id=c.id, container=c.name, old=container_state(c)) for c in gone]


def _container_kind(old: ObservedContainer | None, new: ObservedContainer) -> ChangeKind:
    if old is None or old.phase is not new.phase:
        if new.phase is ContainerPhase.RUNNING:
            return ChangeKind.CONTAINER_STARTED
        if new.phase is ContainerPhase.EXITED:
            return ChangeKind.CONTAINER_DIED
    return ChangeKind.CONTAINER_CHANGED


def _sandbox_changes(old: ObservedPod | None, new: ObservedPod | None) -> list[ObservedChange]:
    before = {s.id: s for s in old.sandboxes} if old else {}
    after = {s.id: s for s in new.sandboxes} if new else {}
    found = []
    for sandbox in reversed(after.values()):
        was = before.get(sandbox.id)
        if was == sandbox:
            continue
        if was is not None and was.ready is sandbox.ready:
            kind = ChangeKind.SANDBOX_CHANGED
        else:
            kind = ChangeKind.SANDBOX_READY if sandbox.ready else ChangeKind.SANDBOX_DIED
        found.append(ObservedChange(kind=kind, id=sandbox.id, old=sandbox_state(was), new=sandbox_state(sandbox)))
    gone = [s for s in reversed(before.values()) if s.id not in after]
    return found + [ObservedChange(kind=ChangeKind.SANDBOX_REMOVED, id=s.id, old=sandbox_state(s)) for s in gone]
