"""Creates and limits the cgroup of all pods, and limits those that the administrator reserves for others.

A start fails when cgroupRoot does not exist, when kubepods or a QoS class cannot be created, or when a reservation
cannot be enforced. Limits of kubepods may be refused while pods use more: they are tried each minute until they fit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.resources.cgroup_manager import CgroupManager
from glasslet.resources.layout import CgroupName, in_brackets
from glasslet.resources.node_rules import NodeRules, Reservation
from glasslet.resources.qos_cgroups import QoSCgroups

logger = logging.getLogger(__name__)

RETRY = 60.0
"""Seconds between tries to limit kubepods."""
_ENFORCED, _FAILED = "NodeAllocatableEnforced", "FailedNodeAllocatableEnforcement"

NodeEvents = Callable[[str, str, str], None]
"""Type (Normal, Warning), reason, message."""


class CgroupSetupFailed(Exception):
    """The agent cannot start: its cgroups cannot be set up."""


class NodeCgroups:
    """Applies `rules`. `classes` is None where they have no layout."""

    def __init__(
        self,
        *,
        manager: CgroupManager,
        rules: NodeRules,
        classes: QoSCgroups | None,
        events: NodeEvents,
        recorder: Recorder,
    ) -> None:
        self._manager = manager
        self._rules = rules
        self._classes = classes
        self._events = events
        self._recorder = recorder
        self._name = rules.layout.kubepods if rules.layout is not None else rules.root
        self._path = rules.path(self._name)

    async def start(self) -> None:
        """Creates and limits the cgroups that the first pod needs. Raises CgroupSetupFailed."""
        if self._classes is not None:
            await self._create(self._classes)
        for reservation in self._rules.reservations:
            await self._enforce(reservation)

    async def run(self) -> None:
        """Limits the cgroup of all pods; retries until it succeeds. The root cgroup cannot be limited."""
        if not self._name:
            return
        while not await self._limit():
            with self._recorder.wait(WaitKind.BACK_OFF, on=f"limits of cgroup {self._path}"):
                await asyncio.sleep(RETRY)

    async def _create(self, classes: QoSCgroups) -> None:
        root = self._rules.root
        if missing := self._manager.missing(self._rules.path(root)):
            raise CgroupSetupFailed(f"invalid configuration: {self._incomplete(root, missing)}")
        try:
            if not self._manager.exists(self._path):
                await self._manager.create(self._path, self._rules.limits)
            await classes.create()
        except OSError as error:
            raise CgroupSetupFailed(f"failed to initialize top level QOS containers: {error}") from error

    async def _limit(self) -> bool:
        try:
            await self._manager.update(self._path, self._rules.limits)
        except OSError as error:
            text = f"Failed to update Node Allocatable Limits {in_brackets(self._name)}: {error}"
            self._events("Warning", _FAILED, text)
            return False
        self._events("Normal", _ENFORCED, "Updated Node Allocatable limit across pods")
        return True

    async def _enforce(self, reservation: Reservation) -> None:
        side, path = reservation.side, reservation.path
        name = self._rules.parse(path)
        try:
            if problem := self._problem(reservation, name):
                raise CgroupSetupFailed(problem)
            await self._manager.update(self._rules.path(name), reservation.limits or CgroupLimits())
        except (OSError, CgroupSetupFailed) as error:
            kind = "Reserved Compressible" if reservation.compressible_only else "Reserved"
            text = f'Failed to enforce {side} {kind} Cgroup Limits on "{path}": {error}'
            self._events("Warning", _FAILED, text)
            raise CgroupSetupFailed(text) from error
        self._events("Normal", _ENFORCED, f"Updated limits on {side.lower()} reserved cgroup {path}")

    def _problem(self, reservation: Reservation, name: CgroupName) -> str:
        if reservation.limits is None:
            return f"{in_brackets(name)} cgroup is not configured properly"
        missing = self._manager.missing(self._rules.path(name))
        return self._incomplete(name, missing) if missing else ""

    def _incomplete(self, name: CgroupName, missing: tuple[str, ...]) -> str:
        what = "controllers" if self._manager.version == 2 else "paths"
        return f"cgroup {in_brackets(name)} has some missing {what}: {', '.join(missing)}"
