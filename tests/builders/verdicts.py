"""Situations of one pod, as verdicts see them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from glasslet.api.pod import Pod
from glasslet.api.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from glasslet.glass.verdicts.pod_rules import pod_verdict
from glasslet.glass.verdicts.situation import Situation
from tests.builders.pod import pod
from tests.builders.record import START, record, station

EPOCH = datetime.fromtimestamp(0, UTC)
NOW = START + timedelta(seconds=100)
SINCE = START + timedelta(seconds=60)
RUNNING = ContainerState(running=ContainerStateRunning(started_at=SINCE))
STARTED = (
    station("admitted", 0, 0),
    station("volumes", 0, 1),
    station("sandbox", 1, 2),
    station("image", 2, 3, "main"),
)


def reported(name: str = "main", state: ContainerState = RUNNING, **fields: Any) -> ContainerStatus:
    defaults = {
        "ready": False,
        "restart_count": 0,
        "image": "busybox",
        "image_id": "",
        "container_id": "containerd://1",
    }
    return ContainerStatus(name=name, state=state, **{**defaults, **fields})


def held(reason: str, message: str = "") -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))


def ended(code: int, *, reason: str = "Error", at: datetime = SINCE, ran: float = 3.0) -> ContainerState:
    begun = at - timedelta(seconds=ran)
    state = ContainerStateTerminated(exit_code=code, reason=reason, started_at=begun, finished_at=at)
    return ContainerState(terminated=state)


def status(*containers: ContainerStatus, is_ready: bool = False, **fields: Any) -> PodStatus:
    ready = PodCondition(type="Ready", status="True" if is_ready else "False", last_transition_time=SINCE)
    defaults = {"phase": "Running", "pod_ip": "10.42.0.17", "conditions": (ready,)}
    return PodStatus(container_statuses=containers, **{**defaults, **fields})


def situation(what: Pod | None = None, now: PodStatus | None = None, **fields: Any) -> Situation:
    defaults = {
        "pod": what or pod(),
        "status": now or status(reported(ready=True), is_ready=True),
        "now": NOW,
        "record": record(*STARTED),
        "lifecycle": "syncing",
    }
    return Situation(**{**defaults, **fields})


def evidence(it: Situation) -> dict[str, str]:
    return {item.label: item.text for item in pod_verdict(it).evidence}
