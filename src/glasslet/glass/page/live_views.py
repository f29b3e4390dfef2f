"""The views of the page: the pods in each, and the node or one pod beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct, to_builtins

from glasslet.answers.agent import WaitsAnswer
from glasslet.answers.live import CallsAtWork, PageFacts, PressureAnswer, StationTime, StationTimes
from glasslet.answers.wire import ErrorAnswer, WireMessage
from glasslet.glass.handlers import GlassHandlers
from glasslet.glass.page.call_times import CallWindow
from glasslet.glass.page.live import LiveView, Values
from glasslet.glass.page.live_pods import TICK, LivePods
from glasslet.glass.page.source import PageSource
from glasslet.glass.pod_rows import wait_row
from glasslet.glass.requests import RequestRefused
from glasslet.glass.source import GlassSource
from glasslet.record.store import Record

_NODE_SECONDS = 2.0
_POD_SECONDS = 2.0
"""Between two readings of a pod about which nothing was recorded: its probes, and durations in its texts."""
_TROUBLE_SECONDS = 0.1
"""Between two readings of the troubles of a node, for each trouble that there was."""
_STATION_SECONDS = 5.0
_WAITS_SHOWN = 40


class LiveParts(Struct, frozen=True, kw_only=True):
    """What the views read from. `logs`: as in PageFacts."""

    glass: GlassHandlers
    source: GlassSource
    record: Record
    page: PageSource
    logs: str


class LiveViews:
    """Finds the view that a query asks for."""

    def __init__(self, parts: LiveParts) -> None:
        self._parts = parts
        self._pods = LivePods(glass=parts.glass, source=parts.source, record=parts.record)
        self._calls = CallWindow(parts.page.calls, parts.record.now)

    def __call__(self, query: Mapping[str, str]) -> tuple[str, LiveView]:
        """The name of the view and the view. Raises RequestRefused."""
        name = query.get("view", "pods")
        if name == "pods":
            return name, PodsView(self._parts, self._pods)
        if name == "stations":
            return name, StationsView(self._parts, self._pods)
        if name == "node":
            return name, NodeView(self._parts, self._pods, self._calls)
        pod = query.get("pod", "")
        if name == "pod" and pod:
            return f"pod {pod}", PodPageView(self._parts, self._pods, pod)
        allowed = "pods, node, stations, or pod with pod=NAMESPACE/NAME"
        raise RequestRefused(400, ErrorAnswer(error="no such view", field="view", value=name[:100], allowed=allowed))


class PodsView:
    """The table."""

    seconds = TICK

    def __init__(self, parts: LiveParts, pods: LivePods) -> None:
        self._parts = parts
        self._pods = pods

    async def read(self) -> Values:
        """The pods, and the agent that serves the page."""
        agent = self._parts.source.agent()
        facts = PageFacts(
            node=agent.node,
            pid=agent.pid,
            version=agent.version,
            logs=self._parts.logs,
            started_at=agent.started_at,
        )
        return {**await self._pods.read(), "page": _plain(facts)}


class StationsView(PodsView):
    """The map of stations: where pods stand, and how long passing each takes."""

    def __init__(self, parts: LiveParts, pods: LivePods) -> None:
        super().__init__(parts, pods)
        self._read_at: float | None = None
        self._times: Values = {}

    async def read(self) -> Values:
        """The pods, and every five seconds the times."""
        now = self._parts.record.now()
        if self._read_at is None or now - self._read_at >= _STATION_SECONDS:
            self._read_at = now
            self._times = {"stations.times": _plain(station_times(self._parts.record.passing_times()))}
        return {**await super().read(), **self._times}


def station_times(passed: Mapping[str, Sequence[float]]) -> StationTimes:
    """The medians of seconds by station. Pure."""
    return StationTimes(
        times=tuple(
            StationTime(station=station, count=len(seconds), p50_ms=round(median(seconds) * 1000, 2))
            for station, seconds in sorted(passed.items())
            if seconds
        )
    )


class NodeView(PodsView):
    """The node: its verdict, its agent, how runtime and API server answer, what waits."""

    def __init__(self, parts: LiveParts, pods: LivePods, calls: CallWindow) -> None:
        super().__init__(parts, pods)
        self._calls = calls
        self._read_at: float | None = None
        self._node: Values = {}
        self._troubles: dict[str, object] = {}
        self._troubles_at: float | None = None
        self._troubles_pause = _NODE_SECONDS

    async def read(self) -> Values:
        """The pods, and every two seconds the node."""
        now = self._parts.record.now()
        if self._read_at is None or now - self._read_at >= _NODE_SECONDS:
            self._read_at = now
            self._node = await self._read_node()
        return {**await super().read(), **self._node}

    async def _read_node(self) -> Values:
        parts = self._parts
        waits = WaitsAnswer(waits=tuple(wait_row(wait) for wait in parts.record.live_waits()[:_WAITS_SHOWN]))
        calls: CallsAtWork = self._calls.read()
        pressure: PressureAnswer = await parts.page.pressure()
        return {
            "node.verdict": _plain(parts.glass.node()),
            "node.troubles": await self._read_troubles(),
            "node.agent": _plain(parts.glass.agent_answer()),
            "node.waits": _plain(waits),
            "node.calls": _plain(calls),
            "node.pressure": _plain(pressure),
        }

    async def _read_troubles(self) -> dict[str, object]:
        """Everything that is not as it should be; on a node where all pods fail less often, for that takes a while."""
        now = self._parts.record.now()
        if self._troubles_at is None or now - self._troubles_at >= self._troubles_pause:
            self._troubles_at = now
            answer = await self._parts.glass.node_troubles()
            self._troubles_pause = max(_NODE_SECONDS, _TROUBLE_SECONDS * (len(answer.troubles) + answer.left_out))
            self._troubles = _plain(answer)
        return self._troubles


class PodPageView(PodsView):
    """One pod in full."""

    def __init__(self, parts: LiveParts, pods: LivePods, name: str) -> None:
        super().__init__(parts, pods)
        self._name = name
        self._mark: tuple[object, ...] | None = None
        self._read_at = 0.0
        self._pod: Values = {}

    async def read(self) -> Values:
        """The pods, and the pod when something was recorded about it, else every two seconds."""
        seen, now = self._parts.glass.find(self._name), self._parts.record.now()
        mark = (seen.pod.metadata.uid, *self._pods.mark(seen)) if seen is not None else ()
        if mark != self._mark:
            trace = await self._parts.glass.trace_of(self._name)
            self._pod = {**self._pod, "pod.trace": _plain(trace)}
        if mark != self._mark or now - self._read_at >= _POD_SECONDS:
            self._mark, self._read_at = mark, now
            verdict = await self._parts.glass.verdict(self._name)
            self._pod = {"pod.trace": self._pod["pod.trace"], "pod.verdict": _plain(verdict)}
            if seen is not None:
                self._pod["pod.description"] = _plain(await self._parts.glass.description(seen))
        return {**await super().read(), **self._pod}


def _plain(answer: WireMessage) -> dict[str, object]:
    fields: dict[str, object] = to_builtins(answer)
    return fields
