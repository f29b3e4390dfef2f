"""Bytes of peers: answers to probes, streams of sessions, requests to the agent."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from urllib.parse import parse_qsl

from multidict import MultiDict

from glasslet.glass.requests import RequestRefused, exec_request, log_request
from glasslet.probes.grpc_call import NotHTTP2, UnaryCall, frame
from glasslet.probes.grpc_health import serving_status
from glasslet.probes.hpack import BadHeaders, HeaderDecoder, encode_header
from glasslet.probes.http_response import BadResponse, ResponseReader, parse_head
from glasslet.server.handlers import log_options
from glasslet.server.handlers.streams import BadQuery, _fields, _status, session_streams
from glasslet.server.healthz import HealthzServer
from glasslet.server.protocols import PING
from glasslet.server.transport.stream_watch import SPDYWatch, WebSocketWatch
from glasslet.server.transport.tunnel import RuntimeUnreachable
from tests.fakes.waits import WaitLog
from tests.fuzz.engine import Target
from tests.fuzz.mutation import mutated
from tests.fuzz.targets.making import Pieces, bytes_target, without_loop

RESPONSES = [
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.0 302 Found\nLocation: http://other/x\n\n",
]
HTTP_WORDS = (
    b"Content-Length: ",
    b"Transfer-Encoding: chunked",
    b"HTTP/1.1 ",
    b"\r\n",
    b"\r\n\r\n",
    b"Location: ",
    b"ffffffffffffffff\r\n",
)
REQUESTS = [
    b"GET /healthz?verbose&exclude=ping HTTP/1.1\r\nHost: x\r\nConnection: close",
    b"HEAD /healthz/ping HTTP/1.0\r\nContent-Length: 0",
]
BLOCK = b"\x88" + encode_header("content-type", "application/grpc") + b"\x40\x0bgrpc-status\x010"
HEADERS = b"\x88\x40" + b"\x0c" + b"content-type" + b"\x10" + b"application/grpc"
TRAILERS = b"\x40\x0bgrpc-status\x010"
ANSWER = (
    frame(4, 0, b"", stream=0)
    + frame(4, 1, b"", stream=0)
    + frame(6, 0, b"12345678", stream=0)
    + frame(1, 4, HEADERS, stream=1)
    + frame(0, 0, b"\x00\x00\x00\x00\x02\x08\x01", stream=1)
    + frame(1, 5, TRAILERS, stream=1)
)
SPDY = (
    b"\x80\x03\x00\x02\x00\x00\x00\x06\x00\x00\x00\x01\x00\x00"
    b"\x00\x00\x00\x01\x00\x00\x00\x02{}\x00\x00\x00\x03\x01\x00\x00\x05hello\x80\x03\x00\x03\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x05"
)
WEBSOCKET = b"\x82\x06\x01hello\x82\x7e\x00\x81" + b"\x01" + b"x" * 128 + b"\x88\x02\x03\xe8"
QUERIES = [
    b"follow=true&tailLines=5&sinceSeconds=10&timestamps=1&limitBytes=100&previous=false&stream=All",
    b"sinceTime=2026-01-02T03:04:05Z&container=main",
]
GLASS = [
    b"container=main&follow=1&tail=5&since=10&limitBytes=100&timestamps=true&previous=0",
    b"since=2026-01-02T03:04:05Z",
]
NOW = datetime(2026, 1, 2, tzinfo=UTC)
HEALTH = HealthzServer(address="127.0.0.1", port=0, checks=(PING,), recorder=WaitLog())


def targets() -> list[Target]:
    """All kinds."""
    frames = (
        b"\x00\x00\x04\x08\x00",
        b"\x00\x40\x00",
        frame(7, 0, b"\x00" * 8, stream=0),
        frame(3, 0, b"\x00\x00\x00\x07", stream=1),
    )
    return [
        bytes_target(
            "HTTP head",
            parse_head,
            [one.partition(b"\r\n\r\n")[0] for one in RESPONSES[:2]],
            errors=(BadResponse,),
            words=HTTP_WORDS,
        ),
        bytes_target("HTTP answer", _http, RESPONSES, errors=(BadResponse,), words=HTTP_WORDS),
        bytes_target(
            "health request",
            _health,
            REQUESTS,
            words=(b"//[", b"%00", b"?exclude=", b" HTTP/1.1", b"\r\n", b"Content-Length: 5"),
        ),
        bytes_target(
            "HPACK", lambda data: HeaderDecoder().decode(data), [BLOCK, HEADERS, TRAILERS], errors=(BadHeaders,)
        ),
        bytes_target("gRPC answer", _grpc, [ANSWER], errors=(NotHTTP2,), words=frames),
        bytes_target("health message", serving_status, [b"\x08\x01", b"\x12\x02ab\x08\x02"], errors=(ValueError,)),
        Target("SPDY frames", _pieces_of(SPDY), _spdy, (), [[SPDY]]),
        Target("WebSocket frames", _pieces_of(WEBSOCKET), _websocket, (), [[WEBSOCKET]]),
        bytes_target(
            "log query", _log_query, QUERIES, errors=(log_options.UndecodableOption, log_options.InvalidOption)
        ),
        bytes_target(
            "stream answer",
            _stream_head,
            [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\n\r\n"],
            errors=(RuntimeUnreachable,),
        ),
        bytes_target("session query", _session, [b"input=1&output=1&error=1&tty=0"], errors=(BadQuery,)),
        bytes_target("glass log query", _glass_logs, GLASS, errors=(RequestRefused,)),
        bytes_target(
            "glass exec",
            exec_request,
            [b'{"command":["ls"],"container":"main","tty":false,"stdin":true}'],
            errors=(RequestRefused,),
        ),
    ]


def _http(data: bytes) -> object:
    async def read() -> object:
        reader = ResponseReader(Pieces(data).receive)
        await reader.first()
        head = await reader.head()
        return await reader.body(head, 10240)

    return without_loop(read())


def _health(data: bytes) -> object:
    reply, head_only = HEALTH.reply(data)
    return reply.encode(head_only=head_only)


def _grpc(data: bytes) -> object:
    async def call() -> object:
        made = UnaryCall(Pieces(data))
        await made.greet()
        return await made.call("/grpc.health.v1.Health/Check", b"", {})

    return without_loop(call())


def _pieces_of(seed: bytes):  # type: ignore[no-untyped-def]
    def make(dice: Random) -> list[bytes]:
        data = mutated(seed, dice, [seed])
        pieces = []
        while data:
            size = dice.choice((1, 2, 7, 50, 1 << 16))
            pieces.append(data[:size])
            data = data[size:]
        return pieces

    return make


def _spdy(pieces: list[bytes]) -> object:
    return _watched(SPDYWatch(), pieces)


def _websocket(pieces: list[bytes]) -> object:
    return _watched(WebSocketWatch(), pieces)


def _watched(watch: SPDYWatch | WebSocketWatch, pieces: list[bytes]) -> object:
    passed = b"".join(watch.feed(piece) for piece in pieces)
    assert b"".join(pieces).startswith(passed), "bytes were changed on their way"
    return watch.finished(), watch.cut_notice("the runtime ended")


def _query(data: bytes) -> MultiDict[str]:
    return MultiDict(
        parse_qsl(data.decode("utf-8", "surrogateescape"), keep_blank_values=True, errors="surrogateescape")
    )


def _log_query(data: bytes) -> object:
    return log_options.log_options(_query(data))


def _stream_head(data: bytes) -> object:
    return _status(data), _fields(data)


def _session(data: bytes) -> object:
    return session_streams(_query(data))


def _glass_logs(data: bytes) -> object:
    return log_request(_query(data), NOW)
