"""The calls on one registration socket: GetInfo, and the result of the registration."""

from __future__ import annotations

import asyncio

from google.protobuf.message import Message
from grpc.aio import AioRpcError, Channel, insecure_channel
from msgspec import Struct

from glasslet.plugin_registry._generated import pluginregistration_pb2 as messages

DIAL_SECONDS = 10.0
INFO_SECONDS = 1.0
NOTIFY_SECONDS = 5.0
_SERVICE = "/pluginregistration.Registration/"
_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


class PluginInfo(Struct, frozen=True, kw_only=True):
    """A plugin's description of itself. `endpoint`: the socket of its service."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...] = ()


class NoAnswer(Exception):
    """The socket does not answer as a plugin; the text says how."""


class RegistrationSocket:
    """One connection: `dial`, `info`, `notify`, `close`. All raise NoAnswer."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._channel: Channel = insecure_channel(f"unix:{path}", options=_OPTIONS)

    async def dial(self) -> None:
        """Connects."""
        try:
            async with asyncio.timeout(DIAL_SECONDS):
                await self._channel.channel_ready()
        except TimeoutError as error:
            raise NoAnswer(f"dial failed at socket {self._path}, err: context deadline exceeded") from error

    async def info(self) -> PluginInfo:
        """The plugin's description. Without an endpoint of its own, the registration socket is its endpoint."""
        try:
            answer = await self._channel.unary_unary(
                f"{_SERVICE}GetInfo",
                request_serializer=messages.InfoRequest.SerializeToString,
                response_deserializer=messages.PluginInfo.FromString,
            )(messages.InfoRequest(), timeout=INFO_SECONDS)
        except AioRpcError as error:
            what = f"failed to get plugin info using RPC GetInfo at socket {self._path}"
            raise NoAnswer(f"{what}, err: {error.details()}") from error
        if answer is None:
            # The gRPC library hands on None for what it cannot decode.
            raise NoAnswer(f"failed to get plugin info at socket {self._path}: its answer cannot be decoded")
        return PluginInfo(
            type=answer.type,
            name=answer.name,
            endpoint=answer.endpoint or self._path,
            versions=tuple(answer.supported_versions),
        )

    async def notify(self, problem: str) -> None:
        """Reports the result to the plugin; "": it is registered."""
        status: Message = messages.RegistrationStatus(plugin_registered=not problem, error=problem)
        try:
            await self._channel.unary_unary(
                f"{_SERVICE}NotifyRegistrationStatus",
                request_serializer=messages.RegistrationStatus.SerializeToString,
                response_deserializer=messages.RegistrationStatusResponse.FromString,
            )(status, timeout=NOTIFY_SECONDS)
        except AioRpcError as error:
            raise NoAnswer(
                f"failed to send registration status at socket {self._path}, err: {error.details()}"
            ) from error

    async def close(self) -> None:
        """Closes the connection."""
        await self._channel.close()
