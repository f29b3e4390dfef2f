"""An agent for the command line tool: real routes, a real record, and pods that a test chooses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from glasslet.answers.agent import AgentAnswer, ManifestProblem
from glasslet.answers.pods import Hold
from glasslet.answers.requests import ExecRequest, LogRequest
from glasslet.answers.states import WorkerState
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.pod_status import PodStatus
from glasslet.glass.host_look import no_look
from glasslet.glass.page.source import PageSource
from glasslet.glass.routes import socket_routes
from glasslet.glass.source import GlassSource
from glasslet.glass.stuck import Stuck
from glasslet.glass.verdicts.node_rules import NodeSituation
from glasslet.glass.verdicts.runtime_causes import RuntimeState
from glasslet.probes.results import ProbeResult
from glasslet.record.keeper import RecordKeeper
from glasslet.record.store import Record
from glasslet.runtime.errors import RuntimeRejected
from glasslet.runtime.images.progress_watch import PullView
from glasslet.runtime.logs.container_logs import LogsNotAvailable


class FakeSeenPod(Struct, frozen=True, kw_only=True):
    """A pod with its worker's view."""

    pod: Pod
    status: PodStatus = PodStatus()
    lifecycle: WorkerState = WorkerState.SYNCING
    since: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    source: str = "file"


class FakeGlassSource:
    """The functions of a source. Containers without a log refuse; without a streaming URL, exec is refused."""

    def __init__(self) -> None:
        self.seen: list[FakeSeenPod] = []
        self.logs: dict[str, list[bytes]] = {}
        self.timestamped = False
        """Each chunk of a log is one line that begins with its time."""
        self.previous_logs: dict[str, list[bytes]] = {}
        self.requests: list[LogRequest] = []
        self.probe_results: tuple[ProbeResult, ...] = ()
        self.streaming_url = ""
        self.broken_manifests: tuple[ManifestProblem, ...] = ()
        self.hanging: dict[str, Stuck] = {}
        self.pulls: dict[PodUID, dict[str, PullView]] = {}
        self.holds: dict[str, Hold] = {}
        now = datetime.now(UTC)
        self.situation = NodeSituation(name="node-a", now=now, standalone=True, runtime=RuntimeState(now=now))
        self.break_off_after: int | None = None

    def functions(self) -> GlassSource:
        return GlassSource(
            pods=self.pods,
            agent=self.agent,
            node=self.node,
            probes=self.probes,
            stuck=self.stuck,
            pulls=lambda uid: self.pulls.get(uid, {}),
            hold_of=lambda uid: self.holds.get(uid),
            look=no_look,
            read_logs=self.read_logs,
            exec_url=self.exec_url,
        )

    def with_runtime(self, **fields: Any) -> NodeSituation:
        """The situation with a runtime of which this is known."""
        return replace(self.situation, runtime=replace(self.situation.runtime, **fields))

    def pods(self) -> list[FakeSeenPod]:
        return self.seen

    def agent(self) -> AgentAnswer:
        return AgentAnswer(
            version="0.0.1",
            pid=1,
            node=self.situation.name,
            ready=True,
            desired_pods=len(self.seen),
            broken_manifests=self.broken_manifests,
        )

    def node(self) -> NodeSituation:
        return self.situation

    def probes(self, pod: PodRef) -> tuple[ProbeResult, ...]:
        return self.probe_results

    def stuck(self, uid: PodUID) -> Stuck | None:
        return self.hanging.get(uid)

    async def read_logs(self, pod: Pod, request: LogRequest) -> AsyncIterator[bytes]:
        self.requests.append(request)
        logs = self.previous_logs if request.previous else self.logs
        if request.container not in logs:
            raise LogsNotAvailable(f'container "{request.container}" in pod "{pod.metadata.name}" is waiting to start')
        chunks = logs[request.container]
        for number, chunk in enumerate(chunks[-1:] if request.tail == 1 and self.timestamped else chunks):
            if number == self.break_off_after:
                raise OSError("the disk failed")
            yield chunk.split(b" ", 1)[1] if self.timestamped and not request.timestamps else chunk

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
async def fake_agent(root_dir: Path, *, page: PageSource | None = None) -> AsyncIterator[FakeAgent]:
    """An agent at `<root_dir>/glasslet.sock`."""
    record = Record()
    keeper = RecordKeeper(record=record, folder=root_dir / "glasslet" / "records")
    source = FakeGlassSource()
    app = web.Application()
    app.add_routes(socket_routes(source.functions(), keeper, page or PageSource()))
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
