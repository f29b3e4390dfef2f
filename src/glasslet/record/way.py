"""A pod's way through its stations: where it may be held, and where each station enters the record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol

from glasslet.api.pod_ref import PodRef
from glasslet.record.recorder import Recorder
from glasslet.record.stations import Station

PLAN = "plan"
"""The place where a plan was made and is not acted on yet."""
CRI = "cri:"
"""The beginning of a place that is one call of the runtime: `cri:CreateContainer`."""

Facts = Callable[[], Mapping[str, object]]
"""What is known at a place beyond the pod itself (the request of a call, a probe). Called only for a pod that may be
held there."""


def no_facts() -> Mapping[str, object]:
    """Nothing more is known."""
    return {}


class PodHolder(Protocol):
    """Holds pods (`stops.Stops`). Callers ask `armed` first, so that a place costs one look when no pod is to stop."""

    @property
    def armed(self) -> bool:
        """Whether a pod may be held somewhere."""

    async def at(self, place: str, *, container: str = "", after: bool = False, facts: Facts = no_facts) -> bool:
        """The current pod is at this place: a station, PLAN or a call, before its work or `after` it. Returns when the
        pod goes on; True if it was held."""

    def let_go(self, pod: PodRef) -> None:
        """The pod has to stop: whatever holds it ends."""

    def let_all_go(self, why: str) -> None:
        """All pods go on, and none is held any more until a person wants it again."""


class NoStops:
    """No pod is held anywhere."""

    armed = False

    async def at(self, place: str, *, container: str = "", after: bool = False, facts: Facts = no_facts) -> bool:
        """Goes on at once."""
        return False

    def let_go(self, pod: PodRef) -> None:
        """There is nothing to end."""

    def let_all_go(self, why: str) -> None:
        """No pod is held."""


NO_STOPS = NoStops()


class AtStation:
    """The current pod is at a station while the body runs: recorded, and held before and after it if it is to stop
    there. A cancelled body is not held."""

    __slots__ = ("_container", "_detail", "_recorded", "_recorder", "_station", "_stops")

    def __init__(
        self, recorder: Recorder, stops: PodHolder, station: Station, *, container: str = "", detail: str = ""
    ) -> None:
        self._recorder = recorder
        self._stops = stops
        self._station = station
        self._container = container
        self._detail = detail

    async def __aenter__(self) -> None:
        if self._stops.armed:
            await self._stops.at(self._station, container=self._container)
        self._recorded = self._recorder.station(self._station, container=self._container, detail=self._detail)
        self._recorded.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        ended = self._recorded.__exit__(kind, error, trace)
        if self._stops.armed and not isinstance(error, asyncio.CancelledError):
            await self._stops.at(self._station, container=self._container, after=True, facts=lambda: _failure(error))
        return ended


def _failure(error: BaseException | None) -> Mapping[str, object]:
    return {} if error is None else {"failure": str(error) or type(error).__name__}
