"""`/checkpoint`: an archive of a running container, written by the runtime."""

from __future__ import annotations

import re

from aiohttp import web

from glasslet.api.pod import Pod
from glasslet.server import responses
from glasslet.server.protocols import CheckpointFailed, CheckpointSource, PodSource
from glasslet.server.routing import Parameters, Produces, Route, RouteTable

_SECONDS = re.compile(r"[+-]?[0-9]{1,18}")


def add_checkpoint(routes: RouteTable, pods: PodSource, source: CheckpointSource) -> None:
    """Serves it. Every refusal but the runtime's is 404, as upstream has it."""

    async def handler(request: web.Request, parameters: Parameters) -> web.StreamResponse:
        namespace, name, container = parameters["namespace"], parameters["pod"], parameters["container"]
        pod = pods.pod(namespace, name)
        if pod is None:
            return responses.plain(404, "pod does not exist")
        if container not in container_names(pod):
            return responses.plain(404, f"container {container} does not exist")
        wanted = request.query.getall("timeout", ["0"])[-1]
        if not _SECONDS.fullmatch(wanted):
            return responses.plain(404, "cannot parse value of timeout parameter")
        try:
            path = await source.checkpoint(pod, container, int(wanted))
        except CheckpointFailed as error:
            return responses.plain(500, f"checkpointing of {namespace}/{name}/{container} failed ({error})")
        return responses.json_bytes(f'{{"items":["{path}"]}}'.encode())

    route = Route(("POST",), "/checkpoint/{namespace}/{pod}/{container}", handler, Produces.JSON)
    routes.service("/checkpoint", route)


def container_names(pod: Pod) -> set[str]:
    """All containers of the specification, of any kind."""
    spec = pod.spec
    return {c.name for c in (*spec.containers, *spec.init_containers)} | {c.name for c in spec.ephemeral_containers}
