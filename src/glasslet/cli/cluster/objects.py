"""The API server's objects, as far as they say which node has a pod."""

from __future__ import annotations

import http.client
import socket
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from glasslet.cli.agent_client import PodName
from glasslet.cli.cluster.refusals import ApiRefused, api_refusal
from glasslet.cli.failure import Failure

T = TypeVar("T")

_SECONDS = 60.0


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str
    message: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class PodObject(msgspec.Struct, frozen=True):
    """A pod of the API server."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def pod(self) -> PodName:
        """Its name."""
        return PodName(self.metadata.namespace, self.metadata.name)

    @property
    def node(self) -> str:
        """The node that it is bound to, "" without one."""
        return self.spec.node_name

    @property
    def unscheduled(self) -> str:
        """What the scheduler says of it, "" if nothing."""
        conditions = self.status.conditions
        return next((one.message for one in conditions if one.type == "PodScheduled" and one.status != "True"), "")


class _Pods(msgspec.Struct, frozen=True):
    items: tuple[PodObject, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _Nodes(msgspec.Struct, frozen=True):
    items: tuple[_Node, ...] = ()


class EventObject(msgspec.Struct, frozen=True, rename="camel"):
    """An Event of a pod."""

    reason: str = ""
    message: str = ""
    type: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def at(self) -> str:
        """When it happened last, as the API server writes it."""
        return self.last_timestamp or self.event_time or self.first_timestamp or ""


class _Events(msgspec.Struct, frozen=True):
    items: tuple[EventObject, ...] = ()


class ApiObjects:
    """Reads through a socket that leads to the API server."""

    def __init__(self, socket_path: Path) -> None:
        self._socket = socket_path

    def pod(self, name: PodName) -> PodObject | None:
        """One pod, None if there is no such pod. Raises Failure."""
        namespace, pod = quote(name.namespace, safe=""), quote(name.name, safe="")
        try:
            return self._get(f"/api/v1/namespaces/{namespace}/pods/{pod}", PodObject)
        except ApiRefused as refused:
            if refused.status == 404:
                return None
            raise

    def pods(self, namespace: str = "") -> list[PodObject]:
        """The pods of a namespace, of all for "". Raises Failure."""
        inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        return list(self._get(f"/api/v1{inside}/pods", _Pods).items)

    def nodes(self) -> list[str]:
        """The names of all nodes. Raises Failure."""
        return sorted(node.metadata.name for node in self._get("/api/v1/nodes", _Nodes).items)

    def events(self, name: PodName, uid: str) -> list[EventObject]:
        """The Events of a pod, oldest first. Raises Failure."""
        selector = quote(f"involvedObject.name={name.name},involvedObject.uid={uid}", safe="")
        namespace = quote(name.namespace, safe="")
        found = self._get(f"/api/v1/namespaces/{namespace}/events?fieldSelector={selector}", _Events).items
        return sorted(found, key=lambda event: event.at)

    def configuration(self, node: str) -> dict[str, object]:
        """The KubeletConfiguration in effect on a node (`/configz`). Raises Failure."""
        answer = self._get(f"/api/v1/nodes/{quote(node, safe='')}/proxy/configz", dict[str, dict[str, object]])
        return answer.get("kubeletconfig", {})

    def _get(self, path: str, kind: type[T]) -> T:
        with closing(http.client.HTTPConnection("localhost")) as connection:
            stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            stream.settimeout(_SECONDS)
            connection.sock = stream
            try:
                stream.connect(str(self._socket))
                connection.request("GET", path, headers={"Accept": "application/json"})
                response = connection.getresponse()
                data = response.read()
            except (OSError, http.client.HTTPException) as error:
                raise Failure(f"kubectl's proxy does not answer: {error or type(error).__name__}") from error
        if response.status != 200:
            raise api_refusal(response.status, data)
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.MsgspecError as error:
            raise Failure(f"the API server's answer to {path} cannot be decoded: {error}") from error
