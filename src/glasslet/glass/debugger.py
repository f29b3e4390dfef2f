"""`POST /glass/v1/debugger`, on the socket only: opens the agent for a debugger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from glasslet.answers.debugger import DebuggerAnswer, DebuggerRequest
from glasslet.answers.wire import ErrorAnswer, encode
from glasslet.glass.handlers import answering
from glasslet.glass.requests import RequestRefused

Opening = Callable[[DebuggerRequest], Awaitable[DebuggerAnswer]]


def debugger_routes(opening: Opening) -> list[web.RouteDef]:
    """The route. `opening` raises RequestRefused."""

    async def handler(request: web.Request) -> web.StreamResponse:
        try:
            wanted = msgspec.json.decode(await request.read() or b"{}", type=DebuggerRequest)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RequestRefused(
                400, ErrorAnswer(error=f"not a request for a debugger: {error}", field="body")
            ) from error
        return web.Response(body=encode(await opening(wanted)), content_type="application/json")

    return [web.post("/glass/v1/debugger", answering(handler))]
