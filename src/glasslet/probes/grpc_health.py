"""grpc probes: the health protocol (grpc.health.v1.Health/Check) in the clear. Loaded only where such a probe exists.

Each probe has a channel of its own: one that is kept would hide that no new connection can be opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

import grpc
import grpc.aio
from msgspec.structs import replace

from glasslet.probes.answer import USER_AGENT, Answer, join_host_port
from glasslet.probes.exec_command import go_seconds, grpc_error
from glasslet.probes.results import Parts, Verdict

_CHECK = "/grpc.health.v1.Health/Check"
_STATUSES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
_SERVING = 1
_OPTIONS = (
    ("grpc.primary_user_agent", USER_AGENT),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", 64 * 1024),
)


async def probe_grpc(host: str, port: int, service: str, *, timeout: float) -> Answer:
    """One health check within `timeout` seconds, connecting included."""
    address = join_host_port(host, port)
    parts = Parts()
    began = perf_counter()
    connected = False
    channel = grpc.aio.insecure_channel(f"{'ipv6' if ':' in host else 'ipv4'}:{address}", options=_OPTIONS)
    try:
        async with asyncio.timeout(timeout):
            await channel.channel_ready()
            connected = True
            parts = Parts(connect=perf_counter() - began)
            check: Callable[..., grpc.aio.UnaryUnaryCall[bytes, int]] = channel.unary_unary(
                _CHECK, request_serializer=_plain, response_deserializer=serving_status
            )
            status = await check(encode_service(service))
            parts = replace(parts, first_byte=perf_counter() - began - (parts.connect or 0.0))
    except TimeoutError:
        if connected:
            output = f"timeout: health rpc did not complete within {go_seconds(timeout)}"
        else:
            limit = go_seconds(timeout)
            output = f'timeout: failed to connect service "{address}" within {limit}: context deadline exceeded'
        return Answer(verdict=Verdict.FAILURE, output=output, brief=output, timed_out=True, parts=parts)
    except grpc.aio.AioRpcError as error:
        output = _in_words(error)
        return Answer(verdict=Verdict.FAILURE, output=output, brief=output, parts=parts)
    finally:
        await channel.close(None)
    if status != _SERVING:
        output = f'service unhealthy (responded with "{_STATUSES.get(status, str(status))}")'
        return Answer(verdict=Verdict.FAILURE, output=output, brief=output, parts=parts)
    return Answer(verdict=Verdict.SUCCESS, brief="service healthy", parts=parts)


def encode_service(service: str) -> bytes:
    """HealthCheckRequest: field 1 is the service's name."""
    name = service.encode()
    return b"\x0a" + _varint(len(name)) + name if name else b""


def serving_status(message: bytes) -> int:
    """Field 1 of HealthCheckResponse; 0 (UNKNOWN) where it is not there. Raises ValueError for what is no message."""
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


def _plain(message: bytes) -> bytes:
    return message


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


def _in_words(error: grpc.aio.AioRpcError) -> str:
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {details}"
    return f"error: health rpc probe failed: {grpc_error(code.name, details)}"
