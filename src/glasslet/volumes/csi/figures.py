"""How full CSI volumes are, as their drivers say: each asked by itself from time to time, so that a driver that hangs
keeps only its own volumes without figures."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from msgspec import Struct

from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.supervision import Supervisor
from glasslet.exchange.volume import ReportedFigures
from glasslet.record.recorder import working_for
from glasslet.volumes.csi._generated import csi_pb2 as messages
from glasslet.volumes.csi.driver_calls import Capability, DriverCalls
from glasslet.volumes.csi.errors import CSIProblem
from glasslet.volumes.group_owner import EmitEvent

_log = logging.getLogger(__name__)

_Usage = messages.VolumeUsage


class OpenVolume(Struct, frozen=True):
    """A CSI volume that a pod has. `volume`: its name in the pod; `path`: where it is published."""

    pod: PodRef
    volume: str
    name: str
    driver: str
    handle: str
    path: str


class DriverFigures:
    """The newest figures. `period` in seconds, 0 or less: nobody is asked; `conditions`: gate CSIVolumeHealth."""

    def __init__(
        self,
        *,
        calls: DriverCalls,
        volumes: Callable[[], Iterable[OpenVolume]],
        period: float,
        emit: EmitEvent,
        conditions: bool = False,
    ) -> None:
        self._calls = calls
        self._volumes = volumes
        self._period = period
        self._emit = emit
        self._conditions = conditions
        self._known: dict[tuple[str, str], ReportedFigures] = {}
        self._asked: set[tuple[str, str]] = set()
        self._supervisor = Supervisor()

    def of(self, uid: str) -> Mapping[str, ReportedFigures]:
        """Those of a pod, by the name of the volume in it."""
        return {volume: figures for (whose, volume), figures in self._known.items() if whose == uid}

    async def run(self) -> None:
        """Asks until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._supervisor.run(), name="figures of CSI volumes")
            while self._period > 0:
                self._round()
                await asyncio.sleep(self._period)
            await asyncio.get_running_loop().create_future()

    def _round(self) -> None:
        volumes = {(one.pod.uid, one.volume): one for one in self._volumes()}
        for key in self._known.keys() - volumes.keys():
            del self._known[key]
        for key, one in volumes.items():
            if key not in self._asked:
                self._asked.add(key)
                self._supervisor.start(f"figures of volume {one.name}", partial(self._one, key, one))

    async def _one(self, key: tuple[str, str], one: OpenVolume) -> None:
        try:
            with working_for(one.pod):
                await self.ask(one)
        finally:
            self._asked.discard(key)

    async def ask(self, one: OpenVolume) -> None:
        """Asks for the figures of one volume. An error is logged; without the capability nothing is asked."""
        try:
            able = await self._calls.capabilities(one.driver, volume=one.name)
            if Capability.GET_VOLUME_STATS not in able:
                return
            answer = await self._calls.call(
                one.driver,
                messages.NodeGetVolumeStatsRequest(volume_id=one.handle, volume_path=one.path),
                messages.NodeGetVolumeStatsResponse,
                volume=one.name,
            )
        except CSIProblem as problem:
            fields = {"pod": str(one.pod), "volume": one.name, "driver": one.driver, "error": str(problem)}
            _log.warning("volume has no figures", extra=fields)
            return
        health = self._conditions and Capability.VOLUME_CONDITION in able and answer.HasField("volume_condition")
        abnormal = answer.volume_condition.abnormal if health else None
        if abnormal:
            text = f"Volume {one.volume}: {answer.volume_condition.message}"
            self._emit(one.pod, "Warning", "VolumeConditionAbnormal", text)
        self._known[one.pod.uid, one.volume] = figures_of(answer.usage, abnormal=abnormal, now=time.time_ns())


def figures_of(usage: Iterable[_Usage], *, abnormal: bool | None, now: int) -> ReportedFigures:
    """What the driver said; a unit that it left out is 0. `now`: Unix time in nanoseconds."""
    bytes_, inodes = _Usage(), _Usage()
    for one in usage:
        if one.unit == _Usage.BYTES:
            bytes_ = one
        elif one.unit == _Usage.INODES:
            inodes = one
    return ReportedFigures(
        taken_at=now,
        capacity=max(bytes_.total, 0),
        available=max(bytes_.available, 0),
        used=max(bytes_.used, 0),
        inodes=max(inodes.total, 0),
        inodes_free=max(inodes.available, 0),
        inodes_used=max(inodes.used, 0),
        abnormal=abnormal,
    )
