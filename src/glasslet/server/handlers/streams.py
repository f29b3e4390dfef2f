"""`/exec`, `/attach`, `/portForward` and `/run`: the runtime serves the session, its bytes pass through here."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

from aiohttp import web
from multidict import MultiMapping

from glasslet.api.pod import Pod
from glasslet.runtime.errors import NotInRuntime, RuntimeCallError
from glasslet.server import responses
from glasslet.server.access.authentication import PROTOCOL_PREFIX
from glasslet.server.protocols import PodSource, SessionStreams, StreamRefused, StreamSource
from glasslet.server.request_pipeline import CONNECTIONS
from glasslet.server.routing import Parameters, Route, RouteTable
from glasslet.server.transport.stream_watch import OpaqueWatch, SPDYWatch, StreamWatch, WebSocketWatch
from glasslet.server.transport.tunnel import ANSWER_SECONDS, RuntimeEnd, RuntimeUnreachable, Tunnel, dial

BOTH = ("GET", "POST")
_RETRY_AFTER = {"Retry-After": "60"}
_STATUS = re.compile(rb"[1-5][0-9][0-9]")
_LENGTH = re.compile(r"[0-9]{1,18}")
_PORT = re.compile(r"\+?[0-9]{1,20}")


class BadQuery(Exception):
    """The query is not valid. Its text is the answer's body."""


def add_streams(routes: RouteTable, pods: PodSource, source: StreamSource) -> None:
    """Serves all four, with and without the pod's UID in the path."""

    async def execute(request: web.Request, parameters: Parameters) -> web.StreamResponse:
        streams = session_streams(request.query)
        pod = _pod(pods, parameters)
        command = tuple(request.query.getall("command", []))
        url = await source.exec_url(pod, parameters["container"], command, streams)
        return await _pass_through(request, url, has_error_stream=True)

    async def attach(request: web.Request, parameters: Parameters) -> web.StreamResponse:
        streams = session_streams(request.query)
        pod = _pod(pods, parameters)
        container = parameters["container"]
        if parameters.get("uid", pod.metadata.uid) != pod.metadata.uid:
            full_name = f"{pod.metadata.name}_{pod.metadata.namespace}"
            raise StreamRefused(f"container {container} not found in pod {full_name}")
        url = await source.attach_url(pod, container, streams)
        return await _pass_through(request, url, has_error_stream=True)

    async def port_forward(request: web.Request, parameters: Parameters) -> web.StreamResponse:
        ports = forwarded_ports(request)
        pod = _pod(pods, parameters)
        if parameters.get("uid", pod.metadata.uid) != pod.metadata.uid:
            raise StreamRefused("pod not found", status=404)
        return await _pass_through(request, await source.port_forward_url(pod, ports), has_error_stream=False)

    async def run(request: web.Request, parameters: Parameters) -> web.StreamResponse:
        pod = _pod(pods, parameters)
        command = request.query.get("cmd", "").split(" ")
        try:
            return responses.json_bytes(await source.run(pod, parameters["container"], command))
        except RuntimeCallError as error:
            return responses.plain(500, str(error))

    _serve(routes, "/exec", BOTH, execute)
    _serve(routes, "/attach", BOTH, attach)
    _serve(routes, "/portForward", BOTH, port_forward, container="")
    _serve(routes, "/run", ("POST",), run)


Handle = Callable[[web.Request, Parameters], Awaitable[web.StreamResponse]]


def _serve(
    routes: RouteTable, root: str, methods: tuple[str, ...], handler: Handle, *, container: str = "/{container}"
) -> None:
    answering, pod = _with_errors(handler), root + "/{namespace}/{pod}"
    routes.service(
        root,
        Route(methods, pod + container, answering),
        Route(methods, pod + "/{uid}" + container, answering),
    )


def _with_errors(handler: Handle) -> Handle:
    """Refusals of all kinds as statuses (one place, as all four answer alike)."""

    async def answering(request: web.Request, parameters: Parameters) -> web.StreamResponse:
        try:
            return await handler(request, parameters)
        except BadQuery as error:
            return responses.plain(400, str(error))
        except StreamRefused as refused:
            return responses.plain(refused.status, str(refused))
        except NotInRuntime as error:
            return responses.plain(404, str(error))
        except RuntimeCallError as error:
            if error.code == "RESOURCE_EXHAUSTED":
                return responses.plain(429, str(error), _RETRY_AFTER)
            return responses.plain(500, str(error))
        except RuntimeUnreachable as error:
            return responses.error(500, str(error))

    return answering


