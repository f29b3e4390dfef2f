"""The loopback server of `glasslet web`: passes requests on to the agent's socket, for one person on this machine.
`kubectl glass web` passes them on to a node's agent, through the API server.

The printed address has a token in its fragment, which browsers do not send. The page swaps it, once, for a cookie that
scripts cannot read. Everything but the page's own files needs that cookie. A request must name this server as its host
(against names that are pointed at 127.0.0.1), come from this page if it comes from any, and carry the header
X-Glasslet if it changes something. All of it ends with the process.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout, UnixConnector, web

from glasslet.answers.wire import ErrorAnswer, encode

_FILE = re.compile(r"/glass/([a-z0-9-]+\.[a-z]+)?")
_CHANGING = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_BODY_BYTES = 1 << 20
_HOP_BY_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "content-length", "upgrade", "te", "trailer"))
_NOT_PASSED_ON = _HOP_BY_HOP | {"host", "cookie", "authorization", "origin", "sec-fetch-site"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageServer:
    """Serves the page of the agent at `socket`. `below`: what the agent's addresses begin with there, "" for its own
    socket; with it, logs are the kubelet's (/containerLogs) and are passed on as well."""

    def __init__(self, socket: Path, *, below: str = "") -> None:
        self._socket = socket
        self._below = below
        self._token = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._swapped = False
        self._port = 0
        self._agent: ClientSession | None = None
        self._runner: web.AppRunner | None = None

    @property
    def address(self) -> str:
        """The address to open, token included."""
        return f"http://127.0.0.1:{self._port}/glass/#token={self._token}"

    async def start(self, port: int) -> None:
        """Listens on 127.0.0.1; port 0 picks a free one. Raises OSError."""
        self._agent = ClientSession(
            connector=UnixConnector(path=_connectable(self._socket), limit=0),
            timeout=ClientTimeout(total=None, sock_connect=5.0),
            auto_decompress=False,
        )
        app = web.Application(middlewares=[self._guard], client_max_size=_BODY_BYTES)
        app.router.add_get("/", self._to_the_page)
        app.router.add_post("/glass/session", self._swap)
        app.router.add_route("*", "/glass{rest:(?:/.*)?}", self._pass_on)
        if self._below:
            app.router.add_get("/containerLogs/{rest:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self._port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Ends, and with it the session."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._agent is not None:
            await self._agent.close()

    @property
    def _cookie(self) -> str:
        """Cookies do not know ports: each server has a name of its own."""
        return f"glasslet-{self._port}"

    @property
    def _cookie_path(self) -> str:
        return "/" if self._below else "/glass"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        hosts = {f"{name}:{self._port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        if request.headers.get("Host") not in hosts:
            return _refused(403, "this server answers only under its own address", "Host")
        origin = request.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in hosts:
            return _refused(403, "a request of another page", "Origin")
        if request.method in _CHANGING and request.headers.get("X-Glasslet") != "1":
            return _refused(403, "a request that changes something needs this header", "X-Glasslet")
        public = request.path in ("/", "/glass", "/glass/session") or _FILE.fullmatch(request.path) is not None
        given = request.cookies.get(self._cookie, "")
        if not public and not hmac.compare_digest(given.encode(), self._session.encode()):
            return _refused(401, "the token of this page has ended; run glasslet web again", "token")
        return await handler(request)

    async def _to_the_page(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "glass/"})

    async def _swap(self, request: web.Request) -> web.StreamResponse:
        """POST /glass/session {"token": TOKEN}: the cookie, once."""
        try:
            token = (await request.json())["token"]
        except (ValueError, KeyError, TypeError):
            return _refused(400, "not a token", "token")
        if self._swapped or not isinstance(token, str) or not hmac.compare_digest(token.encode(), self._token.encode()):
            return _refused(401, "the token is used up or wrong; run glasslet web again", "token")
        self._swapped = True
        response = web.Response(body=b"{}", content_type="application/json")
        response.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict", path=self._cookie_path)
        return response

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        assert self._agent is not None
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED_ON}
        body = await request.read() if request.can_read_body else None
        address = f"http://localhost{self._below}{request.rel_url.raw_path_qs}"
        try:
            async with self._agent.request(
                request.method, address, headers=headers, data=body, allow_redirects=False
            ) as answer:
                kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP]
                response = web.StreamResponse(status=answer.status, headers=dict(kept))
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
        except (ClientError, OSError, TimeoutError) as error:
            return _refused(502, f"the agent does not answer at {self._socket}: {error}")
        await response.write_eof()
        return response


def _refused(status: int, reason: str, field: str = "") -> web.Response:
    answer = ErrorAnswer(error=reason, field=field)
    return web.Response(status=status, body=encode(answer), content_type="application/json")


def _connectable(path: Path) -> str:
    """The path; a longer one than a socket's address (107 bytes) through its folder's descriptor, which stays open."""
    if len(os.fsencode(path)) < 108:
        return str(path)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{folder}/{path.name}"
