"""What other parts of the agent say about the node. Parts that are not there say nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from glasslet.node.inputs import DeviceResources, Pressures


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """Each is asked whenever a status is computed: they answer at once. Problems are "" when there is none."""

    pressures: Callable[[], Pressures] = _no_pressures
    storage_problem: Callable[[], str] = _no_problem
    """`CSINode is not yet initialized`, ..."""
    shutdown_problem: Callable[[], str] = _no_problem
    """`node is shutting down`"""
    devices: Callable[[], DeviceResources] = _no_devices
    reset_extended: Callable[[], bool] = _never
    """At registration: nothing is known of devices on this machine (no checkpoint of the device manager)."""
    volumes_in_use: Callable[[], tuple[str, ...] | None] = _unknown_volumes
    """None while volumes of a former life are not all known again."""
