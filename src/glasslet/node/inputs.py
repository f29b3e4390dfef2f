"""The inputs of a node status at one moment. The pure half of the room sees nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct

from glasslet.exchange.devices import DeviceResources
from glasslet.host.machine import Machine
from glasslet.runtime.model import Image, RuntimeHandler


class Pressures(Struct, frozen=True, kw_only=True):
    """The resources that the node is short of, as the eviction manager reports them."""

    memory: bool = False
    disk: bool = False
    pids: bool = False


class HostFacts(Struct, frozen=True, kw_only=True):
    """The last facts about machine and runtime. Sizes in bytes."""

    machine: Machine = Machine()
    addresses: tuple[str, ...] | None = None
    """The node's IP addresses; None: unknown now."""
    hugepages: Mapping[int, int] = {}
    """Page size -> bytes reserved in pages of that size."""
    storage: int | None = None
    """Capacity of the file system of the root directory; None: not known."""
    images: tuple[Image, ...] = ()
    runtime_name: str = ""
    runtime_version: str = ""


class NodeInputs(Struct, frozen=True, kw_only=True):
    """One moment. `errors`: why the node is not ready, in the order of the report; empty: it is ready.
    `volumes_in_use`: None while volumes of an earlier run are not all known."""

    now: datetime
    facts: HostFacts = HostFacts()
    errors: tuple[str, ...] = ()
    pressures: Pressures = Pressures()
    devices: DeviceResources = DeviceResources()
    handlers: tuple[RuntimeHandler, ...] = ()
    supplemental_groups_policy: bool = False
    volumes_in_use: tuple[str, ...] | None = None


class NodeEvent(Struct, frozen=True):
    """An event about the node, sent once the status that it belongs to is accepted."""

    type: str
    reason: str
    message: str


def status_event(node: str, reason: str) -> NodeEvent:
    """The event of a changed condition. Its type is Normal, also for bad news, as upstream."""
    return NodeEvent("Normal", reason, f"Node {node} status is now: {reason}")


def _no_pressures() -> Pressures:
    return Pressures()


def _no_devices() -> DeviceResources:
    return DeviceResources()


def _no_problem() -> str:
    return ""


def _unknown_volumes() -> tuple[str, ...] | None:
    return None


def _never() -> bool:
    return False


class Contributions(Struct, frozen=True, kw_only=True):
    """What other rooms add to the node's status. Each is called whenever a status is computed, and answers at once.
    Problems are "" when there is none."""

    pressures: Callable[[], Pressures] = _no_pressures
    storage_problem: Callable[[], str] = _no_problem
    """`CSINode is not yet initialized`, ..."""
    shutdown_problem: Callable[[], str] = _no_problem
    """`node is shutting down`"""
    devices: Callable[[], DeviceResources] = _no_devices
    reset_extended: Callable[[], bool] = _never
    """At registration: nothing is known of devices on this machine (no checkpoint of the device manager)."""
    volumes_in_use: Callable[[], tuple[str, ...] | None] = _unknown_volumes
    """None while volumes of an earlier run are not all known."""
