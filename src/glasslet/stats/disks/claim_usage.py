"""How full the volumes behind claims are, for `/metrics`: measured from time to time, each by itself in a thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from time import monotonic

from msgspec import Struct

from glasslet.api.pod_ref import PodRef
from glasslet.exchange.volume import ReportedFigures
from glasslet.host.threads import MEASURE, HostCallStuck, Threads
from glasslet.record.recorder import working_for
from glasslet.record.stations import WaitKind
from glasslet.stats.disks.disk_usage import (
    FILESYSTEM,
    FilesystemFigures,
    Measured,
    filesystem,
    filesystem_of,
    not_counted,
)

logger = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds for each volume: a dead server holds up no other figure."""


class ClaimedVolume(Struct, frozen=True, kw_only=True):
    """One claim of one pod, and where what is behind it is mounted."""

    pod: PodRef
    claim: str
    path: str


class ClaimUsage:
    """The newest figures, by namespace and claim. `volumes`: those that are mounted now; `period` in seconds, 0 or
    less: nothing is measured; `told`: what drivers of volumes say of theirs."""

    def __init__(
        self,
        *,
        volumes: Callable[[], Iterable[ClaimedVolume]],
        threads: Threads,
        period: float,
        measured: Measured = not_counted,
        told: Callable[[], Iterable[tuple[tuple[str, str], ReportedFigures]]] = tuple,
    ) -> None:
        self._volumes = volumes
        self._told = told
        self._measured = measured
        self._threads = threads
        self._period = period
        self._known: Mapping[tuple[str, str], FilesystemFigures] = {}

    def figures(self) -> Mapping[tuple[str, str], FilesystemFigures]:
        """Returns the last figures."""
        return {**self._known, **{claim: filesystem_of(one) for claim, one in self._told()}}

    async def run(self) -> None:
        """Measures until cancelled."""
        while self._period > 0:
            await self.measure()
            await asyncio.sleep(self._period)

    async def measure(self) -> None:
        """One round. A volume that several pods share counts once; one that cannot be read has no figures."""
        found: dict[tuple[str, str], FilesystemFigures] = {}
        for volume in self._volumes():
            name = volume.pod.namespace, volume.claim
            if name not in found and (figures := await self._one(volume)) is not None:
                found[name] = figures
        self._known = found

    async def _one(self, volume: ClaimedVolume) -> FilesystemFigures | None:
        with working_for(volume.pod):
            try:
                return await self._threads.run(
                    lambda: self._figures(volume.path),
                    on=f"size of claim {volume.claim} of {volume.pod}",
                    kind=WaitKind.VOLUME,
                    within=PATIENCE,
                    place=MEASURE,
                )
            except (HostCallStuck, OSError) as error:
                logger.warning("claim is not measured", extra={"claim": volume.claim, "error": str(error)})
                return None

    def _figures(self, path: str) -> FilesystemFigures:
        began = monotonic()
        figures = filesystem(path)
        self._measured(FILESYSTEM, monotonic() - began)
        return figures
