"""`/debug/flags/v`, and the part of `/debug/pprof/` that makes sense for this agent."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from collections.abc import Callable

from aiohttp import web

from glasslet.server import responses
from glasslet.server.routing import Parameters, Route, RouteTable

_NUMBER = re.compile(r"[0-9]+")
_BODY_SECONDS = 30.0


def add_debug_flags(routes: RouteTable, set_verbosity: Callable[[int], None], *, enabled: bool) -> None:
    """Serves `PUT /debug/flags/v`. `set_verbosity` raises ValueError on a number out of range."""

    async def handler(request: web.Request, _: Parameters) -> web.StreamResponse:
        if not enabled:
            return responses.error(405, "flags endpoint is disabled.")
        if request.method != "PUT":
            return responses.plain(406, "unsupported http method\n")
        async with asyncio.timeout(_BODY_SECONDS):
            text = (await request.content.read(65)).decode("utf-8", "replace")
        try:
            if not _NUMBER.fullmatch(text) or len(text) > 64:
                raise ValueError(f'"{text[:64]}" is not a number')
            set_verbosity(int(text))
        except ValueError as error:
            return responses.plain(400, f"failed set logging.verbosity {text[:64]}: {error}\n")
        return responses.plain(200, f"successfully set klog.logging.verbosity to {text}\n")

    routes.fixed("/debug/flags/v", handler)


def add_profiling(routes: RouteTable, *, enabled: bool) -> None:
    """Serves `cmdline` and `goroutine` (the agent's tasks and where each one is), none of Go's binary profiles."""
    if not enabled:

        async def disabled(_request: web.Request, _: Parameters) -> web.StreamResponse:
            return responses.error(405, "profiling endpoint is disabled.")

        routes.everything_below("/debug/pprof/", disabled)
        return

    async def handler(_request: web.Request, parameters: Parameters) -> web.StreamResponse:
        match parameters["profile"]:
            case "cmdline":
                # Not from /proc: the agent has a title of its own there.
                return responses.plain(200, "\0".join(sys.argv).encode("utf-8", "replace").decode())
            case "goroutine":
                return responses.plain(200, task_stacks())
            case _:
                return responses.error(404, "Unknown profile")

    routes.service("/debug/pprof/", Route(("GET",), "/debug/pprof/{profile:*}", handler))


def task_stacks() -> str:
    """Every task's name and stack, newest call last."""
    out = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        task.print_stack(file=out)
        out.write("\n")
    return out.getvalue()