def _pod(pods: PodSource, parameters: Parameters) -> Pod:
    pod = pods.pod(parameters["namespace"], parameters["pod"])
    if pod is None:
        raise StreamRefused("pod does not exist", status=404)
    return pod


def session_streams(query: MultiMapping[str]) -> SessionStreams:
    """The streams that the client wants; stderr is dropped with a terminal. Raises BadQuery if it wants none."""
    stdin, stdout, stderr, tty = (query.get(name) == "1" for name in ("input", "output", "error", "tty"))
    if not (stdin or stdout or stderr):
        raise BadQuery("you must specify at least 1 of stdin, stdout, stderr")
    return SessionStreams(stdin, stdout, stderr and not tty, tty)


def forwarded_ports(request: web.Request) -> tuple[int, ...]:
    """The ports that a WebSocket client names; a SPDY client names them later. Raises BadQuery."""
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return ()
    values = request.query.getall("port", [])
    if not values:
        raise BadQuery('query parameter "port" is required')
    ports: list[int] = []
    for text in (part for value in values for part in value.split(",")):
        if not text:
            raise BadQuery('query parameter "port" cannot be empty')
        if not _PORT.fullmatch(text) or int(text) > 65535:
            raise BadQuery(f'unable to parse "{text}" as a port: allowed are 1 to 65535')
        if int(text) < 1:
            raise BadQuery(f'port "{text}" must be > 0')
        ports.append(int(text))
    return tuple(ports)


async def _pass_through(request: web.Request, url: str, *, has_error_stream: bool) -> web.StreamResponse:
    """Joins client and runtime. Raises RuntimeUnreachable as long as the client can get an answer."""
    if "upgrade" not in request.headers.get("Connection", "").lower() or "Upgrade" not in request.headers:
        return responses.error(500, "Upgrade request required")
    runtime = await dial(url, request.method, list(_forwarded_headers(request)))
    try:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                head = await runtime.read_head()
        except TimeoutError:
            raise RuntimeUnreachable("the runtime did not answer the stream request") from None
        status = _status(head)
        if status != 101:
            return await _refusal(runtime, head, status)
        guard = request.app[CONNECTIONS].guard_of(request.protocol)
        idle = request.app[CONNECTIONS].limits.stream_idle_seconds
        tunnel = Tunnel(
            runtime=runtime, watch=_watch(request, head, has_error_stream=has_error_stream), idle_seconds=idle
        )
        await tunnel.run(guard.take_over, head)
    finally:
        runtime.close()
    return responses.TakenOver()


def _forwarded_headers(request: web.Request) -> list[tuple[bytes, bytes]]:
    """The client's headers without its credentials, and with its address."""
    kept: list[tuple[bytes, bytes]] = []
    before = b""
    for name, value in request.raw_headers:
        match name.lower():
            case b"host" | b"authorization":
                continue
            case b"x-forwarded-for":
                before = value + b", "
            case b"sec-websocket-protocol":
                protocols = (part.strip() for part in value.split(b","))
                kept.append((name, b", ".join(p for p in protocols if not p.startswith(PROTOCOL_PREFIX.encode()))))
            case _:
                kept.append((name, value))
    if request.remote:
        kept.append((b"X-Forwarded-For", before + request.remote.encode()))
    return kept


def _status(head: bytes) -> int:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) < 2 or not _STATUS.fullmatch(words[1]):
        raise RuntimeUnreachable("the runtime's answer to the stream request is not HTTP")
    return int(words[1])


async def _refusal(runtime: RuntimeEnd, head: bytes, status: int) -> web.StreamResponse:
    if status < 400:
        raise RuntimeUnreachable(f"invalid upgrade response: status code {status}")
    length = next((v for n, v in _fields(head) if n == "content-length"), None)
    body = await runtime.read_rest(int(length) if length is not None and _LENGTH.fullmatch(length) else None)
    return responses.plain(status, body.decode("utf-8", "replace"))


def _watch(request: web.Request, head: bytes, *, has_error_stream: bool) -> StreamWatch:
    if request.headers["Upgrade"].lower() == "websocket":
        return WebSocketWatch()
    protocol = next((value for name, value in _fields(head) if name == "x-stream-protocol-version"), "")
    # Before v4 a command that ended well said nothing, so nothing can be missed.
    return SPDYWatch() if has_error_stream and protocol.startswith(("v4.", "v5.")) else OpaqueWatch()


def _fields(head: bytes) -> list[tuple[str, str]]:
    pairs = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
    return [(name.strip().lower(), value.strip()) for name, _, value in pairs]
