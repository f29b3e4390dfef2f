"""The process beside an agent that is being debugged: `python -m glasslet.debugging.keeper`, one JSON object on
standard input.

While a debugger has stopped all of the agent's threads, this process renews the node's lease with the node's own
credentials and says in the message of the Ready condition that the agent is being debugged. It writes `ok` when the
first renewal succeeded, else why not. At the end of the time it ends the debugger, so that the agent goes on. It ends
with the agent.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import nullcontext, suppress
from datetime import UTC, datetime

import msgspec

from glasslet.api.codec import to_plain
from glasslet.api.node import Node
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import SystemClock
from glasslet.host.processes import listeners
from glasslet.kubeapi import paths
from glasslet.kubeapi.client import HTTPAPIClient
from glasslet.kubeapi.errors import APIError
from glasslet.kubeapi.kubeconfig import KubeconfigError, load_kubeconfig
from glasslet.kubeapi.pacing import RequestLimiter
from glasslet.node.lease import NodeLease
from glasslet.record.recorder import Recorder
from glasslet.record.stations import Station, WaitKind
from glasslet.telemetry.metrics.api_client import APIClientMetrics
from glasslet.telemetry.metrics.registry import MetricRegistry

_TURN = 1.0
_MESSAGE_EVERY = 10.0
_REQUEST_SECONDS = 5.0


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """`kubeconfig` "": a node without a cluster; `agent`: its process; `port`: of the debugger."""

    agent: int
    port: int
    seconds: float
    node: str = ""
    kubeconfig: str = ""
    lease_seconds: int = 40


class Keeper:
    """Keeps one node while its agent stands still."""

    def __init__(self, orders: Orders, client: HTTPAPIClient) -> None:
        self._orders = orders
        self._client = client
        until = datetime.fromtimestamp(time.time() + orders.seconds, UTC)
        self._note = f"; the agent is being debugged until {until:%H:%M:%S} UTC at the latest"
        self.lease = NodeLease(
            client=client,
            node=orders.node,
            duration_seconds=orders.lease_seconds,
            clock=SystemClock(),
            owner=lambda: None,
        )

    async def begin(self) -> str:
        """The first renewal: "" or why it failed."""
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                await self.lease.renew()
        except TimeoutError:
            # The lease says why it was not renewed.
            pass
        if self.lease.renewed_at is not None:
            return ""
        return str(self.lease.trouble.error or "the API server does not answer")

    async def run(self) -> None:
        """Renews, and repeats the message, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lease.run(), name="lease")
            group.create_task(self._say(), name="message")

    async def _say(self) -> None:
        while True:
            try:
                await self._say_once(self._note)
            except APIError as error:
                sys.stderr.write(f"the node's condition was not written: {error}\n")
            await asyncio.sleep(_MESSAGE_EVERY)

    async def withdraw(self) -> None:
        """Takes the message back; the agent would only write it with its next change."""
        try:
            await self._say_once("")
        except (APIError, TimeoutError):
            return

    async def _say_once(self, note: str) -> None:
        node = await self._client.get(paths.node(self._orders.node), Node, timeout=_REQUEST_SECONDS)
        ready = next((one for one in node.status.conditions if one.type == "Ready"), None)
        message = ready.message.partition(self._note)[0] + note if ready is not None else ""
        if ready is None or message == ready.message:
            return
        # The whole condition: the merge is by type.
        condition = {**to_plain(ready), "message": message}
        body = {"status": {"conditions": [condition]}}
        await self._client.patch(paths.node_status(self._orders.node), body, Node, timeout=_REQUEST_SECONDS)


async def keep(orders: Orders) -> int:
    """Runs one session; the exit code."""
    client: HTTPAPIClient | None = None
    keeping: asyncio.Task[None] | None = None
    keeper: Keeper | None = None
    if orders.kubeconfig:
        try:
            client = _client(orders.kubeconfig)
        except (KubeconfigError, OSError) as error:
            return _report(f"the node's credentials cannot be used: {error}")
        keeper = Keeper(orders, client)
        if problem := await keeper.begin():
            await client.close()
            return _report(f"the node's lease cannot be renewed: {problem}")
        keeping = asyncio.create_task(keeper.run(), name="keeper")
    _report("ok")
    end = time.monotonic() + orders.seconds
    # The kernel has no event for the end of a parent that needs no parent's help.
    while time.monotonic() < end and os.getppid() == orders.agent:  # noqa: ASYNC110
        await asyncio.sleep(_TURN)
    end_debugger(orders.port, orders.agent)
    if keeping is not None and keeper is not None and client is not None:
        keeping.cancel()
        await asyncio.wait([keeping])
        await keeper.withdraw()
        await client.close()
    return 0


class _Unrecorded(Recorder):
    """This process keeps no record: the agent's has one writer."""

    def wait(
        self, kind: WaitKind, *, on: str, until: datetime | None = None, container: str | None = None
    ) -> nullcontext[None]:
        return nullcontext()

    def station(self, station: Station, *, container: str = "", detail: str = "") -> nullcontext[None]:
        return nullcontext()

    def passed(self, station: Station, *, container: str = "", detail: str = "") -> None:
        return

    def decided(self, what: str, *, container: str = "", **inputs: object) -> None:
        return

    def observed(self, subject: str, old: str, new: str, *, container: str = "") -> None:
        return

    def finding(self, text: str, *, pod: PodRef | None = None) -> None:
        return

    def withdrawn(self, text: str, *, pod: PodRef | None = None) -> None:
        return


def _client(kubeconfig: str) -> HTTPAPIClient:
    clock = SystemClock()
    return HTTPAPIClient(
        config=load_kubeconfig(kubeconfig),
        recorder=_Unrecorded(),
        clock=clock,
        metrics=APIClientMetrics(MetricRegistry()),
        limiter=RequestLimiter(qps=0.0, burst=1, clock=clock),
        user_agent="kubelet (glasslet, debugged)",
        timeout=_REQUEST_SECONDS,
    )


def end_debugger(port: int, agent: int) -> None:
    """Ends debugpy's adapter: the process that listens there on loopback, if it is one. The agent's threads go on."""
    for process in listeners(port):
        if process.pid not in (agent, os.getpid()) and any("debugpy" in word for word in process.command):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


def _report(text: str) -> int:
    sys.stdout.write(text.replace("\n", " ") + "\n")
    sys.stdout.flush()
    return 0 if text == "ok" else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(keep(msgspec.json.decode(sys.stdin.buffer.read(), type=Orders))))
