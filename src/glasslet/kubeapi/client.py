"""`APIClient` over HTTPS: connections kept and reused, typed answers, errors by what the caller can do."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from msgspec import Raw, Struct

from glasslet.api.codec import decode, encode
from glasslet.concurrency.clock import Clock
from glasslet.kubeapi.answers import Status, error_for
from glasslet.kubeapi.connections import Connections, ServerConnector
from glasslet.kubeapi.credentials import CredentialError, Credentials, Identity, tls_context
from glasslet.kubeapi.decoding import UNDECODABLE, UndecodableObject, decode_object
from glasslet.kubeapi.environment_proxy import proxy_parts
from glasslet.kubeapi.errors import AnswerTooLarge, APIError, Gone, NotDecoded, Unauthorized, Unavailable
from glasslet.kubeapi.kubeconfig import Kubeconfig
from glasslet.kubeapi.obstacles import obstacle_of
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.kubeapi.protocols import ListPage, PatchType, WatchEvent, WatchKind
from glasslet.kubeapi.resolver import ServerResolver
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

T = TypeVar("T")

_PAGE = 500
_PAGES = 10_000
"""Pages of one list."""
_REQUESTS = 32
_TIMEOUT = 30.0
_LINE_LIMIT = 32 * 1024 * 1024
_ANSWER_LIMIT = 32 * 1024 * 1024
"""Bytes of an answer that is one object. The API server takes none of more than some MiB."""
_PAGE_LIMIT = 64 * 1024 * 1024
"""Bytes of one page of a list."""


class APIRequestMetrics(Protocol):
    """Where requests are counted (`rest_client_*`)."""

    def request(self, verb: str, host: str, code: str, seconds: float) -> None:
        """One request ended; `code` is the HTTP code, or `<error>` without an answer."""

    def limited(self, verb: str, host: str, seconds: float) -> None:
        """A request waited that long for its turn; most wait no time."""

    def size(self, verb: str, host: str, sent: int, received: int) -> None:
        """Bytes of the bodies of a request that was answered as a whole."""


class _Request(Struct, frozen=True):
    """One request. `content_type` describes `body`."""

    verb: str
    path: str
    query: Mapping[str, str] | None = None
    body: bytes | None = None
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


class _ListMeta(Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[Raw] | None = None


class _Event(Struct, frozen=True):
    type: str
    object: Raw


class _Versioned(Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()


class HTTPAPIClient:
    """Implements `APIClient`. One per purpose: status calls and watches do not share a rate limit."""

    def __init__(
        self,
        *,
        config: Kubeconfig,
        recorder: Recorder,
        clock: Clock,
        metrics: APIRequestMetrics,
        limiter: RequestLimiter,
        user_agent: str,
        timeout: float = _TIMEOUT,
        resolver: AbstractResolver | None = None,
        proxy: str = "",
    ) -> None:
        self._config = config
        self._proxy, self._proxy_headers = proxy_parts(config.proxy_url or proxy)
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._limiter = limiter
        # Requests are limited, not connections: each watch has a connection of its own.
        self._slots = asyncio.Semaphore(_REQUESTS)
        self._timeout = timeout
        self._headers = {"User-Agent": user_agent, "Accept": "application/json"}
        self._credentials = Credentials(config=config, clock=clock)
        self._connections: Connections | None = None
        self._resolver = resolver or ServerResolver()
        self._host = config.server.split("://", 1)[1]

    async def close(self) -> None:
        """Closes all connections."""
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.close()

    async def get(self, path: str, kind: type[T], *, timeout: float | None = None) -> T:
        """Reads one object."""
        return await self._ask(_Request("GET", path), kind, timeout)

    async def list_pages(
        self, path: str, kind: type[T], *, query: Mapping[str, str] = {}
    ) -> AsyncIterator[ListPage[T]]:
        """Lists in pages; only one page's JSON is in memory at a time. Where objects are so large that a page would be
        too long, it is asked for again with fewer objects."""
        request = f"LIST {path}"
        wanted = {**query, "limit": str(_PAGE)}
        tokens = set[str]()
        while True:
            try:
                data = await self._send(_Request("GET", path, wanted), most=_PAGE_LIMIT)
            except AnswerTooLarge:
                if not _ask_for_less(wanted):
                    raise
                continue
            answer = _answer(request, data, _List)
            decoded = [decode_object(bytes(item), kind) for item in answer.items or ()]
            yield ListPage(
                tuple(one for one in decoded if not isinstance(one, UndecodableObject)),
                answer.metadata.resource_version,
                tuple(one for one in decoded if isinstance(one, UndecodableObject)),
            )
            if not answer.metadata.continue_:
                return
            if answer.metadata.continue_ in tokens or len(tokens) == _PAGES:
                raise Unavailable(request, f"the list does not end: {len(tokens) + 1} pages, and a token for another")
            tokens.add(answer.metadata.continue_)
            # The token names the version; the server refuses a request that names both.
            wanted.pop("resourceVersion", None)
            wanted["continue"] = answer.metadata.continue_

    async def watch(
        self, path: str, kind: type[T], *, resource_version: str, query: Mapping[str, str] = {}
    ) -> AsyncIterator[WatchEvent[T]]:
        """Watches until the server ends the stream. Raises Gone when the version is too old."""
        wanted = {**query, "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": resource_version}
        # No total limit: a watch lives as long as the server lets it; a dead peer is noticed by the missing bookmarks.
        limits = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout, sock_read=_watch_silence(wanted))
        connections = await self._connect(f"WATCH {path}")
        async with connections.used():
            response = await self._open(connections, _Request("GET", path, wanted), limits)
            try:
                with connections.stream(response):
                    async for line in _lines(response):
                        yield _watch_event(f"WATCH {path}", line, kind)
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise Unavailable(f"WATCH {path}", f"stream broke: {error or type(error).__name__}") from error
            finally:
                response.close()

    async def create(self, path: str, body: Any, kind: type[T], *, timeout: float | None = None) -> T:
        """Creates (POST)."""
        return await self._ask(_Request("POST", path, body=encode(body)), kind, timeout)

    async def update(self, path: str, body: Any, kind: type[T], *, timeout: float | None = None) -> T:
        """Replaces (PUT)."""
        return await self._ask(_Request("PUT", path, body=encode(body)), kind, timeout)

    async def patch(
        self,
        path: str,
        body: Any,
        kind: type[T],
        *,
        patch_type: PatchType = PatchType.STRATEGIC,
        urgent: bool = False,
        timeout: float | None = None,
    ) -> T:
        """Changes parts (PATCH). `body` is plain data or an object."""
        request = _Request("PATCH", path, body=encode(body), content_type=patch_type)
        return await self._ask(request, kind, timeout, urgent=urgent)

    async def delete(self, path: str, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Deletes, with the given preconditions."""
        options: dict[str, object] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        await self._send(_Request("DELETE", path, body=encode(options)))

    async def delete_all(self, path: str, *, query: Mapping[str, str]) -> None:
        """Deletes all objects of a collection that `query` selects."""
        await self._send(_Request("DELETE", path, query))

    async def _ask(self, request: _Request, kind: type[T], timeout: float | None, *, urgent: bool = False) -> T:
        data = await self._send(request, urgent=urgent, timeout=timeout)
        found = decode_object(data, kind)
        if not isinstance(found, UndecodableObject):
            return found
        _answer(str(request), data, dict[str, Raw])  # no object at all: the server's error, not the object's
        raise NotDecoded(str(request), found)

    async def _send(
        self, request: _Request, *, urgent: bool = False, timeout: float | None = None, most: int = _ANSWER_LIMIT
    ) -> bytes:
        """Sends one request and returns its whole answer of at most `most` bytes."""
        if not urgent:
            await self._take_turn(request)
        limits = aiohttp.ClientTimeout(total=timeout or self._timeout)
        async with self._slot():
            with self._recorder.wait(WaitKind.API_CALL, on=str(request)):
                connections = await self._connect(str(request))
                async with connections.used():
                    response = await self._open(connections, request, limits)
                    try:
                        body = await _read(str(request), response, most)
                        self._metrics.size(request.verb, self._host, len(request.body or b""), len(body))
                        return body
                    except (aiohttp.ClientError, OSError, TimeoutError) as error:
                        raise Unavailable(
                            str(request), f"answer broke off: {error or 'time-out'}", obstacle=obstacle_of(error)
                        ) from error
                    finally:
                        response.release()

    async def _take_turn(self, request: _Request) -> None:
        delay = self._limiter.delay()
        self._metrics.limited(request.verb, self._host, delay)
        if delay:
            with self._recorder.wait(WaitKind.QUEUE, on="client rate limit of the API server"):
                await asyncio.sleep(delay)

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """One of the places for requests under way."""
        if self._slots.locked():
            with self._recorder.wait(WaitKind.QUEUE, on=f"one of {_REQUESTS} requests to the API server to end"):
                await self._slots.acquire()
        else:
            await self._slots.acquire()
        try:
            yield
        finally:
            self._slots.release()

    async def _open(
        self, connections: Connections, request: _Request, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Sends the request. Returns the answer, body unread, if its code is good; raises APIError otherwise."""
        headers = dict(self._headers)
        if connections.identity.token:
            headers["Authorization"] = f"Bearer {connections.identity.token}"
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        began = self._clock.monotonic()
        code = "<error>"
        try:
            response = await connections.session.request(
                request.verb,
                self._config.server + request.path,
                params=request.query,
                data=request.body,
                headers=headers,
                timeout=limits,
                allow_redirects=False,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                server_hostname=self._config.tls_server_name or None,
            )
            code = str(response.status)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise Unavailable(str(request), str(error) or "no answer in time", obstacle=obstacle_of(error)) from error
        finally:
            self._metrics.request(request.verb, self._host, code, self._clock.monotonic() - began)
        if response.status < 300:
            return response
        raise await self._failure(str(request), response)

    async def _failure(self, request: str, response: aiohttp.ClientResponse) -> APIError:
        try:
            body = await response.content.read(64 * 1024)
        except (aiohttp.ClientError, OSError, TimeoutError):
            body = b""
        response.close()
        error = error_for(request, response.status, body, response.headers.get("Retry-After", ""))
        if isinstance(error, Unauthorized):
            self._credentials.refused()
        return error

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._config.server

    def peers(self) -> set[str]:
        """Addresses of the API server, or of the proxy before it, to which connections are open."""
        return self._connections.peers() if self._connections is not None else set()

    async def _connect(self, request: str) -> Connections:
        """The connections of the current identity. A new client certificate gets new ones; the old ones end."""
        try:
            identity = await self._credentials.current()
            held = self._connections
            if held is not None and identity.certificate == held.identity.certificate:
                held.identity = identity
                return held
            fresh = self._connections = self._new_connections(identity)
        except (CredentialError, ssl.SSLError, OSError, ValueError) as error:
            raise Unauthorized(request, f"credentials cannot be used: {error}") from error
        if held is not None:
            await held.retire()
        return fresh

    def _new_connections(self, identity: Identity) -> Connections:
        context: ssl.SSLContext | bool = True
        if self._config.server.startswith("https://"):
            with _MemoryFiles() as files:
                context = tls_context(self._config, identity, files.path)
        connector = ServerConnector(context, self._resolver)
        auth = None
        if self._config.username:
            auth = aiohttp.BasicAuth(self._config.username, self._config.password)
        session = aiohttp.ClientSession(
            connector=connector, auth=auth, headers=self._config.impersonate, auto_decompress=True, read_bufsize=2**18
        )
        return Connections(session, connector, identity)


def _watch_event(request: str, line: bytes, kind: type[T]) -> WatchEvent[T]:
    event = _answer(request, line, _Event)
    data = bytes(event.object)
    if event.type == "ERROR":
        status = _answer(request, data, Status)
        if status.code == 410 or status.reason in ("Expired", "Gone"):
            raise Gone(request, status.message, code=410, reason=status.reason)
        raise Unavailable(request, status.message, code=status.code, reason=status.reason)
    if event.type not in WatchKind.__members__:
        raise Unavailable(request, f"watch event of type {event.type!r}, want ADDED, MODIFIED, DELETED or BOOKMARK")
    if event.type == WatchKind.BOOKMARK:
        return WatchEvent(WatchKind.BOOKMARK, None, _answer(request, data, _Versioned).metadata.resource_version)
    found = decode_object(data, kind)
    if isinstance(found, UndecodableObject):
        return WatchEvent(WatchKind(event.type), found, found.metadata.resource_version)
    return WatchEvent(WatchKind(event.type), found, _answer(request, data, _Versioned).metadata.resource_version)


def _answer(request: str, data: bytes, kind: type[T]) -> T:
    """Decodes what the server itself says. If it cannot be decoded, nothing may be concluded from the answer, least of
    all that an object was deleted."""
    try:
        return decode(data, kind)
    except UNDECODABLE as error:
        raise Unavailable(request, f"the answer cannot be read: {error}") from error


def _ask_for_less(wanted: dict[str, str]) -> bool:
    """Changes the query of a list whose answer was too long; False if it cannot ask for less."""
    if wanted.pop("resourceVersion", None) is not None:
        # From its cache the server answers the whole list, whatever the limit.
        return True
    limit = int(wanted["limit"])
    wanted["limit"] = str(max(limit // 8, 1))
    return limit > 1


async def _read(request: str, response: aiohttp.ClientResponse, most: int) -> bytes:
    """The whole answer. Raises AnswerTooLarge, and what aiohttp raises."""
    data = bytearray()
    if (response.content_length or 0) <= most:
        async for chunk in response.content.iter_any():
            data += chunk
            if len(data) > most:
                break
        else:
            return bytes(data)
    # The rest stays unread: this connection is of no more use.
    response.close()
    raise AnswerTooLarge(request, f"the answer is longer than {most} bytes")


def _watch_silence(query: Mapping[str, str]) -> float:
    """Bookmarks come about once a minute: after a longer silence the server counts as dead."""
    asked = query.get("timeoutSeconds")
    return float(asked) + 30 if asked else 600.0


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yields lines of any length up to a limit that no API object reaches."""
    pending = bytearray()
    async for chunk in response.content.iter_any():
        pending += chunk
        if b"\n" not in chunk:
            if len(pending) > _LINE_LIMIT:
                raise aiohttp.ClientPayloadError("watch line of more than 32 MiB")
            continue
        *lines, rest = bytes(pending).split(b"\n")
        pending = bytearray(rest)
        for line in lines:
            if line:
                yield line


class _MemoryFiles:
    """Files in memory, for a library that reads keys only from files."""

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def __enter__(self) -> _MemoryFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)

    def path(self, data: bytes) -> str:
        """A path that reads as `data` while the context is open."""
        descriptor = os.memfd_create("glasslet-key", os.MFD_CLOEXEC)
        self._descriptors.append(descriptor)
        os.write(descriptor, data)
        return f"/proc/self/fd/{descriptor}"
