"""The connection to a runtime: dial, handshake, both services. The channel reconnects when the runtime restarts."""

from __future__ import annotations

import asyncio

from grpc.aio import Channel, insecure_channel
from msgspec import Struct

from glasslet.record.recorder import Recorder
from glasslet.record.way import NO_STOPS, PodHolder
from glasslet.runtime.cri.calls import Calls, RuntimeMetrics
from glasslet.runtime.cri.containerd_content import ContainerdContent
from glasslet.runtime.cri.containerd_events import ContainerdEvents, ExitSettled
from glasslet.runtime.cri.endpoint import socket_path
from glasslet.runtime.cri.handshake import (
    explain_failure,
    explain_no_service,
    explain_v1alpha2,
    knock,
    serves_v1alpha2,
)
from glasslet.runtime.cri.hints import RuntimeHints
from glasslet.runtime.cri.image_service import CRIImages
from glasslet.runtime.cri.linger import Linger
from glasslet.runtime.cri.runtime_service import CRIRuntime, SandboxMetrics, ask_version
from glasslet.runtime.cri.verbs import Timeouts
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.model import RuntimeInfo

FIRST_ANSWER_WITHIN = 15.0
"""Seconds for the first questions: a runtime that has just started reads all its containers first."""
MAX_MESSAGE = 16 * 1024 * 1024
CHANNEL_OPTIONS = (
    ("grpc.default_authority", "localhost"),  # the path as authority, gRPC's default, is refused by Go servers
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 3_000),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # in this library: the least time a connect attempt is given
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.enable_retries", 0),  # no verb may run twice unasked
    ("grpc.use_local_subchannel_pool", 1),  # nor share the back-off of another connection to the same socket
)


class CRIConnection(Struct, frozen=True):
    """Both services of one runtime. `info` is what it said at the handshake."""

    runtime: CRIRuntime
    images: CRIImages
    content: ContainerdContent
    info: RuntimeInfo
    channels: tuple[Channel, ...]
    linger: Linger
    """Runs beside the workers that make things through this connection."""

    async def close(self) -> None:
        """Ends all calls that are under way."""
        for channel in self.channels:
            await channel.close()
        # The library reports the ends of cancelled calls a moment later and must find this loop still open.
        await asyncio.sleep(_LAST_WORDS)


_LAST_WORDS = 0.02


async def connect(
    endpoint: str,
    image_endpoint: str = "",
    *,
    recorder: Recorder,
    metrics: RuntimeMetrics,
    timeouts: Timeouts | None = None,
    sandbox_metrics: SandboxMetrics | None = None,
    stops: PodHolder = NO_STOPS,
) -> CRIConnection:
    """Dials the runtime and, if it is given and another, the image service, and makes a first call to both.

    Raises EndpointError for what cannot be dialled and HandshakeFailed for what does not answer as a CRI v1 does; the
    caller decides whether to try again (`HandshakeFailed.temporary`).
    """
    timeouts = timeouts or Timeouts()
    path = socket_path(endpoint)
    image_path = socket_path(image_endpoint, setting="imageServiceEndpoint") if image_endpoint else path
    channels: list[Channel] = []
    try:
        channel = await _dial(path, channels)
        image_channel = channel if image_path == path else await _dial(image_path, channels)
        calls = Calls(channel=channel, service="RuntimeService", recorder=recorder, metrics=metrics, stops=stops)
        image_calls = Calls(
            channel=image_channel, service="ImageService", recorder=recorder, metrics=metrics, stops=stops
        )
        otherwise = ContainerdEvents(channel=channel, settled=ExitSettled(calls=calls))
        hints = RuntimeHints(calls=calls, otherwise=otherwise)
        runtime = CRIRuntime(
            calls=calls, timeouts=timeouts, hint_source=hints, recorder=recorder, metrics=sandbox_metrics
        )
        images = CRIImages(calls=image_calls, timeouts=timeouts)
        content = ContainerdContent(channel=image_channel)
        info = await _first_version(path, channel, calls)
        await _first_image_question(image_path, image_calls)
    except BaseException:
        for opened in channels:
            await opened.close()
        raise
    return CRIConnection(runtime, images, content, info, tuple(channels), Linger(path=path, channel=channel))


async def _dial(path: str, channels: list[Channel]) -> Channel:
    await knock(path)
    channel = insecure_channel(f"unix:{path}", options=CHANNEL_OPTIONS)
    channels.append(channel)
    return channel


async def _first_version(path: str, channel: Channel, calls: Calls) -> RuntimeInfo:
    try:
        return await ask_version(calls, timeout=FIRST_ANSWER_WITHIN)
    except RuntimeCallError as error:
        if error.code != "UNIMPLEMENTED":
            raise explain_failure(path, error) from error
        older = await serves_v1alpha2(channel)
        raise (explain_v1alpha2(path) if older else explain_no_service(path)) from error


async def _first_image_question(path: str, calls: Calls) -> None:
    images = CRIImages(calls=calls, timeouts=Timeouts(request=FIRST_ANSWER_WITHIN))
    try:
        await images.image_filesystems()
    except RuntimeCallError as error:
        if error.code == "UNIMPLEMENTED":
            raise explain_no_service(path) from error
        raise explain_failure(path, error) from error
