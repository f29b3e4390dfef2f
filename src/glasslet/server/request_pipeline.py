"""The way of every request: counted, routed, authenticated, authorized, bounded in time; then its handler answers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractContextManager
from typing import Any, Protocol
from urllib.parse import quote

from aiohttp import web
from msgspec import Struct

from glasslet.glass.requests import ALL_VERBS, CLIENT
from glasslet.server import responses
from glasslet.server.access.authentication import AuthenticationChain, BadCredentials, bearer_token
from glasslet.server.access.authorization import Denied, RequestAuthorizer, is_below, subresources
from glasslet.server.access.users import ANONYMOUS, RequestCredentials, User
from glasslet.server.routing import Redirect, Refusal, RouteGroup, RouteTable
from glasslet.server.transport.guard import ConnectionGuard, ServerConnections
from glasslet.server.transport.places import source_of
from glasslet.server.transport.tally import Tally
from glasslet.telemetry.metrics.http import RequestKind

log = logging.getLogger(__name__)

CONNECTIONS: web.AppKey[ServerConnections] = web.AppKey("connections", ServerConnections)
GLASS = "/glass"
_QUERY_FIELDS = 10_000
"""As Go's HTTP library: to read a megabyte of empty fields would hold the event loop."""


class RequestMetrics(Protocol):
    """Counts requests."""

    def request(self, kind: RequestKind) -> AbstractContextManager[None]: ...


class Access(Struct, frozen=True):
    """Access control. A server without it (the read-only port) serves every client."""

    authentication: AuthenticationChain
    authorization: RequestAuthorizer


class AuthorizedClient:
    """The client of a request, for handlers below /glass."""

    def __init__(self, user: User, authorization: RequestAuthorizer) -> None:
        self.name = user.name
        self._user = user
        self._authorization = authorization

    async def verbs(self) -> tuple[str, ...]:
        """The verbs on `nodes/glass` that it holds."""
        return tuple([verb for verb in ALL_VERBS if await self._authorization.may(self._user, verb, "glass")])


class RequestPipeline:
    """Answers requests by a route table."""

    def __init__(
        self,
        *,
        routes: RouteTable,
        buckets: frozenset[str],
        connections: ServerConnections,
        metrics: RequestMetrics,
        access: Access | None,
    ) -> None:
        self._routes = routes
        self._buckets = buckets
        self._connections = connections
        self._metrics = metrics
        self._access = access
        self._unauthenticated = Tally(log, logging.INFO, "Unauthenticated request")
        self._server_type = "readwrite" if access is not None else "readonly"

    def middleware(self) -> Any:
        """An aiohttp middleware with routes of its own; only what is below /glass goes on to aiohttp's router."""

        @web.middleware
        async def passes(request: web.Request, handler: Any) -> web.StreamResponse:
            return await self._guarded(request, handler)

        return passes

    async def _guarded(self, request: web.Request, glass: Any) -> web.StreamResponse:
        guard = self._guard(request)
        guard.request_started()
        if "Upgrade" in request.headers:
            guard.hold()
        path = request.path
        kind = RequestKind(request.method, metric_bucket(path, self._buckets), self._server_type)
        try:
            with self._metrics.request(kind):
                return await self._timed(guard, request, path, glass)
        finally:
            guard.request_finished()

    async def _timed(self, guard: ConnectionGuard, request: web.Request, path: str, glass: Any) -> web.StreamResponse:
        try:
            async with asyncio.timeout(self._connections.limits.write_seconds) as deadline:
                guard.request_ends_by(deadline)
                response = await self._answer(request, path, glass)
                # Sent here and not by aiohttp afterwards, so that a client that does not read is under the limit, too.
                await response.prepare(request)
                await response.write_eof()
                return response
        except TimeoutError:
            log.info("Request cut, it took too long", extra={"path": path})
            guard.abort()
        except ConnectionError:
            log.debug("Client left before the answer was out", extra={"path": path})
        return responses.TakenOver()

    async def _answer(self, request: web.Request, path: str, glass: Any) -> web.StreamResponse:
        try:
            return await self._route(request, path, glass)
        except (web.HTTPException, ConnectionError, TimeoutError):
            raise
        except Exception:
            log.exception("Request failed", extra={"method": request.method, "path": path})
            return responses.error(500, "Internal Error: see the log of the kubelet")

    async def _route(self, request: web.Request, path: str, glass: Any) -> web.StreamResponse:
        if request.rel_url.raw_query_string.count("&") >= _QUERY_FIELDS:
            return responses.plain(400, f"400 Bad Request: more than {_QUERY_FIELDS} fields in the query")
        of_glass = is_below(path, GLASS) and self._access is not None and request.match_info.http_exception is None
        found = None if of_glass else self._routes.find(path)
        if isinstance(found, Redirect):
            query = f"?{request.query_string}" if request.query_string else ""
            return responses.redirect(quote(found.path) + query)
        if found is None and not of_glass:
            return responses.error(404, "404 page not found")
        if self._access is not None and (refused := await self._refusal(request, path, self._access)) is not None:
            return refused
        if of_glass:
            response: web.StreamResponse = await glass(request)
            return response
        if isinstance(found, RouteGroup):
            choice = found.choose(path, request.method, request.headers.get("Accept"))
            if isinstance(choice, Refusal):
                return responses.plain(choice.status, choice.body, choice.headers)
            return await choice.handler(request, choice.parameters)
        assert found is not None
        assert not isinstance(found, Redirect)
        return await found(request, {})

    async def _refusal(self, request: web.Request, path: str, access: Access) -> web.Response | None:
        guard = self._guard(request)
        try:
            user = await access.authentication.authenticate(credentials_of(request, guard))
        except BadCredentials as refused:
            self._unauthenticated.note(path=path, source=guard.source, reason=str(refused))
            return _unauthorized()
        if user is None:
            return _unauthorized()
        match await access.authorization.check(user, request.method, path):
            case None:
                if user.name != ANONYMOUS.name:
                    guard.authorized(by_proxy_alone=subresources(path) == ("proxy",))
                CLIENT.set(AuthorizedClient(user, access.authorization))
                return None
            case Denied(status, body):
                log.info("Request denied", extra={"user": user.name, "method": request.method, "path": path})
                return responses.plain(status, body)

    def _guard(self, request: web.Request) -> ConnectionGuard:
        try:
            return self._connections.guard_of(request.protocol)
        except KeyError:
            raise ConnectionResetError("the client is gone") from None


def _unauthorized() -> web.Response:
    """The connection closes with it: a client without credentials keeps no place."""
    response = responses.plain(401, "Unauthorized")
    response.force_close()
    return response


def credentials_of(request: web.Request, guard: ConnectionGuard) -> RequestCredentials:
    """The credentials of the request."""
    protocols = (p.strip() for p in request.headers.get("Sec-WebSocket-Protocol", "").split(","))
    token = bearer_token(request.headers.get("Authorization"), protocols)
    return RequestCredentials(guard.certificate, token, source_of(guard.source))


def metric_bucket(path: str, buckets: frozenset[str]) -> str:
    """The name that a path is counted under: its first segment, two for metrics; unknown ones are `other`."""
    first, _, rest = path.removeprefix("/").partition("/")
    name = f"{first}/{rest.partition('/')[0]}" if first == "metrics" and rest else first
    return name if name in buckets else "other"
