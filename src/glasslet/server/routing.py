"""Route tables: paths and methods in, handlers or refusals out. Pure.

Two kinds, as the Go kubelet has them: fixed paths take any method and match exactly; services own a prefix and look at
method, Accept header and one optional trailing slash. A path outside both is unknown before authentication.
"""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

from aiohttp import web
from msgspec import Struct

Parameters = Mapping[str, str]
Handler = Callable[[web.Request, Parameters], Awaitable[web.StreamResponse]]

JSON = "application/json"
ANY = "*/*"


class Produces(StrEnum):
    """The media types that a route needs in an Accept header."""

    JSON = "json"
    """application/json or */*."""
    ANYTHING = "anything"
    """*/* itself."""


class Route(Struct, frozen=True):
    """One path of a service. `{name}` stands for one segment, `{name:*}` at the end for the rest."""

    methods: tuple[str, ...]
    path: str
    handler: Handler
    produces: Produces = Produces.ANYTHING


class Redirect(Struct, frozen=True):
    """A path that is served elsewhere."""

    path: str


class Refusal(Struct, frozen=True):
    """No route: the answer's status, body and headers."""

    status: int
    body: str
    headers: Mapping[str, str]


class Choice(Struct, frozen=True):
    """The handler, and what the path gave for its placeholders."""

    handler: Handler
    parameters: Parameters


class RouteGroup:
    """The routes below one prefix."""

    def __init__(self, root: str, routes: tuple[Route, ...]) -> None:
        self.root = root
        self._routes = routes

    def choose(self, path: str, method: str, accept: str | None) -> Choice | Refusal:
        """The route, or why there is none."""
        matches = [(r, found) for r in self._routes if (found := _match(r.path, path)) is not None]
        if not matches:
            return Refusal(404, "404: Page Not Found", {})
        allowed = [(r, found) for r, found in matches if method in r.methods]
        if not allowed:
            methods = ", ".join(dict.fromkeys(m for r, _ in matches for m in r.methods))
            return Refusal(405, "405: Method Not Allowed", {"Allow": methods})
        for route, found in allowed:
            if accepts(accept, route.produces):
                return Choice(route.handler, found)
        return Refusal(406, "406: Not Acceptable", {})


class RouteTable:
    """All that one server serves."""

    def __init__(self) -> None:
        self._fixed: dict[str, Handler] = {}
        self._below: dict[str, Handler] = {}
        self._services: list[RouteGroup] = []

    def fixed(self, path: str, handler: Handler) -> None:
        """Serves exactly this path, whatever the method."""
        self._fixed[path] = handler

    def everything_below(self, prefix: str, handler: Handler) -> None:
        """Serves all paths that start with this prefix (which ends in a slash), whatever the method."""
        self._below[prefix] = handler

    def service(self, root: str, *routes: Route) -> None:
        """Serves `root` and what is below it. A root that ends in a slash is reached without it by a redirect."""
        self._services.append(RouteGroup(root, routes))

    def paths(self) -> list[str]:
        """Every path with its placeholders, for tests and documentation."""
        routes = [route.path for service in self._services for route in service._routes]
        return sorted({*self._fixed, *self._below, *routes})

    def find(self, path: str) -> Handler | RouteGroup | Redirect | None:
        """The handler or group of a path; None if it is not served."""
        cleaned = clean(path)
        if cleaned != path:
            return Redirect(cleaned)
        if (handler := self._fixed.get(path)) is not None:
            return handler
        for prefix, handler in self._below.items():
            if path.startswith(prefix):
                return handler
        for service in self._services:
            root = service.root.removesuffix("/")
            if path.startswith(root + "/") or (path == root == service.root):
                return service
        slashed = path + "/"
        if slashed in self._below or any(service.root == slashed for service in self._services):
            return Redirect(slashed)
        return None


def clean(path: str) -> str:
    """The path without empty and dot segments; a trailing slash stays."""
    if not path.startswith("/"):
        path = "/" + path
    cleaned = posixpath.normpath(path)
    if cleaned.startswith("//"):
        cleaned = cleaned[1:]
    return cleaned + "/" if path.endswith("/") and cleaned != "/" else cleaned


def accepts(header: str | None, produces: Produces) -> bool:
    """True if an Accept header allows the answer; no header allows everything."""
    if not header:
        return True
    offered = {part.split(";", 1)[0].strip() for part in header.split(",")}
    return ANY in offered or (produces is Produces.JSON and JSON in offered)


def _match(pattern: str, path: str) -> dict[str, str] | None:
    wanted = pattern.strip("/").split("/")
    given = path.strip("/").split("/")
    found: dict[str, str] = {}
    for index, segment in enumerate(wanted):
        if segment.endswith(":*}"):
            rest = path.split("/", index + 1)
            if len(rest) <= index + 1 or not rest[index + 1]:
                return None
            found[segment[1:-3]] = rest[index + 1]
            return found
        if index >= len(given):
            return None
        if segment.startswith("{"):
            found[segment[1:-1]] = given[index]
        elif segment != given[index]:
            return None
    return found if len(given) == len(wanted) else None
