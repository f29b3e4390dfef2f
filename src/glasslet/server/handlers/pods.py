"""`/pods`: what should run here. `/runningpods/`: what the runtime runs."""

from __future__ import annotations

import msgspec
from aiohttp import web

from glasslet.api.codec import encode
from glasslet.api.container import Container
from glasslet.api.meta import ObjectMeta
from glasslet.api.pod import Pod, PodSpec
from glasslet.runtime.model import ContainerPhase, ObservedPod
from glasslet.server import responses
from glasslet.server.protocols import PodSource
from glasslet.server.routing import Parameters, Produces, Route, RouteTable


def add_pods(routes: RouteTable, source: PodSource) -> None:
    """Serves the desired pods."""

    async def desired(_request: web.Request, _: Parameters) -> web.StreamResponse:
        return responses.json_bytes(pod_list([without_kind(pod) for pod in source.pods()]))

    routes.service("/pods", Route(("GET",), "/pods", desired, Produces.JSON))


def add_running_pods(routes: RouteTable, source: PodSource) -> None:
    """Serves the pods that the runtime runs."""

    async def running(_request: web.Request, _: Parameters) -> web.StreamResponse:
        return responses.json_bytes(pod_list([as_pod(observed) for observed in source.running_pods()]))

    routes.service("/runningpods/", Route(("GET",), "/runningpods/", running, Produces.JSON))


def pod_list(pods: list[Pod]) -> bytes:
    """A v1 PodList; `items` is null when there are none."""
    items = encode(pods) if pods else b"null"
    return b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":' + items + b"}\n"


def without_kind(pod: Pod) -> Pod:
    """The pod as an item of a list has it."""
    return msgspec.structs.replace(pod, kind="", api_version="") if pod.kind or pod.api_version else pod


def as_pod(observed: ObservedPod) -> Pod:
    """The part of a pod that the runtime knows: names, uid, running containers, the images that it reports."""
    running = (c for c in observed.containers if c.phase is ContainerPhase.RUNNING)
    return Pod(
        metadata=ObjectMeta(name=observed.name, namespace=observed.namespace, uid=observed.uid),
        spec=PodSpec(containers=tuple(Container(name=c.name, image=c.image) for c in running)),
    )
