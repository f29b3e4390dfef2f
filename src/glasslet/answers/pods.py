"""The answers to `ps` and `describe`: the pods of this node, and one pod in full."""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.agent import WaitRow
from glasslet.answers.states import ContainerKind, EventKind, VerdictState, WorkerState
from glasslet.answers.wire import WireMessage


class Hold(WireMessage, frozen=True, kw_only=True):
    """A pod is held. `at`: a station, `plan`, `status` or `cri:CALL`, before its work or (`after`) after it, by break
    number `by`, 0 for a step. It goes on by itself at `until`. `next`: what it does first then, "" if unknown."""

    at: str
    after: bool = False
    by: int = 0
    since: datetime
    until: datetime
    container: str = ""
    next: str = ""


class LayerProgress(WireMessage, frozen=True, kw_only=True):
    """One layer of an image that is pulled. `open`: it is downloaded now; before that and after it, it is not."""

    digest: str
    done: int = 0
    total: int = 0
    bytes_per_second: float = 0.0
    open: bool = False


class PullProgress(WireMessage, frozen=True, kw_only=True):
    """A pull in bytes. `total` 0: not known yet, or (`unreported`) the runtime does not report bytes. `stalled_since`:
    no byte came since then. `queued_behind`: how many pulls come first. Once `done` is `total`, layers are unpacked."""

    image: str
    done: int = 0
    total: int = 0
    bytes_per_second: float = 0.0
    stalled_since: datetime | None = None
    queued_behind: int = 0
    unreported: bool = False
    layers: tuple[LayerProgress, ...] = ()


class PodRow(WireMessage, frozen=True, kw_only=True):
    """One line of `ps`. `now`: what the pod is doing since `since`, "" when nothing is outstanding. `settled`: ready,
    over, or held up by something that waiting does not change (back-off, a missing object). `state`: as the verdict has
    it; `station`: where it stands; `hold`: set if it is held at a stop; `pull`: set while an image is pulled;
    `node`: set where the answers of several nodes are put together."""

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
    state: VerdictState | None = None
    station: str = ""
    hold: Hold | None = None
    pull: PullProgress | None = None
    node: str = ""


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


class ProbeDescription(WireMessage, frozen=True, kw_only=True):
    """One probe as its container declares it, times in seconds. `target`: what is asked (`http :8080/ready`);
    `failures`, `successes`: how many in a row change its outcome."""

    container: str
    kind: str
    target: str
    period: float
    timeout: float
    failures: int
    successes: int = 1
    initial_delay: float = 0.0


class DecisionInput(WireMessage, frozen=True, kw_only=True):
    """One input of a decision. `tipped`: the decision would have been another one without it."""

    name: str
    value: str
    tipped: bool = False


class TimelineRow(WireMessage, frozen=True, kw_only=True):
    """One event. `inputs`: of a decision."""

    at: datetime
    kind: EventKind
    text: str
    container: str = ""
    took_ms: float | None = None
    outcome: str = ""
    inputs: tuple[DecisionInput, ...] = ()


class PodDescription(WireMessage, frozen=True, kw_only=True):
    """One pod in full; `timeline` has the newest event last, `probes` each probe's last results, oldest first;
    `probe_descriptions`: the probes that its containers declare."""

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
    probe_descriptions: tuple[ProbeDescription, ...] = ()
    timeline: tuple[TimelineRow, ...] = ()
