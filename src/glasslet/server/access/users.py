"""Users, credentials and attributes: the values that authentication and authorization pass on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct, field

AUTHENTICATED = "system:authenticated"


class User(Struct, frozen=True):
    """An authenticated client (authentication/v1 UserInfo)."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


class Attributes(Struct, frozen=True):
    """A request to authorize (authorization/v1 ResourceAttributes): always a subresource of this node's object."""

    user: User
    verb: str
    node_name: str
    subresource: str
    path: str


class ClientCertificate(Struct, frozen=True):
    """A client certificate that the TLS handshake verified.

    `names`: its subject, in order. `ca_holds`: false once a client CA that counted then no longer does. `resumed`: the
    session was verified in an earlier connection."""

    names: tuple[tuple[str, str], ...]
    not_before: datetime
    not_after: datetime
    ca_holds: Callable[[], bool] = lambda: True
    resumed: bool = False

    def problem(self, now: datetime) -> str:
        """Why it does not count now; empty if it does."""
        if now > self.not_after:
            return f"the client certificate expired at {self.not_after:%Y-%m-%dT%H:%M:%SZ}"
        if now < self.not_before:
            return f"the client certificate is not valid before {self.not_before:%Y-%m-%dT%H:%M:%SZ}"
        if not self.ca_holds():
            return "the client CA was replaced after the client certificate was verified"
        if self.resumed:
            return "the client certificate was verified in another connection"
        return ""


class RequestCredentials(Struct, frozen=True):
    """The credentials of a request. `source`: the client's IPv4 address, or the /64 of its IPv6 address."""

    certificate: ClientCertificate | None = None
    token: str | None = None
    source: str = ""

    def __repr__(self) -> str:
        return f"RequestCredentials(certificate={self.certificate!r}, source={self.source!r})"
