"""Places for connections: which ones stay when there are too many. No I/O: addresses and times in, decisions out.

A connection is a stranger from the moment it is accepted, before its TLS handshake. It becomes known by a verified
client certificate, or by a request that was authorized for a named user. Strangers have few places, and few per source
address; where these are full, the oldest stranger of the greediest source makes room. So a crowd of strangers displaces
strangers, never known connections, and one source displaces itself first.

Addresses of the API server are under no limit per source and have reserved places. These are the addresses to which
this agent's own requests go, and those from which a client certificate was authorized by `nodes/proxy` alone: behind a
load balancer the API server calls from another address than it is called at.

New connections have a rate, per source and for all sources of which nothing is known: their handshakes are work.

Sources from which any request of a named user was authorized are familiar. A part of the reserved places is for them,
a few for each: a client that scrapes figures finds a place behind a crowd, and cannot take those of the API server.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct

from glasslet.concurrency.token_bucket import TokenBucket
from glasslet.server.access.source_budget import SourceBudget
from glasslet.server.transport.limits import ConnectionLimits

GRACE_SECONDS = 1.0
"""A stranger keeps its place at least this long: time enough to authenticate."""
LEARNED = 64
"""Addresses remembered as the API server's."""
FAMILIAR = 256
"""Other sources remembered as familiar."""
_SUBNET_BITS = 64
"""One IPv6 host may have a whole /64."""


class ConnectionPlace(Struct, eq=False):
    """One connection's place. `evict` closes the connection."""

    source: str
    since: float
    evict: Callable[[], None]
    known: bool = False


class Places:
    """The places of one port. `api_server`: addresses that this agent has connections to."""

    def __init__(
        self, limits: ConnectionLimits, *, now: Callable[[], float], api_server: Callable[[], Collection[str]]
    ) -> None:
        self._limits = limits
        self._now = now
        self._api_server = api_server
        self._strangers: dict[str, dict[ConnectionPlace, None]] = {}
        self._stranger_count = 0
        self._known: dict[str, set[ConnectionPlace]] = {}
        self._known_count = 0
        self._learned: OrderedDict[str, None] = OrderedDict()
        self._familiar: OrderedDict[str, None] = OrderedDict()
        self._arrivals = SourceBudget(
            burst=limits.arrivals_per_source, per_second=limits.arrivals_per_source_second, now=now
        )
        self._crowd = TokenBucket(rate=limits.arrivals_per_second, burst=limits.arrivals)

    def __len__(self) -> int:
        return self._stranger_count + self._known_count

    @property
    def strangers(self) -> int:
        """The number of strangers."""
        return self._stranger_count

    def take(self, address: str, evict: Callable[[], None]) -> ConnectionPlace | None:
        """A place for a new connection from `address`; None if it has to be refused."""
        source = source_of(address)
        if not self._may_arrive(source) or not self._has_room(source):
            return None
        place = ConnectionPlace(source, self._now(), evict)
        self._strangers.setdefault(source, {})[place] = None
        self._stranger_count += 1
        return place

    def prove(self, place: ConnectionPlace) -> None:
        """Makes a stranger known, unless its source has too many known connections."""
        if place.known or place not in self._strangers.get(place.source, ()):
            return
        if len(self._known.get(place.source, ())) >= self._limits.known_per_source and not self._is_api_server(
            place.source
        ):
            return
        self.leave(place)
        place.known = True
        self._known.setdefault(place.source, set()).add(place)
        self._known_count += 1

    def leave(self, place: ConnectionPlace) -> None:
        """Gives the place back. May be called again."""
        if place.known:
            known = self._known.get(place.source, set())
            if place in known:
                known.remove(place)
                self._known_count -= 1
                if not known:
                    del self._known[place.source]
            return
        strangers = self._strangers.get(place.source, {})
        if place in strangers:
            del strangers[place]
            self._stranger_count -= 1
            if not strangers:
                del self._strangers[place.source]

    def learn_api_server(self, address: str) -> None:
        """Remembers an address as the API server's."""
        _remember(self._learned, source_of(address), LEARNED)

    def learn_familiar(self, address: str) -> None:
        """Remembers an address from which a named user was authorized."""
        _remember(self._familiar, source_of(address), FAMILIAR)

    def _may_arrive(self, source: str) -> bool:
        """True if the rate of new connections allows one more."""
        if self._is_api_server(source):
            return True
        return self._arrivals.take(source) and (source in self._familiar or self._crowd.take(self._now()))

    def _has_room(self, source: str) -> bool:
        """True if there is a place, if need be after an eviction."""
        limits = self._limits
        own = self._strangers.get(source, {})
        free = min(limits.strangers - self._stranger_count, limits.connections - len(self))
        if len(own) < limits.strangers_per_source and free > limits.reserved:
            return True
        trusted = self._is_api_server(source)
        if len(own) >= limits.strangers_per_source and not trusted:
            return self._evict_oldest(own)
        if free > (0 if trusted else self._kept_from(source, len(own))):
            return True
        return self._evict_oldest(max(self._strangers.values(), key=len, default={}))

    def _kept_from(self, source: str, strangers: int) -> int:
        """The number of places that are not for this source, which has so many strangers."""
        limits = self._limits
        if source in self._familiar and strangers < limits.familiar_per_source:
            return max(limits.reserved - limits.familiar, 0)
        return limits.reserved

    def _evict_oldest(self, places: dict[ConnectionPlace, None]) -> bool:
        oldest = next(iter(places), None)
        if oldest is None or self._now() - oldest.since < GRACE_SECONDS:
            return False
        self.leave(oldest)
        oldest.evict()
        return True

    def _is_api_server(self, source: str) -> bool:
        return source in self._learned or any(source == source_of(address) for address in self._api_server())


def _remember(sources: OrderedDict[str, None], source: str, most: int) -> None:
    sources[source] = None
    sources.move_to_end(source)
    if len(sources) > most:
        sources.popitem(last=False)


def source_of(address: str) -> str:
    """The source of an address: an IPv4 address, or the /64 of an IPv6 address."""
    try:
        parsed: IPv4Address | IPv6Address | None = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is None:
            return str(IPv6Address(int(parsed) >> _SUBNET_BITS << _SUBNET_BITS))
        parsed = parsed.ipv4_mapped
    return str(parsed)
