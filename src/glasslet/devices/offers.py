"""Owner of the fact which devices plugins offer. Holds a connection to each plugin and follows its list of devices.

    registered ──first list──▶ offered ──stream ends──▶ lost (devices unhealthy) ──5 min──▶ given up (resource is zero)
         ▲                                                 │
         └──────────────── registers again ◀───────────────┘

A plugin whose stream ended is not dialled again: it registers when it is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from msgspec import Struct

from glasslet.api.quantity import Quantity
from glasslet.concurrency.supervision import Supervisor
from glasslet.devices.inventory import Devices, all_unhealthy, by_id, healthy
from glasslet.devices.plugin import DevicePlugin, DevicePluginFailed, PluginOptions
from glasslet.exchange.devices import DeviceResources
from glasslet.exchange.numa import mask_of
from glasslet.host.topology import MAX_NODE
from glasslet.record.recorder import Recorder
from glasslet.record.standing import StandingFinding

logger = logging.getLogger(__name__)

GRACE_SECONDS = 300.0
"""device.stop_grace: how long a lost plugin's devices stay in the node's capacity."""


class Offer(Struct, kw_only=True):
    """One resource. `devices` is None until the plugin reported any, or was lost; `plugin` is None while it is not
    connected; `gone_at`: loop time at which the resource is given up."""

    devices: Devices | None = None
    plugin: DevicePlugin | None = None
    options: PluginOptions = PluginOptions()
    timer: asyncio.TimerHandle | None = None


class DeviceCounts(Struct, frozen=True, kw_only=True):
    """Numbers of devices of one resource."""

    capacity: int
    allocatable: int


Dial = Callable[[str, str], DevicePlugin]
"""Resource and socket -> a plugin that is not connected yet."""


class Offers:
    """All resources of device plugins."""

    def __init__(self, *, recorder: Recorder, dial: Dial | None = None) -> None:
        self._dial: Dial = dial or (lambda name, path: DevicePlugin(resource=name, socket=path, recorder=recorder))
        self._recorder = recorder
        self._supervisor = Supervisor()
        self._offers: dict[str, Offer] = {}
        self._removed: set[str] = set()
        self._subscribers: list[Callable[[], Awaitable[None]]] = []

    def subscribe(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Awaits `callback` after each change of resources or devices."""
        self._subscribers.append(callback)

    async def run(self) -> None:
        """Follows the plugins until cancelled."""
        try:
            await self._supervisor.run()
        finally:
            for offer in self._offers.values():
                _stop_timer(offer)
                if offer.plugin is not None:
                    await offer.plugin.close()

    def expect(self, resources: Iterable[str]) -> None:
        """Takes resources that were registered with an earlier agent: they have no devices until their plugins are
        back."""
        for resource in resources:
            self._offers[resource] = offer = Offer(devices={})
            self._give_up_later(resource, offer)

    async def register(self, resource: str, socket: str) -> None:
        """Connects to a plugin. Raises DevicePluginFailed; then nothing changes."""
        plugin = self._dial(resource, socket)
        try:
            await plugin.connect()
        except BaseException:
            await plugin.close()
            raise
        offer = self._offers.setdefault(resource, Offer())
        _stop_timer(offer)
        before, offer.plugin, offer.options = offer.plugin, plugin, plugin.options
        if before is not None:
            await before.close()
        logger.info("device plugin registered", extra={"resource": resource, "socket": socket})
        self._supervisor.start(f"device plugin {resource}", partial(self._follow, plugin))

    async def deregister(self, resource: str, socket: str) -> None:
        """Drops the plugin whose registration was withdrawn."""
        offer = self._offers.get(resource)
        if offer is not None and offer.plugin is not None and offer.plugin.socket == socket:
            await self._lose(offer.plugin, "its registration was withdrawn")

    def healthy(self) -> dict[str, frozenset[str]]:
        """The ids of allocatable devices, by registered resource."""
        return {name: healthy(offer.devices) for name, offer in self._offers.items() if offer.devices is not None}

    def places(self) -> dict[str, dict[str, int]]:
        """The mask of NUMA nodes of each device that has any, by resource; resources without such devices are left
        out. Nodes that no machine has are passed over: a plugin may say anything."""
        found = {}
        for resource, offer in self._offers.items():
            masks = {one.id: mask_of(filter(_may_be, one.numa)) for one in (offer.devices or {}).values()}
            found[resource] = {name: mask for name, mask in masks.items() if mask}
        return {resource: places for resource, places in found.items() if places}

    def devices(self, resource: str) -> Devices:
        """All devices of a resource."""
        offer = self._offers.get(resource)
        return (offer.devices if offer is not None else None) or {}

    def get(self, resource: str) -> Offer | None:
        """The offer; None for a resource that is not registered, or was given up."""
        return self._offers.get(resource)

    def resources(self) -> DeviceResources:
        """Capacity and allocatable of all resources, as the node's status shows them."""
        counts = self.amounts()
        return DeviceResources(
            capacity={name: Quantity(one.capacity) for name, one in counts.items()},
            allocatable={name: Quantity(one.allocatable) for name, one in counts.items()},
            removed=tuple(sorted(self._removed)),
        )

    def amounts(self) -> dict[str, DeviceCounts]:
        """The numbers of devices, by resource."""
        return {
            name: DeviceCounts(capacity=len(offer.devices), allocatable=len(healthy(offer.devices)))
            for name, offer in self._offers.items()
            if offer.devices is not None
        }

    async def _follow(self, plugin: DevicePlugin) -> None:
        without_id = StandingFinding(self._recorder)
        try:
            async for reported in plugin.watch():
                offer = self._offers.get(plugin.resource)
                if offer is None or offer.plugin is not plugin:
                    return
                nameless = sum(not device.id for device in reported)
                if nameless:
                    without_id.is_(f"device plugin {plugin.resource}: {nameless} devices without an ID left out")
                else:
                    without_id.over()
                found = by_id(device for device in reported if device.id)
                if found != offer.devices or plugin.resource in self._removed:
                    offer.devices = found
                    self._removed.discard(plugin.resource)
                    logger.info(
                        "devices",
                        extra={"resource": plugin.resource, "all": len(found), "healthy": len(healthy(found))},
                    )
                    await self._notify()
            why = "it ended ListAndWatch"
        except DevicePluginFailed as error:
            why = str(error)
        without_id.over()
        await self._lose(plugin, why)

    async def _lose(self, plugin: DevicePlugin, why: str) -> None:
        """Marks the devices of a lost plugin unhealthy, and gives them up after a while."""
        offer = self._offers.get(plugin.resource)
        await plugin.close()
        if offer is None or offer.plugin is not plugin:
            return
        logger.warning("device plugin lost", extra={"resource": plugin.resource, "why": why})
        offer.plugin = None
        offer.devices = all_unhealthy(offer.devices or {})
        self._give_up_later(plugin.resource, offer)
        await self._notify()

    def _give_up_later(self, resource: str, offer: Offer) -> None:
        def give_up() -> None:
            logger.warning("device plugin did not come back", extra={"resource": resource, "seconds": GRACE_SECONDS})
            del self._offers[resource]
            self._removed.add(resource)
            self._supervisor.start(f"loss of {resource}", self._notify)

        _stop_timer(offer)
        offer.timer = asyncio.get_running_loop().call_later(GRACE_SECONDS, give_up)

    async def _notify(self) -> None:
        for callback in self._subscribers:
            await callback()


def _stop_timer(offer: Offer) -> None:
    if offer.timer is not None:
        offer.timer.cancel()
        offer.timer = None


def _may_be(node: int) -> bool:
    return 0 <= node <= MAX_NODE
