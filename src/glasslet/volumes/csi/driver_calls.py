"""Calls of CSI drivers: each is a wait that names driver, method and volume, has a deadline, and fails in one way.

Nothing of a call is kept: a driver that hangs holds up who called it, and nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import Protocol, TypeVar

from google.protobuf.message import Message
from grpc import StatusCode
from grpc.aio import AioRpcError, insecure_channel
from msgspec import Struct

from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.volumes.csi._generated import csi_pb2 as messages
from glasslet.volumes.csi.drivers import DriverMissing, Drivers
from glasslet.volumes.csi.errors import DriverCallFailed, NotTried, code_words

CALL_SECONDS = 120.0
"""csi.timeout: upstream's limit of one operation."""
_SERVICE = "/csi.v1.Node/"
_LARGEST = 4 * 1024 * 1024
_MOST_SAID = 2048
"""Characters of a driver's words that are kept."""
_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", _LARGEST),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
)
_NOT_DECODED = "the driver's answer cannot be decoded"
"""The gRPC library hands on None for such an answer."""

M = TypeVar("M", bound=Message)
Capability = messages.NodeServiceCapability.RPC


class DriverCallMetrics(Protocol):
    """`csi_operations_seconds`."""

    def called(self, driver: str, method: str, code: str, seconds: float) -> None: ...


class NodeInfo(Struct, frozen=True, kw_only=True):
    """A driver's view of this node. `most_volumes`: 0 without a limit; `topology`: segments."""

    node_id: str
    most_volumes: int = 0
    topology: dict[str, str] = {}


class DriverCalls:
    """Asks drivers. Every method raises DriverCallFailed, NotTried."""

    def __init__(self, *, drivers: Drivers, recorder: Recorder, metrics: DriverCallMetrics | None = None) -> None:
        self._drivers = drivers
        self._recorder = recorder
        self._metrics = metrics

    async def call(
        self, driver: str, request: Message, answer: type[M], *, volume: str = "", secrets: Iterable[str] = ()
    ) -> M:
        """Sends the request, whose name says the method. `volume`: its name in words, "" for none; `secrets`: what a
        driver may not repeat in its words."""
        try:
            endpoint = self._drivers.get(driver).endpoint
        except DriverMissing as error:
            raise NotTried(str(error)) from error
        method = type(request).__name__.removesuffix("Request")
        began, code = monotonic(), StatusCode.OK
        try:
            with self._recorder.wait(WaitKind.CSI_CALL, on=call_words(driver, method, volume)):
                async with insecure_channel(f"unix:{endpoint}", options=_OPTIONS) as channel:
                    found: M | None = await channel.unary_unary(
                        f"{_SERVICE}{method}",
                        request_serializer=type(request).SerializeToString,
                        response_deserializer=answer.FromString,
                    )(request, timeout=CALL_SECONDS)
            if found is None:
                code = StatusCode.INTERNAL
                raise DriverCallFailed(driver=driver, method=method, code=code, said=_NOT_DECODED)
            return found
        except AioRpcError as error:
            code = error.code()
            said = without(error.details() or "", secrets)
            raise DriverCallFailed(driver=driver, method=method, code=code, said=said) from None
        finally:
            if self._metrics is not None:
                self._metrics.called(driver, f"{_SERVICE}{method}", code_words(code), monotonic() - began)

    async def node_info(self, driver: str) -> NodeInfo:
        """The driver's view of this node."""
        answer = await self.call(driver, messages.NodeGetInfoRequest(), messages.NodeGetInfoResponse)
        return NodeInfo(
            node_id=answer.node_id,
            most_volumes=answer.max_volumes_per_node,
            topology=dict(answer.accessible_topology.segments),
        )

    async def capabilities(self, driver: str, *, volume: str = "") -> frozenset[int]:
        """What the driver can do on nodes: values of `Capability.Type`."""
        answer = await self.call(
            driver, messages.NodeGetCapabilitiesRequest(), messages.NodeGetCapabilitiesResponse, volume=volume
        )
        return frozenset(one.rpc.type for one in answer.capabilities)


def call_words(driver: str, method: str, volume: str) -> str:
    """The wait in words: `CSI driver d.example: NodeStageVolume of volume pv1`."""
    return f"CSI driver {driver}: {method}" + (f" of volume {volume}" if volume else "")


def without(text: str, secrets: Iterable[str]) -> str:
    """A driver's words of bounded length, with the values of secrets taken out."""
    for value in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(value, "***")
    return text if len(text) <= _MOST_SAID else f"{text[:_MOST_SAID]}..."
