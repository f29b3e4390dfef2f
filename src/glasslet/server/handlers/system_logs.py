"""`/logs/`: the files under /var/log and queries of the journal, for clients with the right `nodes/log`."""

from __future__ import annotations

import asyncio
import mimetypes
import os
import re
import stat
from html import escape
from itertools import islice
from urllib.parse import quote

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from glasslet.concurrency.own_threads import OwnThreads
from glasslet.server import responses
from glasslet.server.handlers.log_query import QueryRefused, read_query
from glasslet.server.handlers.node_logs import NodeLogs
from glasslet.server.routing import Parameters, Route, RouteTable

SYSTEM_LOGS = "/var/log"

READERS = 2
"""Listings and look-ups at the same moment. A folder may be large, or on a server that does not answer."""
SECONDS = 30.0
"""A listing or look-up, the wait for its turn included."""
ENTRIES = 100_000
"""Entries of a folder that a listing shows."""
_SNIFFED = 512
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def add_system_logs(
    routes: RouteTable, *, enabled: bool, folder: str = SYSTEM_LOGS, node_logs: NodeLogs | None = None
) -> None:
    """Serves listings and files; links are followed, as the administrator put them there. `node_logs`: None where
    queries are switched off, and their parameters mean nothing."""
    if not enabled:

        async def disabled(_request: web.Request, _: Parameters) -> web.StreamResponse:
            return responses.error(405, "logs endpoint is disabled.")

        routes.everything_below("/logs/", disabled)
        return

    threads = OwnThreads("system logs", limit=READERS)

    async def handler(request: web.Request, parameters: Parameters) -> web.StreamResponse:
        if node_logs is not None and (queried := await _queried(request, parameters, node_logs)) is not None:
            return queried
        try:
            async with asyncio.timeout(SECONDS):
                return await threads.run(_answer, request.path, folder, parameters.get("path", ""))
        except TimeoutError:
            return responses.error(503, f"the log folder did not answer within {SECONDS:g} s")

    routes.service("/logs/", Route(("GET",), "/logs/", handler), Route(("GET",), "/logs/{path:*}", handler))


async def _queried(request: web.Request, parameters: Parameters, node_logs: NodeLogs) -> web.StreamResponse | None:
    """None for a request that is no query."""
    try:
        query = read_query(request.query)
    except QueryRefused as refused:
        return responses.error(refused.status, str(refused))
    if query is None:
        return None
    if parameters.get("path"):
        return responses.error(406, "path not allowed in query mode")
    return await (node_logs.file(request, query.files[0]) if query.files else node_logs.answer(request, query))


def _answer(url_path: str, folder: str, path: str) -> web.StreamResponse:
    # The path has no dot segments any more: the route table redirects those. A null byte is the only trap left.
    if "\0" in path:
        return responses.error(404, "404 page not found")
    full = os.path.join(folder, path)
    try:
        mode = os.stat(full).st_mode
        if stat.S_ISDIR(mode):
            if not url_path.endswith("/"):
                return responses.redirect(quote(url_path.rsplit("/", 1)[-1]) + "/")
            return web.Response(body=listing(full), headers={"Content-Type": "text/html; charset=utf-8"})
    except FileNotFoundError:
        return responses.error(404, "404 page not found")
    except PermissionError:
        return responses.error(403, "403 Forbidden")
    except OSError:
        return responses.error(500, "500 Internal Server Error")
    if not stat.S_ISREG(mode):
        # A fifo or a device has no end.
        return responses.error(403, "403 Forbidden")
    try:
        return _SystemLogFile(full, headers={"Content-Type": file_type(full)})
    except OSError:
        return responses.error(500, "500 Internal Server Error")


def file_type(path: str) -> str:
    """By the name's ending; where that says nothing by the first bytes, as browsers and Go's file server do. Raises
    OSError."""
    kind, packed = mimetypes.guess_type(path)
    if packed:
        return "application/x-gzip" if packed == "gzip" else "application/octet-stream"
    if kind is not None:
        return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    # It may have become a pipe: opening that would wait for a writer.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return "application/octet-stream" if _BINARY.search(file.read(_SNIFFED)) else "text/plain; charset=utf-8"


class _SystemLogFile(web.FileResponse):
    """Sent once: the pipeline sends answers itself, and aiohttp would prepare a file a second time."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        return None if self.prepared else await super().prepare(request)


def listing(folder: str) -> bytes:
    """A folder as a list of links, sorted by name; only so many of a very large one."""
    with os.scandir(folder) as found:
        entries = list(islice(found, ENTRIES + 1))
    names = sorted(entry.name + "/" if entry.is_dir() else entry.name for entry in entries[:ENTRIES])
    lines = "".join(f'<a href="{_link(name)}">{escape(name)}</a>\n' for name in names)
    if len(entries) > ENTRIES:
        lines += "and more\n"
    page = f'<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n{lines}</pre>\n'
    return page.encode("utf-8", "surrogateescape")


def _link(name: str) -> str:
    """Relative; a colon in its first segment would make it look like a scheme."""
    return quote("./" + name if ":" in name else name)
