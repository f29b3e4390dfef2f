"""Probes and lifecycle hooks (core/v1 at v1.34)."""

from __future__ import annotations

from glasslet.api.object import Object


class ExecAction(Object, frozen=True, kw_only=True):
    """`core/v1.ExecAction`."""

    command: tuple[str, ...] = ()


class GRPCAction(Object, frozen=True, kw_only=True):
    """`core/v1.GRPCAction`."""

    port: int = 0
    service: str | None = None


class HTTPHeader(Object, frozen=True, kw_only=True):
    """`core/v1.HTTPHeader`."""

    name: str = ""
    value: str = ""


class HTTPGetAction(Object, frozen=True, kw_only=True):
    """`core/v1.HTTPGetAction`."""

    path: str = ""
    port: int | str = 0
    host: str = ""
    scheme: str = ""
    http_headers: tuple[HTTPHeader, ...] = ()


class TCPSocketAction(Object, frozen=True, kw_only=True):
    """`core/v1.TCPSocketAction`."""

    port: int | str = 0
    host: str = ""


class Probe(Object, frozen=True, kw_only=True):
    """`core/v1.Probe`."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 0
    period_seconds: int = 0
    success_threshold: int = 0
    failure_threshold: int = 0
    termination_grace_period_seconds: int | None = None


class SleepAction(Object, frozen=True, kw_only=True):
    """`core/v1.SleepAction`."""

    seconds: int = 0


class LifecycleHandler(Object, frozen=True, kw_only=True):
    """`core/v1.LifecycleHandler`."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Object, frozen=True, kw_only=True):
    """`core/v1.Lifecycle`."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None
