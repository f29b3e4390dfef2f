"""Names of services for pods: a small DNS server that knows them and asks the machine's own servers for all others.

    server = NameServer(); await server.listen("10.201.7.1"); server.show(names, aliases)

UDP and TCP (RFC 1035, RFC 7766). A answers for known names; other types of known names have no records.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import dns.asyncquery
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.resolver
import dns.rrset

from glasslet.box.proxy import bound_socket
from glasslet.box.services import DOMAIN

PORT = 53
TTL = 5
"""Seconds that clients may keep an answer: pods come and go."""
_FORWARD_SECONDS = 4.0
_MOST_FORWARDED = 256

logger = logging.getLogger(__name__)


class NameServer:
    """Answers queries. What it shows may change at any time. `resolv_conf`: the machine's servers."""

    def __init__(self, resolv_conf: Path = Path("/etc/resolv.conf")) -> None:
        self._resolv_conf = resolv_conf
        self._names: Mapping[str, tuple[str, ...]] = {}
        self._aliases: Mapping[str, str] = {}
        self._forwarded = asyncio.Semaphore(_MOST_FORWARDED)
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.DatagramTransport | None = None
        self._server: asyncio.Server | None = None
        self._turn = 0

    def show(self, names: Mapping[str, tuple[str, ...]], aliases: Mapping[str, str]) -> None:
        """Names from now on: addresses and other names by full name, without the last dot."""
        self._names = {name.lower(): addresses for name, addresses in names.items()}
        self._aliases = {name.lower(): other for name, other in aliases.items()}

    async def listen(self, address: str, port: int = PORT) -> None:
        """Serves. Raises OSError if the address has another server."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self), sock=bound_socket(socket.SOCK_DGRAM, address, port)
        )
        self._server = await asyncio.start_server(self._stream, sock=bound_socket(socket.SOCK_STREAM, address, port))

    async def close(self) -> None:
        """Ends."""
        if self._transport is not None:
            self._transport.close()
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()

    def datagram(self, data: bytes, client: tuple[str, int], transport: asyncio.DatagramTransport) -> None:
        """Answers one datagram in a task of its own."""
        if len(self._tasks) < 4 * _MOST_FORWARDED:
            task = asyncio.create_task(self._answer_datagram(data, client, transport))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def answer(self, data: bytes) -> bytes | None:
        """The answer to a query; None for what is no query."""
        try:
            query = dns.message.from_wire(data)
        except (dns.exception.DNSException, ValueError):
            return None
        if query.flags & dns.flags.QR or query.opcode() != dns.opcode.QUERY or len(query.question) != 1:
            return None
        name = query.question[0].name.to_text(omit_final_dot=True).lower()
        if name in self._names or name in self._aliases or name.endswith(f".{DOMAIN}") or name == DOMAIN:
            return (await self._own(query, name)).to_wire()
        return (await self._forward(query)).to_wire(max_size=65535)

    async def _own(self, query: dns.message.Message, name: str) -> dns.message.Message:
        answer = dns.message.make_response(query, recursion_available=True)
        answer.flags |= dns.flags.AA
        asked = query.question[0]
        if name in self._aliases:
            other = dns.name.from_text(self._aliases[name])
            answer.answer.append(dns.rrset.from_text(asked.name, TTL, "IN", "CNAME", other.to_text()))
            followed = await self._forward(dns.message.make_query(other, asked.rdtype))
            answer.answer += followed.answer
        elif name not in self._names:
            # A name on the way to a longer one exists without records (RFC 8020).
            longer = any(known.endswith(f".{name}") for known in (*self._names, *self._aliases))
            answer.set_rcode(dns.rcode.NOERROR if longer or name == DOMAIN else dns.rcode.NXDOMAIN)
        elif asked.rdtype == dns.rdatatype.A and self._names[name]:
            addresses = self._names[name]
            self._turn += 1
            start = self._turn % len(addresses)
            turned = addresses[start:] + addresses[:start]
            answer.answer.append(dns.rrset.from_text(asked.name, TTL, "IN", "A", *turned))
        return answer

    async def _forward(self, query: dns.message.Message) -> dns.message.Message:
        async with self._forwarded:
            for server in self._upstream():
                with suppress(dns.exception.DNSException, OSError):
                    answer, _ = await dns.asyncquery.udp_with_fallback(query, server, timeout=_FORWARD_SECONDS)
                    return answer
        failed = dns.message.make_response(query, recursion_available=True)
        failed.set_rcode(dns.rcode.SERVFAIL)
        return failed

    def _upstream(self) -> list[str]:
        """The machine's servers, as its file has them now."""
        try:
            lines = self._resolv_conf.read_text(errors="replace").splitlines()
        except OSError:
            return []
        words = (line.split() for line in lines)
        return [parts[1] for parts in words if len(parts) > 1 and parts[0] == "nameserver"][:3]

    async def _answer_datagram(
        self, data: bytes, client: tuple[str, int], transport: asyncio.DatagramTransport
    ) -> None:
        answer = await self.answer(data)
        if answer is None:
            return
        if len(answer) > 1232:
            # Too long for a datagram: the client comes again over TCP.
            short = dns.message.make_response(dns.message.from_wire(data))
            short.flags |= dns.flags.TC
            answer = short.to_wire()
        transport.sendto(answer, client)

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(30.0):
                while True:
                    length = int.from_bytes(await reader.readexactly(2))
                    answer = await self.answer(await reader.readexactly(length))
                    if answer is None:
                        break
                    writer.write(len(answer).to_bytes(2) + answer)
                    await writer.drain()
        except (asyncio.IncompleteReadError, OSError, TimeoutError):
            pass
        finally:
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: NameServer) -> None:
        self._names = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The loop's transports for datagrams are not all of that class.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._names.datagram(data, addr, self._transport)
