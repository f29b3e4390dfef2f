"""A pod's way through its stations: where it may be held, and where each station enters the record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType

from glasslet.record.recorder import Recorder
from glasslet.record.stations import Station

StopAt = Callable[[Station, str], Awaitable[None]]
"""Called with a station and a container ("" for the pod) before the current pod begins there. The pod goes on when it
returns."""


class AtStation:
    """Holds the current pod if it is to stop here, then records the station while the body runs. `stop_at` None: no pod
    is held."""

    __slots__ = ("_container", "_detail", "_recorded", "_recorder", "_station", "_stop_at")

    def __init__(
        self, recorder: Recorder, stop_at: StopAt | None, station: Station, *, container: str = "", detail: str = ""
    ) -> None:
        self._recorder = recorder
        self._stop_at = stop_at
        self._station = station
        self._container = container
        self._detail = detail

    async def __aenter__(self) -> None:
        if self._stop_at is not None:
            await self._stop_at(self._station, self._container)
        self._recorded = self._recorder.station(self._station, container=self._container, detail=self._detail)
        self._recorded.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._recorded.__exit__(kind, error, trace)
