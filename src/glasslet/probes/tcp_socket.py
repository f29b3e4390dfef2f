"""tcpSocket probes: a connection can be opened."""

from __future__ import annotations

import asyncio

from glasslet.probes.answer import Answer, join_host_port
from glasslet.probes.connection import ConnectionFailed, Resolve, Stopwatch, close, connect
from glasslet.probes.results import Verdict


async def probe_tcp(host: str, port: int, *, timeout: float, resolve: Resolve) -> Answer:
    """One connection within `timeout` seconds, closed at once."""
    watch = Stopwatch()
    try:
        async with asyncio.timeout(timeout):
            sock = await connect(host, port, resolve=resolve, watch=watch)
    except TimeoutError:
        output = f"dial tcp {join_host_port(host, port)}: i/o timeout"
        return Answer(verdict=Verdict.FAILURE, output=output, brief=output, timed_out=True, parts=watch.parts)
    except ConnectionFailed as error:
        return Answer(verdict=Verdict.FAILURE, output=str(error), brief=str(error), parts=watch.parts)
    close(sock)
    return Answer(verdict=Verdict.SUCCESS, brief="connected", parts=watch.parts)
