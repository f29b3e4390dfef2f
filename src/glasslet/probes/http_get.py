"""httpGet probes: an exact HTTP/1.1 GET. No proxy, no compression, no kept connection, any certificate."""

from __future__ import annotations

import asyncio

from glasslet.api.lifecycle import HTTPGetAction
from glasslet.probes.answer import READ_BYTES, ProbeAnswer
from glasslet.probes.connection import Connection, ConnectionFailed, Resolve, Stopwatch, connect, secure
from glasslet.probes.connection import close as close_socket
from glasslet.probes.http_request import (
    Headers,
    ProbeURL,
    is_relative,
    probe_headers,
    probe_url,
    redirected,
    request_bytes,
    with_referer,
)
from glasslet.probes.http_response import BadResponse, Head, ResponseReader
from glasslet.probes.results import ProbeVerdict

REQUESTS = 10
"""probe.redirects: the answer to the tenth request must not be another redirect."""
_REDIRECTS = (301, 302, 303, 307, 308)
_TOO_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_BODY_TOO_LATE = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


async def probe_http(action: HTTPGetAction, *, host: str, port: int, timeout: float, resolve: Resolve) -> ProbeAnswer:
    """One GET, redirects on the same host followed, within `timeout` seconds. Raises Unprobeable."""
    exchange = _Exchange(probe_url(action, host, port), probe_headers(action.http_headers), resolve)
    try:
        async with asyncio.timeout(timeout):
            return await exchange.run()
    except TimeoutError:
        return exchange.timed_out()
    finally:
        exchange.close()


class _Exchange:
    """One probe: requests, each on a connection of its own, up to the answer that counts."""

    def __init__(self, url: ProbeURL, headers: Headers, resolve: Resolve) -> None:
        self._first = url
        self._url = url
        self._headers = headers
        self._resolve = resolve
        self._keep_host = True
        self._head: Head | None = None
        self._connection: Connection | None = None
        self._watch = Stopwatch()

    async def run(self) -> ProbeAnswer:
        """The answer; every error before the head is a failure."""
        for number in range(1, REQUESTS + 1):
            try:
                reader, head = await self._ask()
                follow = self._follow(head)
            except (ConnectionFailed, BadResponse) as error:
                return self._failed(str(error))
            if follow is None:
                self._head = head
                return await self._answer(reader, head)
            if number == REQUESTS:
                return self._failed(f"stopped after {REQUESTS} redirects")
            self._go_to(follow, head.headers["location"])
        raise AssertionError("unreachable")

    def timed_out(self) -> ProbeAnswer:
        """The answer when time is over: a failure without a head; an error, which does not count, during the body."""
        if self._head is None:
            return self._failed(_TOO_LATE, timed_out=True)
        return ProbeAnswer(verdict=ProbeVerdict.FAILURE, error=_BODY_TOO_LATE, timed_out=True, parts=self._watch.parts)

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _ask(self) -> tuple[ResponseReader, Head]:
        url = self._url
        if url.scheme not in ("http", "https"):
            raise ConnectionFailed(f'unsupported protocol scheme "{url.scheme}"')
        sock = await connect(url.host, url.port, resolve=self._resolve, watch=self._watch)
        try:
            self._connection = (
                Connection(sock) if url.scheme == "http" else await secure(sock, url.host, watch=self._watch)
            )
        finally:
            if self._connection is None:
                close_socket(sock)
        self._watch.begin()
        await self._connection.send(request_bytes(url, self._headers, keep_host=self._keep_host))
        reader = ResponseReader(self._connection.receive)
        await reader.first()
        self._watch.end("first_byte")
        return reader, await reader.head()

    def _follow(self, head: Head) -> ProbeURL | None:
        """The URL of a redirect; None if this answer counts. Raises ConnectionFailed."""
        location = head.headers.get("location", "")
        if head.status not in _REDIRECTS or not location:
            return None
        url = redirected(self._url, location)
        if url is None:
            raise ConnectionFailed(f'failed to parse Location header "{location[:200]}"')
        return url if url.host.lower() == self._first.host.lower() else None

    def _go_to(self, url: ProbeURL, location: str) -> None:
        self.close()
        self._keep_host = is_relative(location)
        self._headers = with_referer(self._headers, self._url, url)
        self._url = url

    async def _answer(self, reader: ResponseReader, head: Head) -> ProbeAnswer:
        try:
            body = await reader.body(head, READ_BYTES)
        except (ConnectionFailed, BadResponse) as error:
            return ProbeAnswer(verdict=ProbeVerdict.FAILURE, error=str(error), parts=self._watch.parts)
        brief = f"status {head.status}"
        if not 200 <= head.status < 400:
            # Never the body: events may be read by users who must not see it.
            output = f"HTTP probe failed with statuscode: {head.status}"
            return ProbeAnswer(verdict=ProbeVerdict.FAILURE, output=output, brief=brief, parts=self._watch.parts)
        if head.status >= 300:
            output = f"Probe terminated redirects, Response body: {body.decode(errors='replace')}"
            return ProbeAnswer(verdict=ProbeVerdict.WARNING, output=output, brief=brief, parts=self._watch.parts)
        return ProbeAnswer(verdict=ProbeVerdict.SUCCESS, brief=brief, parts=self._watch.parts)

    def _failed(self, why: str, *, timed_out: bool = False) -> ProbeAnswer:
        output = f'Get "{self._url}": {why}'
        brief = "no answer in time" if timed_out else why
        return ProbeAnswer(
            verdict=ProbeVerdict.FAILURE, output=output, brief=brief, timed_out=timed_out, parts=self._watch.parts
        )
