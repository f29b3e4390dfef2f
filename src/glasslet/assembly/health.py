"""What says whether the agent is well: checks of `/healthz`, and the watchdog of whoever started the agent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from glasslet.assembly.foundation import Foundation
from glasslet.server.handlers.health import syncloop_check
from glasslet.server.protocols import PING, HealthCheck

if TYPE_CHECKING:
    from glasslet.host.service_manager import ServiceManager


@dataclass(slots=True)
class Vitals:
    """The checks that a watchdog goes by; before there is anything to check, an agent that answers is well."""

    checks: tuple[HealthCheck, ...] = field(default=(PING,))

    def problem(self) -> str | None:
        """The first that fails, in words."""
        for check in self.checks:
            if (problem := check.check()) is not None:
                return f"{check.name}: {problem}"
        return None


def own_checks(
    log: Callable[[], str | None], turned_at: Callable[[], float], now: Callable[[], float], sync_frequency: float
) -> tuple[HealthCheck, ...]:
    """Those of the agent itself, which starting it again may help."""
    return (PING, HealthCheck("log", log), syncloop_check(turned_at, now, sync_frequency))


def runtime_check(problem: Callable[[], str | None]) -> HealthCheck:
    """Fails when the runtime was not heard of for three minutes: starting the agent again would not help."""
    return HealthCheck("pleg", problem)


def find_service_manager(foundation: Foundation, vitals: Vitals) -> ServiceManager | None:
    """Whoever started the agent and wants to be told; None: nobody does. Raises BadWatchdog."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return None
    from glasslet.host.service_manager import ServiceManager, watchdog_period

    watched = foundation.loaded.gates.enabled("SystemdWatchdog")
    return ServiceManager(
        address=address,
        period=watchdog_period(os.environ) if watched else None,
        problem=vitals.problem,
        recorder=foundation.record,
    )
