"""The answers to `ps` and `describe`: the pods of this node, and one pod in full."""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.agent import WaitRow
from glasslet.answers.states import ContainerKind, EventKind, WorkerState
from glasslet.answers.wire import WireMessage


class PodRow(WireMessage, frozen=True, kw_only=True):
    """One line of `ps`. `now`: what the pod is doing since `since`, "" when nothing is outstanding. `settled`: ready,
    over, or held up by something that waiting does not change (back-off, a missing object)."""

    namespace: str
    name: str
    uid: str
    phase: str
    ready: int = 0
    containers: int = 0
    restarts: int = 0
    now: str = ""
    since: datetime | None = None
    lifecycle: WorkerState | None = None
    is_ready: bool = False
    settled: bool = False
    ip: str = ""
    created: datetime | None = None
    reason: str = ""


class PodsAnswer(WireMessage, frozen=True, kw_only=True):
    """All pods, by namespace and name."""

    pods: tuple[PodRow, ...] = ()


class ContainerRow(WireMessage, frozen=True, kw_only=True):
    """One container of a pod. `state`: waiting, running, terminated, or `unknown` before anything was reported;
    `last_*` describe the instance before this one."""

    name: str
    kind: ContainerKind
    image: str
    state: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None
    exit_code: int | None = None
    ready: bool = False
    restarts: int = 0
    id: str = ""
    last_reason: str = ""
    last_exit_code: int | None = None
    last_finished: datetime | None = None


class ConditionRow(WireMessage, frozen=True, kw_only=True):
    """One condition of a pod."""

    type: str
    status: str
    since: datetime | None = None
    reason: str = ""
    message: str = ""


class ProbeRow(WireMessage, frozen=True, kw_only=True):
    """One result of one probe. `kind`: startup, readiness or liveness; `verdict`: success, warning, failure or unknown.
    Milliseconds: of the whole (`total_ms`, repetitions included), of its parts (None: no such part), of its late start,
    and for which the agent itself stalled meanwhile."""

    at: datetime
    container: str
    kind: str
    verdict: str
    note: str = ""
    total_ms: float = 0.0
    dns_ms: float | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None
    late_ms: float = 0.0
    stalled_ms: float = 0.0
    tries: int = 1
    id: str = ""


class TimelineRow(WireMessage, frozen=True, kw_only=True):
    """One event."""

    at: datetime
    kind: EventKind
    text: str
    container: str = ""
    took_ms: float | None = None
    outcome: str = ""


class PodDescription(WireMessage, frozen=True, kw_only=True):
    """One pod in full; `timeline` has the newest event last, `probes` each probe's last results, oldest first."""

    pod: PodRow
    containers: tuple[ContainerRow, ...] = ()
    conditions: tuple[ConditionRow, ...] = ()
    ips: tuple[str, ...] = ()
    source: str = ""
    restart_policy: str = ""
    qos_class: str = ""
    grace_period: int | None = None
    volumes: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    waits: tuple[WaitRow, ...] = ()
    findings: tuple[str, ...] = ()
    probes: tuple[ProbeRow, ...] = ()
    timeline: tuple[TimelineRow, ...] = ()
