"""Answers the questions under /glass: one handler per question. Answers have the shapes of `glasslet.answers`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import datetime

from aiohttp import web
from msgspec.structs import replace

from glasslet.answers.agent import AgentAnswer, TaskRow, TasksAnswer, WaitsAnswer
from glasslet.answers.pods import PodDescription, PodRow, PodsAnswer
from glasslet.answers.requests import ExecAnswer, LogRequest
from glasslet.answers.states import WorkerState
from glasslet.answers.trace import RecordRow, RecordsAnswer, TraceAnswer
from glasslet.answers.why import Evidence, TroublesAnswer, VerdictAnswer
from glasslet.answers.wire import ErrorAnswer, WireMessage, encode
from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.concurrency.own_threads import OwnThreads
from glasslet.concurrency.task_frames import awaited_frames, innermost
from glasslet.exchange.finality import has_ended
from glasslet.glass.node_pressure import pressure_evidence
from glasslet.glass.pod_rows import pod_description, pod_row, probe_row, wait_row
from glasslet.glass.requests import (
    RequestRefused,
    chosen_container,
    exec_request,
    log_request,
    refuse_foreign_page,
    unknown_pod,
)
from glasslet.glass.source import GlassSource, SeenPod
from glasslet.glass.trace.waterfall import waterfall
from glasslet.glass.verdicts.ending import removed
from glasslet.glass.verdicts.node_rules import node_verdict
from glasslet.glass.verdicts.pod_rules import pod_verdict, quotes_last_words, short_verdict
from glasslet.glass.verdicts.runtime_causes import RuntimeState, network_cause, runtime_cause, runtime_since
from glasslet.glass.verdicts.situation import Situation
from glasslet.glass.verdicts.troubles import NodeTroubles
from glasslet.record.events import Event
from glasslet.record.history import PodRecord
from glasslet.record.keeper import RecordKeeper
from glasslet.record.stations import WaitKind
from glasslet.runtime.errors import RuntimeCallError
from glasslet.runtime.logs.container_logs import LogsNotAvailable

_LAST_WORDS_SECONDS = 1.0
_OUTLOOK_SECONDS = 2.0
_LAST_WORDS_LENGTH = 300
_LOG_HEADERS = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class GlassHandlers:
    """`reads_logs`: verdicts may quote the last line of a container's log."""

    def __init__(self, *, source: GlassSource, keeper: RecordKeeper, reads_logs: bool) -> None:
        self._source = source
        self._keeper = keeper
        self._record = keeper.record
        self._reads_logs = reads_logs
        self._threads = OwnThreads("answers under /glass", limit=2)
        """The record of a pod that failed for days has tens of thousands of events: no work for the event loop."""

    async def pods(self, _request: web.Request) -> web.StreamResponse:
        """`ps`."""
        agent = self._source.agent()
        standings, earlier = self._record.standings(), await self.earlier()
        rows = []
        for seen in self._source.pods():
            rows.append(self.row(seen, standings, agent, earlier))
            if not is_ready(seen):
                # A millisecond or two for each pod: other work has its turn in between.
                await asyncio.sleep(0)
        rows.sort(key=lambda row: (row.namespace, row.name, row.created is None, row.created))
        return _json(PodsAnswer(pods=tuple(rows)))

    def row(
        self,
        seen: SeenPod,
        standings: Mapping[PodRef | None, PodRecord],
        agent: AgentAnswer,
        earlier: Mapping[str, tuple[Event, ...]],
    ) -> PodRow:
        """One line of `ps`. `standings`: of all pods, as the record has them now; `earlier`: what lasts from earlier
        runs of the agent, by uid."""
        ref = pod_ref(seen.pod)
        record = standings.get(ref) or PodRecord(pod=ref)
        it = self._situation(seen, record if is_ready(seen) else self._with_history(record, earlier), agent)
        return pod_row(it, short_verdict(it))

    async def earlier(self) -> Mapping[str, tuple[Event, ...]]:
        """What lasts of each pod from earlier runs of the agent, by uid; not read while every pod is ready."""
        return await self._keeper.earlier() if not all(map(is_ready, self._source.pods())) else {}

    def _with_history(self, live: PodRecord, earlier: Mapping[str, tuple[Event, ...]]) -> PodRecord:
        record = self._record.history_of(live)
        before = earlier.get(live.pod.uid, ()) if live.pod is not None else ()
        return replace(record, events=(*before, *record.events)) if before else record

    async def records(self, _request: web.Request) -> web.StreamResponse:
        """Every pod with a record, ended ones included."""
        alive = {seen.pod.metadata.uid for seen in self._source.pods()}
        rows = [
            RecordRow(namespace=ref.namespace, name=ref.name, uid=ref.uid, alive=ref.uid in alive)
            for ref in await self._keeper.pods()
        ]
        return _json(RecordsAnswer(records=tuple(rows)))

    async def describe(self, request: web.Request) -> web.StreamResponse:
        """`describe`."""
        return await self._encoded(await self.description(self._pod(request)))

    async def description(self, seen: SeenPod) -> PodDescription:
        """One pod in full."""
        it = await self._known(seen)
        probes = tuple(probe_row(result) for result in self._source.probes(pod_ref(seen.pod)))

        def described() -> PodDescription:
            return replace(pod_description(it, pod_verdict(it), source=seen.source), probes=probes)

        return await self._threads.run(described)

    async def trace(self, request: web.Request) -> web.StreamResponse:
        """`trace`."""
        return await self._encoded(await self.trace_of(_name(request)))

    async def trace_of(self, name: str) -> TraceAnswer:
        """The trace of the pod (`namespace/name`), else of the last one of that name. Raises RequestRefused."""
        record, now = await self._record_of(name), self._record.clock.now().timestamp()
        return await self._threads.run(lambda: waterfall(record, now=now))

    async def agent_trace(self, _request: web.Request) -> web.StreamResponse:
        """The agent's own record as a trace."""
        record, now = await self._keeper.of(None) or PodRecord(pod=None), self._record.clock.now().timestamp()
        return await self._encoded(await self._threads.run(lambda: waterfall(record, now=now)))

    async def why(self, request: web.Request) -> web.StreamResponse:
        """`why`."""
        return _json(await self.verdict(_name(request)))

    async def verdict(self, name: str) -> VerdictAnswer:
        """Why a pod (`namespace/name`) is as it is. Raises RequestRefused."""
        seen = self.find(name)
        if seen is None:
            record, now = await self._record_of(name), self._record.clock.now()
            return await self._threads.run(removed, record, now)
        it = await self._threads.run(self._source.look, await self._known(seen))
        verdict = await self._threads.run(pod_verdict, it)
        if self._reads_logs and quotes_last_words(verdict) and (words := await self._last_words(it)):
            return await self._threads.run(lambda: pod_verdict(replace(it, last_words=words)))
        return verdict

    async def node_why(self, _request: web.Request) -> web.StreamResponse:
        """`why node`, with what the node has left."""
        verdict = self.node()
        try:
            # The figures need the runtime, and it may be what hangs.
            async with asyncio.timeout(_OUTLOOK_SECONDS):
                pressure = tuple(pressure_evidence(await self._source.outlook("")))
        except TimeoutError:
            pressure = (Evidence(label="pressure", text=f"no figures within {_OUTLOOK_SECONDS:g} s"),)
        return _json(replace(verdict, evidence=(*verdict.evidence, *pressure)))

    async def eviction(self, request: web.Request) -> web.StreamResponse:
        """`evict --dry-run`."""
        return await self._encoded(await self._source.outlook(request.query.get("signal", "")))

    def node(self) -> VerdictAnswer:
        """Why the node is as it is."""
        verdict = node_verdict(self._source.node())
        broken = [Evidence(label="broken manifest", text=str(it)) for it in self._source.agent().broken_manifests]
        return replace(verdict, evidence=(*verdict.evidence, *broken))

    async def images(self, _request: web.Request) -> web.StreamResponse:
        """`images`."""
        return await self._encoded(await self._source.images())

    async def resources(self, _request: web.Request) -> web.StreamResponse:
        """`node resources`."""
        return await self._encoded(self._source.resources())

    async def volumes(self, _request: web.Request) -> web.StreamResponse:
        """`volumes`."""
        return await self._encoded(await self._source.volumes())

    async def troubles(self, _request: web.Request) -> web.StreamResponse:
        """`why` without a name."""
        return await self._encoded(await self.node_troubles())

    async def node_troubles(self) -> TroublesAnswer:
        """Everything on this node that is not as it should be."""
        agent, own = self._source.agent(), self._record.of(None) or PodRecord(pod=None)
        standings, earlier = self._record.standings(), await self.earlier()
        node = self._source.node()
        found = NodeTroubles(node=node_verdict(node), own=own, broken=agent.broken_manifests)
        for seen in self._source.pods():
            ref = pod_ref(seen.pod)
            record = standings.get(ref) or PodRecord(pod=ref)
            if is_ready(seen):
                found.pods += 1
                continue
            it = self._situation(seen, self._with_history(record, earlier), agent, node.runtime)
            found.add_pod(await self._threads.run(pod_verdict, it))
        for ref in self._record.pods_with_findings():
            if (record_ := self._record.of(ref)) is not None:
                found.add_findings(record_)
        return found.answer()

    async def logs(self, request: web.Request) -> web.StreamResponse:
        """`logs`: the text, chunked."""
        seen = self._pod(request)
        wanted = log_request(request.query, self._record.clock.now())
        wanted = replace(wanted, container=chosen_container(seen.pod, wanted.container))
        chunks = self._source.read_logs(replace(seen.pod, status=seen.status), wanted)
        async with aclosing(_closing(chunks)) as reading:
            first = await anext(reading, None)
            response = web.StreamResponse(headers={**_LOG_HEADERS, "X-Glasslet-Container": wanted.container})
            await response.prepare(request)
            if first is not None:
                await response.write(first)
                async for chunk in reading:
                    await response.write(chunk)
            await response.write_eof()
        return response

    async def exec(self, request: web.Request) -> web.StreamResponse:
        """`exec`: the URL of the streams."""
        seen = self._pod(request)
        wanted = exec_request(await request.read())
        wanted = replace(wanted, container=chosen_container(seen.pod, wanted.container))
        return _json(ExecAnswer(url=await self._source.exec_url(seen.pod, wanted), container=wanted.container))

    async def waits(self, _request: web.Request) -> web.StreamResponse:
        """`waits`."""
        return _json(WaitsAnswer(waits=tuple(wait_row(wait) for wait in self._record.live_waits())))

    async def tasks(self, _request: web.Request) -> web.StreamResponse:
        """`tasks`."""
        waits = {wait.task: wait for wait in reversed(self._record.live_waits()) if wait.task}
        rows = []
        for task in asyncio.all_tasks():
            wait = waits.get(task.get_name())
            pod = str(wait.pod) if wait is not None and wait.pod is not None else ""
            what = f"{wait.kind}: {wait.on}" if wait is not None else ""
            rows.append(TaskRow(name=task.get_name(), at=innermost(awaited_frames(task)), pod=pod, wait=what))
        return _json(TasksAnswer(tasks=tuple(sorted(rows, key=lambda row: row.name))))

    async def agent(self, _request: web.Request) -> web.StreamResponse:
        """The agent itself."""
        return _json(self.agent_answer())

    def agent_answer(self) -> AgentAnswer:
        """The agent itself."""
        return replace(
            self._source.agent(),
            findings=tuple(self._record.findings()),
            record=f"{len(self._record.pods())} pods in memory, on disk at {self._keeper.folder}",
        )

    async def _encoded(self, answer: WireMessage) -> web.StreamResponse:
        """A long answer, encoded off the event loop."""
        return _response(await self._threads.run(encode, answer))

    def _situation(
        self, seen: SeenPod, record: PodRecord, agent: AgentAnswer, runtime: RuntimeState | None = None
    ) -> Situation:
        """`runtime`: for the causes of what the agent says of it; lists do without."""
        uid = PodUID(seen.pod.metadata.uid)
        return Situation(
            pod=seen.pod,
            status=seen.status,
            now=self._record.clock.now(),
            record=record,
            lifecycle=seen.lifecycle,
            since=seen.since,
            runtime_error=agent.runtime_error,
            network_error=agent.network_error,
            stuck=self._source.stuck(uid),
            hold=self._source.hold_of(uid),
            pulls=self._source.pulls(uid),
            rival_since=self._rival_since(seen) if any(w.kind == WaitKind.QUEUE for w in record.waits) else None,
            runtime_cause=runtime_cause(runtime) if runtime is not None else None,
            network_cause=network_cause(runtime) if runtime is not None else None,
            runtime_since=runtime_since(runtime) if runtime is not None else None,
            request_seconds=runtime.request_seconds if runtime is not None else None,
            network_since=runtime.network_since if runtime is not None else None,
        )

    def _rival_since(self, seen: SeenPod) -> datetime | None:
        name = pod_ref(seen.pod)[:2]
        others = (one for one in self._source.pods() if pod_ref(one.pod)[:2] == name)
        rivals = (one.since for one in others if one.pod.metadata.uid != seen.pod.metadata.uid and is_to_run(one))
        return min(rivals, default=None)

    async def _known(self, seen: SeenPod) -> Situation:
        ref = pod_ref(seen.pod)
        record = await self._keeper.of(ref) or PodRecord(pod=ref)
        return self._situation(seen, record, self._source.agent(), self._source.node().runtime)

    def find(self, name: str) -> SeenPod | None:
        """The pod of that name that is to run; a predecessor that is still ending comes second."""
        fitting = [seen for seen in self._source.pods() if str(pod_ref(seen.pod)) == name]
        syncing = (seen for seen in fitting if seen.lifecycle is WorkerState.SYNCING)
        return next(syncing, fitting[-1] if fitting else None)

    def _pod(self, request: web.Request) -> SeenPod:
        seen = self.find(_name(request))
        if seen is None:
            raise unknown_pod(_name(request), (pod_ref(pod.pod) for pod in self._source.pods()))
        return seen

    async def _record_of(self, name: str) -> PodRecord:
        """The record of the pod on this node, else of the last pod of that name."""
        seen = self.find(name)
        refs = [pod_ref(seen.pod)] if seen is not None else await self._keeper.pods()
        for ref in reversed(refs):
            if str(ref) == name:
                return await self._keeper.of(ref) or PodRecord(pod=ref)
        raise unknown_pod(name, refs)

    async def _last_words(self, it: Situation) -> dict[str, str]:
        """The last log line of each container that failed or is not ready; for a restarted one, of its last run."""
        words = {}
        pod = replace(it.pod, status=it.status)
        for status, _ in it.statuses():
            before = status.last_state.terminated
            if not status.container_id or (status.ready and (before is None or before.exit_code == 0)):
                continue
            wanted = LogRequest(container=status.name, tail=1, previous=status.ready)
            try:
                async with (
                    asyncio.timeout(_LAST_WORDS_SECONDS),
                    aclosing(_closing(self._source.read_logs(pod, wanted))) as reading,
                ):
                    line = b"".join([chunk async for chunk in reading])
            except (LogsNotAvailable, RuntimeCallError, OSError, TimeoutError):
                # Last words help, but the verdict stands without them.
                continue
            words[status.name] = line.decode(errors="replace").strip()[-_LAST_WORDS_LENGTH:]
        return words


def answering(handler: Handler) -> Handler:
    """The handler, with one JSON error for each refusal."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            refuse_foreign_page(request.method, request.headers)
            return await handler(request)
        except RequestRefused as refused:
            return _json(refused.answer, status=refused.status)
        except LogsNotAvailable as error:
            return _json(ErrorAnswer(error=str(error)), status=400)
        except RuntimeCallError as error:
            return _json(ErrorAnswer(error=f"the container runtime refused: {error}"), status=502)

    return answer


def is_to_run(seen: SeenPod) -> bool:
    """Whether the pod is neither being stopped nor over."""
    return seen.lifecycle is WorkerState.SYNCING and not has_ended(seen.status)


def is_ready(seen: SeenPod) -> bool:
    """Whether the pod's status says Ready."""
    return any(c.type == "Ready" and c.status == "True" for c in seen.status.conditions)


def _name(request: web.Request) -> str:
    return f"{request.match_info['namespace']}/{request.match_info['name']}"


def _json(answer: WireMessage, *, status: int = 200) -> web.Response:
    return _response(encode(answer), status=status)


def _response(body: bytes, *, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


async def _closing(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The same chunks; closes a generator when the reader stops early."""
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
