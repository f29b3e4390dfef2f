"""The shapes of the live stream under /glass/live, server-sent events that the page reads.

    event: state    {"now": TIME, "values": {KEY: {FIELD: VALUE}}}          all, at the beginning
    event: delta    {"now": TIME, "changes": [[KEY, {FIELD: VALUE} | null]]}     what changed; null: gone

    KEY             fields of             in view
    a pod's uid     LivePod               each
    page            PageFacts             each
    node.verdict    VerdictAnswer         node
    node.agent      AgentAnswer           node
    node.troubles   TroublesAnswer        node
    node.waits      WaitsAnswer           node
    node.calls      CallsAtWork           node
    node.pressure   PressureAnswer        node
    stations.times  StationTimes          stations
    pod.verdict     VerdictAnswer         pod
    pod.description PodDescription        pod
    pod.trace       TraceAnswer           pod

The trace of a start under way comes again when the record changes; the page lets open spans grow by itself.
"""

from __future__ import annotations

from datetime import datetime

from glasslet.answers.pods import PodRow
from glasslet.answers.states import Milestone
from glasslet.answers.trace import Share
from glasslet.answers.wire import WireMessage


class PodStart(WireMessage, frozen=True, kw_only=True):
    """How long a pod's start took, and who had the time."""

    total_ms: float
    milestone: Milestone
    shares: tuple[Share, ...] = ()
    unnamed_ms: float = 0.0


class LivePod(PodRow, frozen=True, kw_only=True):
    """A row of `ps` for the page's table. `start`: None until it is known."""

    images: tuple[str, ...] = ()
    start: PodStart | None = None


class PageFacts(WireMessage, frozen=True, kw_only=True):
    """The agent that serves the page. `logs`: whether logs come from this socket ("v1") or from the kubelet's own
    /containerLogs ("kubelet")."""

    node: str
    pid: int
    version: str
    logs: str
    started_at: datetime | None = None


class CallTimes(WireMessage, frozen=True, kw_only=True):
    """How long one kind of call took, estimated from a metric's buckets. `slow`: the median is three times that of the
    agent's whole life."""

    call: str
    count: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    slow: bool = False


class CallsAtWork(WireMessage, frozen=True, kw_only=True):
    """Calls of the last `seconds` (None: since the agent's start), the slowest first."""

    runtime: tuple[CallTimes, ...] = ()
    api: tuple[CallTimes, ...] = ()
    seconds: float | None = None


class StationTime(WireMessage, frozen=True, kw_only=True):
    """How long the pods took that passed a station lately. `count`: how many times one did."""

    station: str
    count: int
    p50_ms: float


class StationTimes(WireMessage, frozen=True, kw_only=True):
    """Each station that pods have passed, as far as the record in memory goes back."""

    times: tuple[StationTime, ...] = ()


class PressureRow(WireMessage, frozen=True, kw_only=True):
    """One resource of the node. The agent evicts pods when less than `line` is available. `free`: `available` in words;
    `how`: the arithmetic, how far the line is, where it goes, and the files it comes from; `at`: when it was read."""

    resource: str
    capacity: float
    available: float
    line: float | None = None
    unit: str = "bytes"
    free: str = ""
    how: str = ""
    at: datetime | None = None


class PressureAnswer(WireMessage, frozen=True, kw_only=True):
    """The resources that the node can run short of. `problem`: why they could not be read."""

    rows: tuple[PressureRow, ...] = ()
    problem: str = ""
