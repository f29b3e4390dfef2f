"""`/healthz` and `/healthz/<check>` on the HTTPS and the read-only port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from aiohttp import web

from glasslet.server import responses
from glasslet.server.health_report import report, single
from glasslet.server.protocols import HealthCheck
from glasslet.server.routing import Handler, Parameters, RouteTable


class HealthObserver(Protocol):
    """Counts results of checks."""

    def checked(self, name: str, *, ok: bool) -> None: ...


def add_health(routes: RouteTable, checks: Sequence[HealthCheck], observer: HealthObserver) -> None:
    """Serves all checks together and each one."""

    async def together(request: web.Request, _: Parameters) -> web.StreamResponse:
        status, body = report(
            checks,
            excluded=request.query.getall("exclude", []),
            verbose="verbose" in request.query,
            observe=lambda name, ok: observer.checked(name, ok=ok),
        )
        return responses.plain(status, body, {"X-Content-Type-Options": "nosniff"})

    routes.fixed("/healthz", together)
    for check in checks:
        routes.fixed(f"/healthz/{check.name}", _one(check))


def _one(check: HealthCheck) -> Handler:
    async def alone(_request: web.Request, _: Parameters) -> web.StreamResponse:
        return responses.plain(*single(check))

    return alone


def syncloop_check(last_turn: Callable[[], float], now: Callable[[], float], sync_frequency: float) -> HealthCheck:
    """Fails when the loop has not turned for the larger of two sync periods and five minutes (behaviours.md §1)."""
    limit = max(300.0, 2 * sync_frequency)

    def check() -> str | None:
        return "sync Loop took longer than expected" if now() - last_turn() > limit else None

    return HealthCheck("syncloop", check)
