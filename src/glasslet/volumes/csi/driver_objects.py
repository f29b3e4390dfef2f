"""The CSIDriver objects of the cluster: what each driver wants. Listed and watched."""

from __future__ import annotations

import asyncio

from glasslet.api.storage import CSIDriver
from glasslet.kubeapi import paths
from glasslet.kubeapi.protocols import APIClient
from glasslet.kubeapi.reflector import Reflector
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.volumes.csi.errors import PREFIX, NotTried

FIRST_LIST = 60.0
"""Seconds that a volume waits for the first list."""


class DriverObjects:
    """As last seen."""

    def __init__(self, *, client: APIClient, recorder: Recorder) -> None:
        self._recorder = recorder
        self._reflector = Reflector(
            client=client, path=paths.CSI_DRIVERS, kind=CSIDriver, on_change=lambda change: None, recorder=recorder
        )

    async def get(self, name: str) -> CSIDriver | None:
        """The object of a driver, None if it has none. Raises NotTried while they are not known."""
        if not self._reflector.synced.is_set():
            try:
                with self._recorder.wait(WaitKind.API_CALL, on="first list of CSIDriver objects"):
                    async with asyncio.timeout(FIRST_LIST):
                        await self._reflector.synced.wait()
            except TimeoutError:
                raise NotTried(f"{PREFIX}CSIDriver objects are not known: the API server does not answer") from None
        return self._reflector.get("", name)

    def attaches(self, name: str) -> bool:
        """Whether a controller attaches the driver's volumes, as far as it is known."""
        return needs_attachment(self._reflector.get("", name))

    async def run(self) -> None:
        """Keeps them current until cancelled."""
        await self._reflector.run()


def needs_attachment(driver: CSIDriver | None) -> bool:
    """Whether a controller attaches the driver's volumes: unless its object says otherwise."""
    return driver is None or driver.spec.attach_required is not False
