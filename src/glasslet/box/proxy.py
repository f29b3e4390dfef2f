"""Passes connections to services on to their pods.

    proxy = Proxy(); await proxy.show(routes); proxy.problems()

TCP connections go to the pods in turn; one that refuses is skipped. UDP packets of one client go to one pod for as long
as they keep coming. An open connection stays with its pod.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from glasslet.box.services import ServiceRoute

_CONNECT_SECONDS = 3.0
_UDP_IDLE_SECONDS = 60.0
_MOST_UDP_CLIENTS = 4096
_MOST_CONNECTIONS = 4096
_CHUNK = 256 * 1024
_IP_FREEBIND = 15
"""Allows an address that does not exist yet: that of the bridge comes with the first pod (ip(7))."""

Listening = tuple[str, int, str]
"""Address, port, protocol."""


class Proxy:
    """All listeners."""

    def __init__(self) -> None:
        self._tcp: dict[Listening, _TCPListener] = {}
        self._udp: dict[Listening, _UDPListener] = {}
        self._problems: dict[Listening, str] = {}

    async def show(self, routes: Sequence[ServiceRoute]) -> None:
        """Listens where the routes begin, and nowhere else."""
        wanted = {(route.address, route.port, route.protocol): route for route in routes}
        for place in [*self._tcp, *self._udp]:
            if place not in wanted:
                await self._close(place)
        self._problems = {place: text for place, text in self._problems.items() if place in wanted}
        for place, route in wanted.items():
            known = self._tcp.get(place) or self._udp.get(place)
            if known is not None:
                known.targets = route.targets
            else:
                await self._open(place, route)

    def problems(self) -> list[str]:
        """Places that are not listened on, with the reason."""
        return [f"{address}:{port}/{protocol}: {text}" for (address, port, protocol), text in self._problems.items()]

    async def close(self) -> None:
        """Ends all."""
        await self.show(())

    async def _open(self, place: Listening, route: ServiceRoute) -> None:
        address, port, protocol = place
        try:
            if protocol == "TCP":
                listener = _TCPListener(route.targets)
                await listener.open(address, port)
                self._tcp[place] = listener
            elif protocol == "UDP":
                packets = _UDPListener(route.targets)
                await packets.open(address, port)
                self._udp[place] = packets
        except OSError as error:
            self._problems[place] = error.strerror or str(error)
        else:
            self._problems.pop(place, None)

    async def _close(self, place: Listening) -> None:
        listener = self._tcp.pop(place, None) or self._udp.pop(place, None)
        if listener is not None:
            listener.close()


class _TCPListener:
    def __init__(self, targets: tuple[tuple[str, int], ...]) -> None:
        self.targets = targets
        self._turn = 0
        self._connections = 0
        self._server: asyncio.Server | None = None

    async def open(self, address: str, port: int) -> None:
        sock = bound_socket(socket.SOCK_STREAM, address, port)
        self._server = await asyncio.start_server(self._serve, sock=sock, limit=_CHUNK)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._connections >= _MOST_CONNECTIONS:
            _reset(writer)
            return
        self._connections += 1
        try:
            found = await self._connect()
            if found is None:
                _reset(writer)
                return
            try:
                await asyncio.gather(_pump(reader, found[1]), _pump(found[0], writer))
            finally:
                found[1].close()
        finally:
            writer.close()
            self._connections -= 1

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        targets = self.targets
        self._turn += 1
        for step in range(len(targets)):
            host, port = targets[(self._turn + step) % len(targets)]
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await asyncio.open_connection(host, port, limit=_CHUNK)
        return None


def _reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection as if nothing listened: the client must not take the end for an empty answer."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copies until the end, then passes the end on: the other direction may still have something to say."""
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()


class _UDPListener(asyncio.DatagramProtocol):
    def __init__(self, targets: tuple[tuple[str, int], ...]) -> None:
        self.targets = targets
        self._turn = 0
        self._clients: dict[tuple[str, int], _UDPClient] = {}
        self._transport: asyncio.DatagramTransport | None = None

    async def open(self, address: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        sock = bound_socket(socket.SOCK_DGRAM, address, port)
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=sock)

    def close(self) -> None:
        for client in list(self._clients.values()):
            client.close()
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        client = self._clients.get(addr)
        if client is None:
            if not self.targets or len(self._clients) >= _MOST_UDP_CLIENTS:
                return
            self._turn += 1
            client = self._clients[addr] = _UDPClient(self, addr, self.targets[self._turn % len(self.targets)])
        client.send(data)

    def back(self, data: bytes, addr: tuple[str, int]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(data, addr)

    def forget(self, addr: tuple[str, int]) -> None:
        self._clients.pop(addr, None)


class _UDPClient(asyncio.DatagramProtocol):
    """The way of one client's packets to one pod and back."""

    def __init__(self, listener: _UDPListener, addr: tuple[str, int], target: tuple[str, int]) -> None:
        self._listener, self._addr = listener, addr
        self._waiting: list[bytes] = []
        self._transport: asyncio.DatagramTransport | None = None
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_later(_UDP_IDLE_SECONDS, self._look)
        self._task = self._loop.create_task(self._open(target))

    async def _open(self, target: tuple[str, int]) -> None:
        try:
            self._transport, _ = await self._loop.create_datagram_endpoint(lambda: self, remote_addr=target)
        except OSError:
            self.close()
            return
        for data in self._waiting:
            self._transport.sendto(data)
        self._waiting.clear()

    def send(self, data: bytes) -> None:
        self._last = self._loop.time()
        if self._transport is not None:
            self._transport.sendto(data)
        elif len(self._waiting) < 16:
            self._waiting.append(data)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._last = self._loop.time()
        self._listener.back(data, self._addr)

    def error_received(self, exc: Exception) -> None:
        # The pod refuses packets: the next one of this client may go to another.
        self.close()

    def _look(self) -> None:
        idle = self._loop.time() - self._last
        if idle >= _UDP_IDLE_SECONDS:
            self.close()
        else:
            self._timer = self._loop.call_later(_UDP_IDLE_SECONDS - idle, self._look)

    def close(self) -> None:
        self._timer.cancel()
        self._listener.forget(self._addr)
        if self._transport is not None:
            self._transport.close()


def bound_socket(kind: socket.SocketKind, address: str, port: int) -> socket.socket:
    """A socket at an address that may come later. Raises OSError if another process has the port."""
    made = socket.socket(socket.AF_INET, kind)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
        made.bind((address, port))
        if kind is socket.SOCK_STREAM:
            made.listen(512)
    except OSError:
        made.close()
        raise
    return made
