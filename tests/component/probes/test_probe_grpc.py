"""grpc probes against real servers on loopback. behaviours.md §10."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest

from glasslet.probes.grpc_health import encode_service, probe_grpc
from glasslet.probes.results import ProbeVerdict
from tests.fakes.agent import free_port
from tests.fakes.loopback_server import LOOPBACK, listening


class Health(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers health checks by service name; `asked` holds the metadata of each."""

    def __init__(self, *, delay: float = 0.0, **statuses: int) -> None:
        self.statuses = statuses
        self.delay = delay
        self.asked: list[dict[str, str]] = []

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.unary_unary_rpc_method_handler(self._check)

    async def _check(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        self.asked.append(dict(context.invocation_metadata() or ()))
        await asyncio.sleep(self.delay)
        for name, status in self.statuses.items():
            if request == encode_service(name.removeprefix("_")):
                return bytes((8, status))
        await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        raise AssertionError("unreachable")


@asynccontextmanager
async def serving(*handlers: grpc.GenericRpcHandler) -> AsyncIterator[int]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(handlers)
    port = server.add_insecure_port(f"{LOOPBACK}:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)
        await asyncio.sleep(0.1)


async def test_a_serving_server_passes() -> None:
    # "grpc: plaintext health check, SERVING = success; user agent `kube-probe/..`"
    health = Health(_=1)
    async with serving(health) as port:
        answer = await probe_grpc(LOOPBACK, port, "", timeout=60)
    assert answer.verdict is ProbeVerdict.SUCCESS
    assert health.asked[0]["user-agent"] == "kube-probe/1.34"
    assert answer.parts.connect is not None
    assert answer.parts.first_byte is not None


@pytest.mark.parametrize(("status", "name"), [(0, "UNKNOWN"), (2, "NOT_SERVING"), (3, "SERVICE_UNKNOWN"), (9, "9")])
async def test_any_other_status_fails(status: int, name: str) -> None:
    async with serving(Health(_=status)) as port:
        answer = await probe_grpc(LOOPBACK, port, "", timeout=60)
    assert answer.verdict is ProbeVerdict.FAILURE
    assert answer.output == f'service unhealthy (responded with "{name}")'


async def test_the_service_is_asked_for_by_its_name() -> None:
    async with serving(Health(_=2, db=1)) as port:
        assert (await probe_grpc(LOOPBACK, port, "db", timeout=60)).verdict is ProbeVerdict.SUCCESS
        unknown = await probe_grpc(LOOPBACK, port, "web", timeout=60)
    assert unknown.output == "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"


async def test_a_server_without_the_health_protocol_fails() -> None:
    # "unimplemented and not connected = failure"
    async with serving() as port:
        answer = await probe_grpc(LOOPBACK, port, "", timeout=60)
    assert answer.verdict is ProbeVerdict.FAILURE
    assert answer.output.startswith(
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
    )


async def test_a_port_without_a_server_fails() -> None:
    with socket.socket() as sock:
        sock.bind((LOOPBACK, 0))
        port = sock.getsockname()[1]
        answer = await probe_grpc(LOOPBACK, port, "", timeout=1)
    assert answer.verdict is ProbeVerdict.FAILURE
    assert answer.output == (
        f'timeout: failed to connect service "127.0.0.1:{port}" within 1s: context deadline exceeded'
    )


async def test_a_server_that_does_not_answer_in_time_fails() -> None:
    async with serving(Health(delay=500.0, _=1)) as port:
        answer = await probe_grpc(LOOPBACK, port, "", timeout=4)
    assert answer.output == "timeout: health rpc did not complete within 4s"
    assert answer.timed_out


async def test_each_probe_connects_anew() -> None:
    """A server that came back is noticed at once, one that cannot take connections any more as well."""
    async with serving(Health(_=1)) as port:
        assert (await probe_grpc(LOOPBACK, port, "", timeout=60)).verdict is ProbeVerdict.SUCCESS
    assert (await probe_grpc(LOOPBACK, port, "", timeout=1)).verdict is ProbeVerdict.FAILURE


async def test_something_else_than_grpc_is_no_connection() -> None:
    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    async with listening(web) as port:
        answer = await probe_grpc(LOOPBACK, port, "", timeout=1)
    assert answer.verdict is ProbeVerdict.FAILURE
    assert answer.output.startswith(f'timeout: failed to connect service "127.0.0.1:{port}" within 1s')


async def test_a_server_that_comes_up_within_the_time_is_reached() -> None:
    port = free_port()
    probing = asyncio.create_task(probe_grpc(LOOPBACK, port, "", timeout=60))
    await asyncio.sleep(0.2)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([Health(_=1)])
    server.add_insecure_port(f"{LOOPBACK}:{port}")
    await server.start()
    assert (await probing).verdict is ProbeVerdict.SUCCESS
    await server.stop(0)
    await asyncio.sleep(0.1)
