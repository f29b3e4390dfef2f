"""Limits per client: upstream's figures where it has any (behaviours.md §0, http.*), else ours."""

from __future__ import annotations

from msgspec import Struct


class ConnectionLimits(Struct, frozen=True):
    """Times in seconds, sizes in bytes. Strangers and known connections: see `places`."""

    header_bytes: int = 1 << 20
    """http.max_header: larger request heads of known connections get 431."""
    stranger_header_bytes: int = 65536
    """Ours: larger request heads of strangers get 431."""
    idle_seconds: float = 90.0
    """http.idle_timeout: a connection without a request is closed."""
    write_seconds: float = 14400.0
    """http.write_timeout: no answer takes longer, followed logs included; upgraded connections are exempt."""
    header_seconds: float = 30.0
    """Ours: a request head that was begun has to be complete by then (upstream waits http.read_timeout, 4 hours)."""
    handshake_seconds: float = 10.0
    """Ours: time for the TLS handshake."""
    connections: int = 4096
    """Ours: all connections together; the file descriptors are the agent's, too."""
    known_per_source: int = 512
    """Ours: known connections from one source address."""
    strangers: int = 256
    """Ours: strangers together. One with a head under way costs up to 0.2 MB."""
    strangers_per_source: int = 64
    """Ours: strangers from one source address."""
    reserved: int = 96
    """Ours: of `connections` and of `strangers`, places that only the API server's addresses may take, but for
    `familiar`."""
    familiar: int = 48
    """Ours: of `reserved`, places that familiar sources may take."""
    familiar_per_source: int = 8
    """Ours: strangers from one familiar source that may have these."""
    arrivals_per_source: int = 256
    arrivals_per_source_second: float = 32.0
    """Ours: new connections from one source address at once, and each second after that. A TLS handshake costs some
    milliseconds."""
    arrivals: int = 512
    arrivals_per_second: float = 128.0
    """Ours: the same for all sources together that are neither the API server's nor familiar."""
    stream_idle_seconds: float = 14400.0
    """An exec, attach or port-forward session that carries no byte for this long is cut."""
    shutdown_seconds: float = 2.0
    """A stop waits so long for answers under way."""
