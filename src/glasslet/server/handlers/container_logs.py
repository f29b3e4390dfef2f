"""`/containerLogs/{namespace}/{pod}/{container}`: log text, as fast as the client takes it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator

from aiohttp import web

from glasslet.api.pod import Pod
from glasslet.runtime.logs.container_logs import LogsNotAvailable
from glasslet.server import responses
from glasslet.server.handlers.log_options import InvalidOption, UndecodableOption, log_options
from glasslet.server.protocols import LogSource, PodSource
from glasslet.server.request_pipeline import CONNECTIONS
from glasslet.server.routing import Parameters, Route, RouteTable

log = logging.getLogger(__name__)


def add_container_logs(routes: RouteTable, pods: PodSource, logs: LogSource, *, split_streams: bool) -> None:
    """`split_streams`: feature gate PodLogsQuerySplitStreams."""

    async def handler(request: web.Request, parameters: Parameters) -> web.StreamResponse:
        try:
            options = log_options(request.query)
        except UndecodableOption:
            return responses.plain(400, '{"message": "Unable to decode query."}')
        except InvalidOption:
            return responses.plain(422, '{"message": "Invalid request."}')
        name, container = parameters["pod"], parameters["container"]
        pod = pods.pod(parameters["namespace"], name)
        if pod is None:
            return responses.plain(404, f'pod "{name}" does not exist')
        if not has_container(pod, container):
            return responses.plain(404, f'container "{container}" not found in pod "{name}"')
        if options.stream != "All" and not split_streams:
            return responses.plain(
                400,
                f'unable to return the given log stream: "{options.stream}". '
                "Please enable PodLogsQuerySplitStreams feature gate in kubelet",
            )
        return await _stream(request, logs.read_logs(pod, container, options))

    routes.service("/containerLogs", Route(("GET",), "/containerLogs/{namespace}/{pod}/{container}", handler))


def has_container(pod: Pod, name: str) -> bool:
    """True if the pod has a container of that name, of whatever kind."""
    spec = pod.spec
    ordinary = any(c.name == name for c in (*spec.containers, *spec.init_containers))
    return ordinary or any(c.name == name for c in spec.ephemeral_containers)


async def _stream(request: web.Request, chunks: AsyncIterator[bytes]) -> web.StreamResponse:
    """Sends chunk by chunk; the next one is read only when the client has taken the last."""
    response = responses.UntypedStream()
    try:
        async for chunk in chunks:
            if not response.prepared:
                await response.prepare(request)
            await response.write(chunk)
    except (LogsNotAvailable, OSError) as error:
        if not response.prepared:
            return responses.plain(400, str(error))
        if not isinstance(error, ConnectionError):
            log.warning("Log stream cut", extra={"path": request.path, "error": str(error)})
        _cut(request)
    except Exception:
        if not response.prepared:
            raise
        log.exception("Log stream cut", extra={"path": request.path})
        _cut(request)
    finally:
        await _close(chunks)
    return response


def _cut(request: web.Request) -> None:
    """Resets the connection: without the final chunk the client cannot take a part for the whole."""
    # Closed meanwhile: then there is nothing to cut.
    with contextlib.suppress(KeyError):
        request.app[CONNECTIONS].guard_of(request.protocol).abort()


async def _close(chunks: AsyncIterator[bytes]) -> None:
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
