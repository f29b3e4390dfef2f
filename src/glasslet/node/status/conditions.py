"""`status.conditions`: MemoryPressure, DiskPressure, PIDPressure, Ready, in this order. Pure.

The heartbeat moves with every status, the transition time only when a status changes. A pressure keeps its message
while its status stays; Ready always has the newest one.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from glasslet.api.node import NodeCondition
from glasslet.node.inputs import NodeEvent, NodeInputs, Pressures, status_event
from glasslet.node.settings import NodeSettings

_PRESSURES = {
    "MemoryPressure": {
        True: ("InsufficientMemory", "kubelet has insufficient memory available"),
        False: ("SufficientMemory", "kubelet has sufficient memory available"),
    },
    "DiskPressure": {
        True: ("DiskPressure", "kubelet has disk pressure"),
        False: ("NoDiskPressure", "kubelet has no disk pressure"),
    },
    "PIDPressure": {
        True: ("InsufficientPID", "kubelet has insufficient PID available"),
        False: ("SufficientPID", "kubelet has sufficient PID available"),
    },
}


def conditions(
    known: tuple[NodeCondition, ...], settings: NodeSettings, inputs: NodeInputs, errors: tuple[str, ...]
) -> tuple[tuple[NodeCondition, ...], tuple[NodeEvent, ...]]:
    """The four conditions in their places among those of other clients, and the events of changes. `errors`: why the
    node is not ready."""
    found = {one.type: one for one in known}
    events: list[NodeEvent] = []
    for kind, under in _by_type(inputs.pressures).items():
        before = found.get(kind)
        found[kind] = _pressure(before, kind, under, inputs.now)
        if before is None or before.status != found[kind].status:
            events.append(status_event(settings.name, f"NodeHas{_PRESSURES[kind][under][0]}"))
    before = found.get("Ready")
    found["Ready"] = ready = _ready(before, errors, inputs.now)
    if before is not None and before.status != ready.status:
        events.append(status_event(settings.name, "NodeReady" if ready.status == "True" else "NodeNotReady"))
    return tuple(found.values()), tuple(events)


def in_one_text(errors: tuple[str, ...]) -> str:
    """Several errors as `[a, b]`, each once; a single one as it is."""
    texts = tuple(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _by_type(pressures: Pressures) -> dict[str, bool]:
    return {"MemoryPressure": pressures.memory, "DiskPressure": pressures.disk, "PIDPressure": pressures.pids}


def _pressure(before: NodeCondition | None, kind: str, under: bool, now: datetime) -> NodeCondition:
    status = _text(under)
    if before is not None and before.status == status:
        return replace(before, last_heartbeat_time=now)
    reason, message = _PRESSURES[kind][under]
    return NodeCondition(
        type=kind,
        status=status,
        last_heartbeat_time=now,
        last_transition_time=now,
        reason=f"KubeletHas{reason}",
        message=message,
    )


def _ready(before: NodeCondition | None, errors: tuple[str, ...], now: datetime) -> NodeCondition:
    status = _text(not errors)
    same = before is not None and before.status == status
    return NodeCondition(
        type="Ready",
        status=status,
        last_heartbeat_time=now,
        last_transition_time=before.last_transition_time if before is not None and same else now,
        reason="KubeletNotReady" if errors else "KubeletReady",
        message=in_one_text(errors) if errors else "kubelet is posting ready status",
    )


def _text(value: bool) -> str:
    return "True" if value else "False"
