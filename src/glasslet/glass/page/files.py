"""The files of the page: read from the package when the first page asks, kept, each with an ETag of its content."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from aiohttp import web

SHELL = "shell.html"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Nothing from elsewhere, and no string becomes HTML or code."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""no-cache: kept by the browser, and asked for each time (the ETag answers)."""


class PageFile(NamedTuple):
    """One file."""

    body: bytes
    etag: str
    content_type: str


class PageFiles:
    """The files by name."""

    def __init__(self) -> None:
        self._kept: dict[str, PageFile] = {}

    async def shell(self, request: web.Request) -> web.StreamResponse:
        """GET /glass/: the document."""
        return self._sent(request, SHELL)

    async def file(self, request: web.Request) -> web.StreamResponse:
        """GET /glass/FILE."""
        return self._sent(request, request.match_info["file"])

    async def beside(self, _request: web.Request) -> web.StreamResponse:
        """GET /glass: the document's addresses are relative to the folder."""
        return web.Response(status=308, headers={"Location": "glass/"})

    def _sent(self, request: web.Request, name: str) -> web.StreamResponse:
        found = self._kept.get(name) or self._read(name)
        if found is None:
            return web.Response(status=404, text=f"the page has no file {name}\n", headers=HEADERS)
        headers = {**HEADERS, "ETag": found.etag}
        if found.etag in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        return web.Response(body=found.body, headers={**headers, "Content-Type": found.content_type})

    def _read(self, name: str) -> PageFile | None:
        kind = _TYPES.get(name.rpartition(".")[2])
        if kind is None:
            return None
        from importlib import resources

        try:
            body = resources.files("glasslet").joinpath("page", name).read_bytes()
        except OSError:
            return None
        self._kept[name] = PageFile(body, f'"{hashlib.sha256(body).hexdigest()[:20]}"', kind)
        return self._kept[name]
