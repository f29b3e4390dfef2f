"""An agent for the command line tool: real routes, a real record, and pods as the test wants them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web
from msgspec import Struct

from glasslet.answers.agent import AgentAnswer
from glasslet.answers.pods import ProbeRow
from glasslet.answers.requests import ExecRequest, LogRequest
from glasslet.api.pod import Pod
from glasslet.api.pod_status import PodStatus
from glasslet.glass.handlers import LogsRefused, glass_routes
from glasslet.glass.stuck import Stuck
from glasslet.glass.verdicts.whole_node import NodeSituation
from glasslet.record.keeper import RecordKeeper
from glasslet.record.store import Record
from glasslet.runtime.errors import RuntimeRejected


class FakeSeenPod(Struct, frozen=True, kw_only=True):
    """A pod with its worker's view."""

    pod: Pod
    status: PodStatus = PodStatus()
    lifecycle: str = "syncing"
    since: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    source: str = "file"


class FakeGlassSource:
    """What the agent would supply. Containers without a log refuse; without a streaming URL, exec is refused."""

    def __init__(self) -> None:
        self.seen: list[FakeSeenPod] = []
        self.logs: dict[str, list[bytes]] = {}
        self.previous_logs: dict[str, list[bytes]] = {}
        self.requests: list[LogRequest] = []
        self.probe_rows: tuple[ProbeRow, ...] = ()
        self.streaming_url = ""
        self.hanging: dict[str, Stuck] = {}
        self.situation = NodeSituation(name="node-a", now=datetime.now(UTC), standalone=True)
        self.break_off_after: int | None = None

    def pods(self) -> Sequence[FakeSeenPod]:
        return self.seen

    def agent(self) -> AgentAnswer:
        return AgentAnswer(version="0.0.1", pid=1, ready=True, desired_pods=len(self.seen))

    def node(self) -> NodeSituation:
        return self.situation

    def probes(self, pod: Pod) -> tuple[ProbeRow, ...]:
        return self.probe_rows

    def stuck(self, pod: Pod) -> Stuck | None:
        return self.hanging.get(pod.metadata.name)

    async def read_logs(self, pod: Pod, request: LogRequest) -> AsyncIterator[bytes]:
        self.requests.append(request)
        logs = self.previous_logs if request.previous else self.logs
        if request.container not in logs:
            raise LogsRefused(f'container "{request.container}" in pod "{pod.metadata.name}" is waiting to start')
        for number, chunk in enumerate(logs[request.container]):
            if number == self.break_off_after:
                raise OSError("the disk has gone")
            yield chunk

    async def exec_url(self, pod: Pod, request: ExecRequest) -> str:
        if not self.streaming_url:
            raise RuntimeRejected("Exec", "container is not running")
        return self.streaming_url


class FakeAgent(Struct):
    """A running agent."""

    root_dir: Path
    source: FakeGlassSource
    record: Record
    keeper: RecordKeeper


@asynccontextmanager
async def fake_agent(root_dir: Path) -> AsyncIterator[FakeAgent]:
    """An agent at `<root_dir>/glasslet.sock`."""
    record = Record()
    keeper = RecordKeeper(record=record, folder=root_dir / "glasslet" / "records")
    source = FakeGlassSource()
    app = web.Application()
    app.add_routes(glass_routes(source=source, keeper=keeper))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    keeping = asyncio.create_task(keeper.run())
    await keeper.flush()
    await runner.setup()
    await web.UnixSite(runner, str(root_dir / "glasslet.sock")).start()
    try:
        yield FakeAgent(root_dir, source, record, keeper)
    finally:
        await runner.cleanup()
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
