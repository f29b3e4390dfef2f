"""Answers in the Go kubelet's forms: plain text for errors, JSON bytes for data."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

TEXT = "text/plain; charset=utf-8"


def plain(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """A text without line break at its end, as the router of the Go kubelet gives its errors."""
    return web.Response(status=status, body=text.encode(), headers={"Content-Type": TEXT, **(headers or {})})


def error(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """A text with a line break, as Go's HTTP library gives its errors."""
    return plain(status, text + "\n", {"X-Content-Type-Options": "nosniff", **(headers or {})})


def json_bytes(body: bytes) -> web.Response:
    """JSON that is already encoded."""
    return web.Response(body=body, headers={"Content-Type": "application/json"})


def redirect(location: str) -> web.Response:
    """Moved for good, with a body for people."""
    body = f'<a href="{location.replace("&", "&amp;").replace(chr(34), "&#34;")}">Moved Permanently</a>.\n\n'
    headers = {"Location": location, "Content-Type": "text/html; charset=utf-8"}
    return web.Response(status=301, body=body.encode(), headers=headers)


class UntypedStream(web.StreamResponse):
    """A stream without a Content-Type."""


async def tidy_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Signal handler: takes off headers that aiohttp adds and the Go kubelet does not have."""
    response.headers.popall("Server", None)
    if isinstance(response, UntypedStream):
        response.headers.popall("Content-Type", None)


class TakenOver(web.StreamResponse):
    """The result of a handler that took the connection over and closed it: nothing is left to send."""

    async def prepare(self, request: web.BaseRequest) -> None:
        """Sends nothing."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Sends nothing."""
