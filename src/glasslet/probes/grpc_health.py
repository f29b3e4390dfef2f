"""grpc probes: the health protocol (grpc.health.v1.Health/Check) in the clear. Loaded only for such probes."""

from __future__ import annotations

import asyncio
import math
import socket

from glasslet.probes.answer import USER_AGENT, ProbeAnswer, join_host_port
from glasslet.probes.connection import Connection, ConnectionFailed, Stopwatch, connect
from glasslet.probes.exec_command import go_seconds
from glasslet.probes.grpc_call import OK, UNAVAILABLE, UNIMPLEMENTED, Answered, NotHTTP2, UnaryCall
from glasslet.probes.results import ProbeVerdict
from glasslet.runtime.errors import in_rpc_words

_CHECK = "/grpc.health.v1.Health/Check"
_STATUSES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
_SERVING = 1
_CODES = (
    "OK", "CANCELED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
_PAUSE_FIRST = 0.1
"""Seconds before connecting is tried again, within the time of one probe; doubles."""


async def probe_grpc(host: str, port: int, service: str, *, timeout: float) -> ProbeAnswer:
    """One health check within `timeout` seconds, connecting included."""
    check = _Check(host, port)
    try:
        async with asyncio.timeout(timeout):
            answered = await check.run(service, timeout)
    except TimeoutError:
        return _failed(check.too_late(timeout), check, timed_out=True)
    finally:
        check.close()
    if answered.code != OK:
        return _failed(_in_words(answered), check)
    try:
        status = serving_status(answered.message)
    except ValueError as error:
        return _failed(f"error: health rpc probe failed: {in_rpc_words('INTERNAL', str(error))}", check)
    if status != _SERVING:
        return _failed(f'service unhealthy (responded with "{_STATUSES.get(status, str(status))}")', check)
    return ProbeAnswer(verdict=ProbeVerdict.SUCCESS, brief="service healthy", parts=check.watch.parts)


class _Check:
    """One probe: a connection with HTTP/2 settings exchanged, and the call."""

    def __init__(self, host: str, port: int) -> None:
        self.watch = Stopwatch()
        self._host = host
        self._port = port
        self._connection: Connection | None = None
        self._greeted = False

    async def run(self, service: str, timeout: float) -> Answered:
        """Connects, trying again until cancelled, and makes the call."""
        call = await self._connected()
        self._greeted = True
        headers = {
            ":authority": join_host_port(self._host, self._port),
            "content-type": "application/grpc",
            "user-agent": USER_AGENT,
            "grpc-timeout": _grpc_timeout(timeout),
        }
        try:
            return await call.call(_CHECK, encode_service(service), headers)
        except (ConnectionFailed, NotHTTP2) as error:
            return Answered(code=UNAVAILABLE, details=str(error))
        finally:
            self.watch.end("first_byte")

    def too_late(self, timeout: float) -> str:
        """The error when time is over."""
        limit = go_seconds(timeout)
        if self._greeted:
            return f"timeout: health rpc did not complete within {limit}"
        address = join_host_port(self._host, self._port)
        return f'timeout: failed to connect service "{address}" within {limit}: context deadline exceeded'

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _connected(self) -> UnaryCall:
        pause = _PAUSE_FIRST
        while True:
            try:
                sock = await connect(self._host, self._port, resolve=_no_names, watch=self.watch)
                self._connection = Connection(sock)
                # Several small writes: without this each would wait for the one before to be acknowledged.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                call = UnaryCall(self._connection)
                self.watch.begin()
                await call.greet()
            except (ConnectionFailed, NotHTTP2, OSError):
                self.close()
            else:
                return call
            await asyncio.sleep(pause)
            pause *= 2


def _grpc_timeout(seconds: float) -> str:
    """At most eight digits and a unit (gRPC over HTTP/2, Timeout)."""
    milliseconds = round(seconds * 1000)
    return f"{milliseconds}m" if milliseconds < 10**8 else f"{min(math.ceil(seconds), 10**8 - 1)}S"


def encode_service(service: str) -> bytes:
    """HealthCheckRequest: field 1 is the service's name."""
    name = service.encode()
    return b"\x0a" + _varint(len(name)) + name if name else b""


def serving_status(message: bytes) -> int:
    """Field 1 of HealthCheckResponse; 0 (UNKNOWN) without it. Raises ValueError for bytes that are no message."""
    status, at = 0, 0
    while at < len(message):
        key, at = _read_varint(message, at)
        match key & 7:
            case 0:
                value, at = _read_varint(message, at)
                status = value if key >> 3 == 1 else status
            case 1:
                at += 8
            case 2:
                size, at = _read_varint(message, at)
                at += size
            case 5:
                at += 4
            case _:
                raise ValueError("no health answer")
    return status


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("no health answer")


def _failed(output: str, check: _Check, *, timed_out: bool = False) -> ProbeAnswer:
    return ProbeAnswer(
        verdict=ProbeVerdict.FAILURE, output=output, brief=output, timed_out=timed_out, parts=check.watch.parts
    )


def _in_words(answered: Answered) -> str:
    if answered.code == UNIMPLEMENTED:
        service = "grpc.health.v1.Health"
        return f"error: this server does not implement the grpc health protocol ({service}): {answered.details}"
    code = _CODES[answered.code] if answered.code < len(_CODES) else f"CODE({answered.code})"
    return f"error: health rpc probe failed: {in_rpc_words(code, answered.details)}"


async def _no_names(host: str) -> tuple[str, ...]:
    raise OSError(f"{host} is no address")
