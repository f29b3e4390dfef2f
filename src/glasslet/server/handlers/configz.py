"""`/configz`: the configuration in effect."""

from __future__ import annotations

import msgspec
from aiohttp import web

from glasslet.server import responses
from glasslet.server.protocols import ConfigZ
from glasslet.server.routing import Parameters, RouteTable


def add_configz(routes: RouteTable, configuration: ConfigZ) -> None:
    """Serves it under the name that the Go kubelet registers."""

    async def handler(_request: web.Request, _: Parameters) -> web.StreamResponse:
        return responses.json_bytes(msgspec.json.encode({"kubeletconfig": configuration()}))

    routes.fixed("/configz", handler)
