"""Where the time of pods goes: waits by kind and stations, as the record counts them. Metrics of glasslet's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from msgspec import Struct, field
from prometheus_client.metrics_core import Metric


class OpenWaits(NamedTuple):
    """Waits of one kind that last now: how many, and for how many seconds the oldest of them has."""

    number: int
    oldest: float


class Passed(NamedTuple):
    """What ended since the agent's start: how often, and how many seconds it took in all."""

    number: int
    seconds: float


class PodTimes(Struct, frozen=True, kw_only=True):
    """One look at the record. Kinds of waits and stations without a value count as 0."""

    open_waits: Mapping[str, OpenWaits] = field(default_factory=dict)
    waits: Mapping[str, Passed] = field(default_factory=dict)
    stations: Mapping[str, Passed] = field(default_factory=dict)
    agent_findings: int = 0
    pods_with_findings: int = 0


class PodTimesCollector:
    """`glasslet_waits*`, `glasslet_oldest_wait_seconds`, `glasslet_station*`, `glasslet_findings`.

    Waits and stations are those of pods: the agent's own have no end by design. Each kind and station has its series
    from the start.
    """

    def __init__(self, times: Callable[[], PodTimes], *, kinds: Iterable[str], stations: Iterable[str]) -> None:
        self._times = times
        self._kinds = tuple(kinds)
        self._stations = tuple(stations)

    def collect(self) -> Iterable[Metric]:
        """The families."""
        times = self._times()
        lasting = {kind: times.open_waits.get(kind, OpenWaits(0, 0.0)) for kind in self._kinds}
        waits = {kind: times.waits.get(kind, _NEVER) for kind in self._kinds}
        stations = {station: times.stations.get(station, _NEVER) for station in self._stations}
        gauge, counter = partial(_family, "gauge"), partial(_family, "counter")
        numbers = {kind: wait.number for kind, wait in lasting.items()}
        ages = {kind: wait.oldest for kind, wait in lasting.items()}
        yield gauge("glasslet_waits", "Waits of pods that last now.", "kind", numbers)
        yield gauge("glasslet_oldest_wait_seconds", "Age of the oldest wait of a pod.", "kind", ages)
        for name, what, label, passed in (
            ("waits_ended", "wait", "kind", waits),
            ("station_passes", "station", "station", stations),
        ):
            ends = {value: one.number for value, one in passed.items()}
            seconds = {value: one.seconds for value, one in passed.items()}
            yield counter(f"glasslet_{name}_total", f"Times that a pod's {what} ended.", label, ends)
            yield counter(f"glasslet_{what}_seconds_total", f"Seconds of pods' {what}s that ended.", label, seconds)
        findings = {"agent": times.agent_findings, "pods": times.pods_with_findings}
        yield gauge("glasslet_findings", "Findings of the agent that hold, and pods that have any.", "about", findings)


_NEVER = Passed(0, 0.0)


def _family(kind: str, name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = Metric(name, f"[ALPHA] {text}", kind)
    for value, number in values.items():
        family.add_sample(name, {label: value}, number)
    return family
