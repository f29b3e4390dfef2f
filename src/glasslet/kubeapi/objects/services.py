"""The services in the environments of containers: their addresses and ports only."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
from msgspec import field

from glasslet.api.configdata import ServicePort
from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object
from glasslet.kubeapi import paths
from glasslet.kubeapi.protocols import APIClient
from glasslet.kubeapi.reflector import Reflector
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

FIRST_LIST = 5.0
"""Seconds that a container's start waits for the first list of services, before it counts as failed."""


class ServiceAddressSpec(Object, frozen=True, kw_only=True):
    """Of `core/v1.ServiceSpec`, what goes into environments."""

    cluster_ip: str = field(default="", name="clusterIP")
    ports: tuple[ServicePort, ...] = ()


class ServiceAddress(Object, frozen=True, kw_only=True):
    """A `core/v1.Service` without what is of no use here: a cluster may have thousands."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceAddressSpec = ServiceAddressSpec()

    def __post_init__(self) -> None:
        meta = self.metadata
        slim = ObjectMeta(name=meta.name, namespace=meta.namespace, resource_version=meta.resource_version)
        msgspec.structs.force_setattr(self, "metadata", slim)


class Services:
    """The cluster's services as last seen."""

    def __init__(self, *, client: APIClient, recorder: Recorder) -> None:
        self._recorder = recorder
        self._recalled: tuple[ServiceAddress, ...] | None = None
        self._reflector = Reflector(
            client=client, path=paths.SERVICES, kind=ServiceAddress, on_change=lambda change: None, recorder=recorder
        )

    def known(self) -> tuple[ServiceAddress, ...] | None:
        """All services; None before they were listed once."""
        return self._reflector.all() if self._reflector.synced.is_set() else self._recalled

    def recall(self, services: Iterable[ServiceAddress]) -> None:
        """Takes the services of an earlier run; they count until the first list."""
        self._recalled = tuple(services)

    async def listed(self) -> tuple[ServiceAddress, ...] | None:
        """All services, waiting a moment for the first list; None if it does not come."""
        if self.known() is None:
            with self._recorder.wait(WaitKind.API_CALL, on="first list of services"):
                try:
                    async with asyncio.timeout(FIRST_LIST):
                        await self._reflector.synced.wait()
                except TimeoutError:
                    return self.known()
        return self.known()

    async def run(self) -> None:
        """Keeps them current until cancelled."""
        await self._reflector.run()


class NoServices:
    """An agent without an API server: containers get no variables of services."""

    def known(self) -> tuple[ServiceAddress, ...]:
        """None."""
        return ()

    async def listed(self) -> tuple[ServiceAddress, ...]:
        """None."""
        return ()
