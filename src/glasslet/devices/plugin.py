"""The connection to one device plugin: its verbs, with names for waits and one kind of error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractContextManager
from typing import TypeVar

from google.protobuf.message import Message
from grpc import StatusCode
from grpc.aio import AioRpcError, Channel, UnaryUnaryMultiCallable, insecure_channel
from msgspec import Struct

from glasslet.devices._generated import deviceplugin_pb2 as messages
from glasslet.devices.inventory import HEALTHY, OfferedDevice
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

DIAL_SECONDS = 10.0
OPTIONS_SECONDS = 10.0
PRE_START_SECONDS = 30.0
"""device.prestart_timeout"""
_SERVICE = "/v1beta1.DevicePlugin/"
_LARGEST = 16 * 1024 * 1024
_CHANNEL_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", _LARGEST),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
)

_UNREADABLE = "the plugin's answer cannot be decoded"
"""The gRPC library hands on None for such an answer."""

M = TypeVar("M", bound=Message)


class DevicePluginFailed(Exception):
    """A call of a plugin failed; the text is its answer."""


class PluginOptions(Struct, frozen=True, kw_only=True):
    """The optional calls that a plugin wants."""

    pre_start: bool = False
    preferred_allocation: bool = False


class DevicePlugin:
    """One plugin, from `connect` to `close`. All verbs raise DevicePluginFailed."""

    def __init__(self, *, resource: str, socket: str, recorder: Recorder) -> None:
        self.resource = resource
        self.socket = socket
        self.options = PluginOptions()
        self._recorder = recorder
        self._channel: Channel | None = None

    async def connect(self) -> None:
        """Dials the plugin, which may be just starting, and reads its options."""
        self._channel = insecure_channel(f"unix:{self.socket}", options=_CHANNEL_OPTIONS)
        try:
            with self._wait("connection"):
                async with asyncio.timeout(DIAL_SECONDS):
                    await self._channel.channel_ready()
        except TimeoutError as error:
            raise DevicePluginFailed("failed to dial device plugin: context deadline exceeded") from error
        try:
            answer = await self._call(
                "GetDevicePluginOptions", messages.Empty(), messages.DevicePluginOptions, OPTIONS_SECONDS
            )
        except DevicePluginFailed as error:
            raise DevicePluginFailed(f"failed to get device plugin options: {error}") from error
        self.options = PluginOptions(
            pre_start=answer.pre_start_required, preferred_allocation=answer.get_preferred_allocation_available
        )

    async def watch(self) -> AsyncIterator[tuple[OfferedDevice, ...]]:
        """Yields all devices after each change, until the plugin ends the stream or fails."""
        stream = self._connected().unary_stream(
            f"{_SERVICE}ListAndWatch",
            request_serializer=messages.Empty.SerializeToString,
            response_deserializer=messages.ListAndWatchResponse.FromString,
        )(messages.Empty())
        try:
            async for answer in stream:
                if answer is None:
                    raise DevicePluginFailed(_UNREADABLE)
                yield tuple(_device(one) for one in answer.devices)
        except AioRpcError as error:
            raise DevicePluginFailed(_rpc_error(error)) from error
        finally:
            stream.cancel()

    async def preferred(self, available: Collection[str], reused: Collection[str], amount: int) -> tuple[str, ...]:
        """The devices that the plugin prefers, `reused` ones among them; it may have no preference."""
        request = messages.ContainerPreferredAllocationRequest(
            available_deviceIDs=sorted(available), must_include_deviceIDs=sorted(reused), allocation_size=amount
        )
        answer = await self._call(
            "GetPreferredAllocation",
            messages.PreferredAllocationRequest(container_requests=[request]),
            messages.PreferredAllocationResponse,
        )
        return tuple(answer.container_responses[0].deviceIDs) if answer.container_responses else ()

    async def allocate(self, ids: Collection[str]) -> bytes:
        """Prepares devices. Returns the ContainerAllocateResponse. A plugin may take as long as it wants."""
        request = messages.ContainerAllocateRequest(devices_ids=sorted(ids))
        answer = await self._call(
            "Allocate", messages.AllocateRequest(container_requests=[request]), messages.AllocateResponse
        )
        if not answer.container_responses:
            raise DevicePluginFailed(f"no containers return in allocation response of {self.resource}")
        return answer.container_responses[0].SerializeToString(deterministic=True)

    async def pre_start(self, ids: Collection[str]) -> None:
        """Makes devices ready for a container that is about to start."""
        request = messages.PreStartContainerRequest(devices_ids=sorted(ids))
        await self._call("PreStartContainer", request, messages.PreStartContainerResponse, PRE_START_SECONDS)

    async def close(self) -> None:
        """Closes the connection and ends all calls on it."""
        if self._channel is not None:
            await self._channel.close()

    async def _call(self, verb: str, request: Message, answer: type[M], seconds: float | None = None) -> M:
        call: UnaryUnaryMultiCallable = self._connected().unary_unary(
            _SERVICE + verb,
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        try:
            with self._wait(verb):
                result: M | None = await call(request, timeout=seconds)
        except AioRpcError as error:
            raise DevicePluginFailed(_rpc_error(error)) from error
        if result is None:
            raise DevicePluginFailed(_UNREADABLE)
        return result

    def _connected(self) -> Channel:
        if self._channel is None:
            raise DevicePluginFailed(f"endpoint {self.resource} has not been connected")
        return self._channel

    def _wait(self, what: str) -> AbstractContextManager[None]:
        return self._recorder.wait(WaitKind.DEVICE, on=f"device plugin {self.resource}: {what}")


def _device(device: messages.Device) -> OfferedDevice:
    return OfferedDevice(
        id=device.ID, healthy=device.health == HEALTHY, numa=tuple(node.ID for node in device.topology.nodes)
    )


def _rpc_error(error: AioRpcError) -> str:
    """As Go's gRPC writes it: users know errors of plugins in this form."""
    code = error.code()
    name = "Canceled" if code is StatusCode.CANCELLED else code.name.title().replace("_", "")
    return f"rpc error: code = {name} desc = {error.details() or ''}"
