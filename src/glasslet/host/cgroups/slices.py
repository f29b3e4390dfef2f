"""Cgroups as slices of systemd: it makes and removes them, and knows their limits."""

from __future__ import annotations

from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.host.cgroups.slice_properties import creation_properties, limit_properties, unit_of
from glasslet.host.systemd.units import SystemdUnits


class SystemdSlices:
    """`version`: that of this machine's cgroups. Methods raise BusAway, BusRefused and UnitFailed, all OSError."""

    def __init__(self, *, units: SystemdUnits, version: int) -> None:
        self._units = units
        self._version = version

    async def make(self, path: str) -> None:
        """Starts the slice. One that is there stays as it is."""
        await self._units.start(unit_of(path), creation_properties(path, version=self._version))

    async def limit(self, path: str, limits: CgroupLimits) -> None:
        """Passes limits to systemd, which may write them into the cgroup's files as well."""
        properties = limit_properties(limits, version=self._version, systemd=await self._units.version())
        await self._units.change(unit_of(path), properties)

    async def remove(self, path: str) -> None:
        """Stops the slice, with all units in it. Fine for one that is not there."""
        await self._units.stop(unit_of(path))
