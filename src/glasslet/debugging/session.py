"""Opens the agent for a debugger (debugpy), on request and for a while."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import sys
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from glasslet.answers.debugger import DebuggerAnswer, DebuggerRequest
from glasslet.answers.wire import ErrorAnswer
from glasslet.concurrency.clock import Clock
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.debugging.keeper import Orders
from glasslet.glass.requests import RequestRefused

LONGEST = 1800.0
"""Seconds of one session."""
_KEEPER_SECONDS = 20.0


class DebuggedNode(Struct, frozen=True, kw_only=True):
    """The node whose lease is kept; `kubeconfig` "": without a cluster."""

    name: str
    kubeconfig: str
    lease_seconds: int


class Debugger:
    """One session per life of the agent: debugpy cannot be taken out of a process again."""

    def __init__(self, *, node: DebuggedNode, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._used = False
        self._threads = OwnThreads("debugger")
        self._keeper: asyncio.subprocess.Process | None = None

    async def open(self, request: DebuggerRequest) -> DebuggerAnswer:
        """Listens. Raises RequestRefused."""
        host, port = _address(request.listen)
        if not 0 < request.seconds <= LONGEST:
            raise _refused("seconds", f"{request.seconds:g}", f"more than 0, at most {LONGEST:g}", "not a time")
        if self._used or sys.gettrace() is not None:
            error = "a debugger or tracer was attached to this agent already; restart the agent for another session"
            raise RequestRefused(409, ErrorAnswer(error=error))
        orders = self._orders(port, request.seconds)
        self._keeper = await _started(orders)
        try:
            await self._threads.run(_listen, host, port)
        except (ImportError, OSError, RuntimeError) as error:
            self._keeper.terminate()
            hint = "; pip install 'glasslet[debugger]'" if isinstance(error, ImportError) else ""
            raise RequestRefused(409, ErrorAnswer(error=f"debugpy cannot listen: {error}{hint}")) from error
        self._used = True
        until: datetime = self._clock.now() + timedelta(seconds=request.seconds)
        lease = f"kube-node-lease/{orders.node}" if orders.kubeconfig else ""
        return DebuggerAnswer(listen=f"{host}:{port}", until=until, lease=lease, pid=os.getpid())

    def _orders(self, port: int, seconds: float) -> Orders:
        return Orders(
            agent=os.getpid(),
            port=port,
            seconds=seconds,
            node=self._node.name,
            kubeconfig=os.path.abspath(self._node.kubeconfig) if self._node.kubeconfig else "",
            lease_seconds=self._node.lease_seconds,
        )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    with suppress(ValueError):
        if ipaddress.IPv4Address(host).is_loopback and port.isdecimal() and 0 < int(port[:6]) < 65536:
            return host, int(port)
    raise _refused("listen", text[:100], "an IPv4 address of loopback and a port: 127.0.0.1:5678", "not an address")


def _refused(field: str, value: str, allowed: str, error: str) -> RequestRefused:
    return RequestRefused(400, ErrorAnswer(error=error, field=field, value=value, allowed=allowed))


async def _started(orders: Orders) -> asyncio.subprocess.Process:
    """The keeper, once it has renewed the lease. Raises RequestRefused."""
    pipe = asyncio.subprocess.PIPE
    keeper = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "glasslet.debugging.keeper"), stdin=pipe, stdout=pipe
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    keeper.stdin.write(msgspec.json.encode(orders))
    keeper.stdin.close()
    try:
        async with asyncio.timeout(_KEEPER_SECONDS):
            line = (await keeper.stdout.readline()).decode(errors="replace").strip()
    except TimeoutError:
        line = "the process that keeps the node's lease did not start"
    if line != "ok":
        with suppress(ProcessLookupError):
            keeper.kill()
        raise RequestRefused(409, ErrorAnswer(error=line or "the process that keeps the node's lease ended"))
    return keeper


def _listen(host: str, port: int) -> None:
    import debugpy

    # The agent's own children are no part of the session.
    debugpy.configure(subProcess=False, python=sys.executable)
    debugpy.listen((host, port))
