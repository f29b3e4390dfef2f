"""Authorization: a request as subresources of this node, and the authorizer that decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from glasslet.server.access.users import Attributes, User

VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
"""Other methods have an empty verb."""

_FINE_GRAINED = (("/pods", "pods"), ("/healthz", "healthz"), ("/configz", "configz"), ("/runningpods", "pods"))
_OWN = (
    *(("/stats", "stats"), ("/metrics", "metrics"), ("/logs", "log"), ("/checkpoint", "checkpoint")),
    *(("/statusz", "statusz"), ("/flagz", "configz"), ("/glass", "glass")),
)
"""Subresources that never fall back to `proxy`; `glass` is ours."""


class AuthorizationError(Exception):
    """There is no decision; the text is for the log."""


class Authorizer(Protocol):
    """Decides on one attempt."""

    async def allows(self, attributes: Attributes) -> bool:
        """True if it is allowed. Raises AuthorizationError."""


class AlwaysAllow:
    """authorization.mode AlwaysAllow."""

    async def allows(self, attributes: Attributes) -> bool:
        """Yes."""
        return True


def is_below(path: str, prefix: str) -> bool:
    """True for the prefix itself and for what is below it, by whole segments."""
    return path == prefix or path.startswith(prefix + "/")


def subresources(path: str, *, fine_grained: bool = True) -> tuple[str, ...]:
    """The subresources of `nodes` to try, in this order; one allowed is enough."""
    finer = next((name for prefix, name in _FINE_GRAINED if is_below(path, prefix)), None) if fine_grained else None
    last = next((name for prefix, name in _OWN if is_below(path, prefix)), "proxy")
    return (last,) if finer is None else (finer, last)


class Denied(Struct, frozen=True):
    """Not allowed: the status and body of the answer."""

    status: int
    body: str


class RequestAuthorizer:
    """Decides on whole requests."""

    def __init__(self, *, authorizer: Authorizer, node_name: str, fine_grained: bool = True) -> None:
        self._authorizer = authorizer
        self._node_name = node_name
        self._fine_grained = fine_grained

    async def check(self, user: User, method: str, path: str) -> Denied | None:
        """None if allowed."""
        verb = verb_of(method, path)
        names = subresources(path, fine_grained=self._fine_grained)
        for name in names:
            try:
                if await self._authorizer.allows(Attributes(user, verb, self._node_name, name, path)):
                    return None
            except AuthorizationError:
                return Denied(
                    500, f"Authorization error (user={user.name}, verb={verb}, resource=nodes, subresource={name})"
                )
        return Denied(403, _forbidden(user, verb, names))

    async def may(self, user: User, verb: str, subresource: str) -> bool:
        """Whether the user holds this verb on a subresource of this node."""
        try:
            return await self._authorizer.allows(Attributes(user, verb, self._node_name, subresource, ""))
        except AuthorizationError:
            return False


def verb_of(method: str, path: str) -> str:
    """The verb of a request. To take a break away is the same right as to set it."""
    return "create" if method == "DELETE" and is_below(path, "/glass") else VERBS.get(method, "")


def _forbidden(user: User, verb: str, names: Sequence[str]) -> str:
    return f"Forbidden (user={user.name}, verb={verb}, resource=nodes, subresource(s)=[{' '.join(names)}])\n"
