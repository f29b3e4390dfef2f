"""Streams over WebSocket: protocols v5 and v4 of `channel.k8s.io`. Only v5 can end standard input."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from glasslet.cli.failure import Failure
from glasslet.cli.streams.protocol import Channel

if TYPE_CHECKING:
    from aiohttp import ClientSession, ClientWebSocketResponse

_V5, _V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
_CHANNELS = frozenset(int(channel) for channel in Channel)
_CLOSE = 255
_ALIVE_SECONDS = 30.0


class WebSocketStreams:
    """One session. Made by `open_websocket`."""

    def __init__(self, session: ClientSession, socket: ClientWebSocketResponse) -> None:
        self._session = session
        self._socket = socket

    async def received(self) -> AsyncIterator[tuple[Channel, bytes]]:
        """See `Streams.received`."""
        from aiohttp import WSMsgType

        async for message in self._socket:
            if message.type is WSMsgType.BINARY and message.data and message.data[0] in _CHANNELS:
                yield Channel(message.data[0]), message.data[1:]

    async def send(self, channel: Channel, data: bytes) -> None:
        """See `Streams.send`."""
        await self._socket.send_bytes(bytes((channel,)) + data)

    async def end_input(self) -> bool:
        """See `Streams.end_input`."""
        if self._socket.protocol != _V5:
            return False
        await self._socket.send_bytes(bytes((_CLOSE, Channel.STDIN)))
        return True

    async def close(self) -> None:
        """See `Streams.close`."""
        await self._socket.close()
        await self._session.close()


async def open_websocket(url: str) -> WebSocketStreams:
    """Connects. Raises Failure."""
    import aiohttp

    session = aiohttp.ClientSession()
    try:
        socket = await session.ws_connect(url, protocols=(_V5, _V4), max_msg_size=0, heartbeat=_ALIVE_SECONDS)
    except (aiohttp.ClientError, OSError) as error:
        await session.close()
        raise Failure(f"the runtime's streaming server does not answer: {error}") from error
    if socket.protocol is None:
        await socket.close()
        await session.close()
        raise Failure(f"the runtime speaks neither {_V5} nor {_V4}")
    return WebSocketStreams(session, socket)
