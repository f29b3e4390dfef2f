"""Who asks, and for what: the values that authentication and authorisation pass on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who asks (authentication/v1 UserInfo)."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked for (authorization/v1 ResourceAttributes): always a subresource of this node's `nodes` object."""

    user: User
    verb: str
    node_name: str
    subresource: str
    path: str


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """What a request brings. `certificate`: the verified client certificate as `SSLSocket.getpeercert()` gives it."""

    certificate: Mapping[str, object] | None = None
    token: str | None = field(default=None, repr=False)
