"""What the agent shows of itself: `/glass/v1/...`, on the Unix socket and, behind authentication, on the HTTPS port.

    routes = glass_routes(source=GlassSource, keeper=RecordKeeper)      aiohttp route definitions

`GlassSource` is what the composition root supplies; everything else comes from the record. Answers are the shapes of
`glasslet.answers`; every refusal is one `ErrorAnswer` with a fitting status.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import msgspec
from aiohttp import web
from msgspec.structs import replace

from glasslet.answers.agent import AgentAnswer, TaskRow, TasksAnswer, WaitsAnswer
from glasslet.answers.names import nearest
from glasslet.answers.pods import PodsAnswer, ProbeRow
from glasslet.answers.requests import ExecAnswer, ExecRequest, LogRequest
from glasslet.answers.trace import RecordRow, RecordsAnswer
from glasslet.answers.wire import ErrorAnswer, encode
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.concurrency.task_frames import awaited_frames, innermost
from glasslet.glass.pod_rows import pod_description, pod_row, wait_row
from glasslet.glass.stuck import Stuck
from glasslet.glass.verdicts.ending import gone
from glasslet.glass.verdicts.judge import in_short, judge
from glasslet.glass.verdicts.situation import Situation
from glasslet.glass.verdicts.whole_node import NodeSituation, judge_node
from glasslet.glass.waterfall import waterfall
from glasslet.record.history import PodRecord
from glasslet.record.keeper import RecordKeeper
from glasslet.runtime.errors import RuntimeCallError

PREFIX = "/glass/v1"
_LAST_WORDS_RULES = {
    "fine",
    "crash_back_off",
    "init_failed",
    "init_not_finished",
    "failed",
    "not_ready",
    "ended_container",
}
_LAST_WORDS_SECONDS = 1.0
_LAST_WORDS_LENGTH = 300
_LOG_CHUNK_HEADERS = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


class SeenPod(Protocol):
    """A pod as its worker sees it. `lifecycle`: syncing, terminating, terminated or finished; `source`: where it came
    from (`file`, `http`, `api`)."""

    @property
    def pod(self) -> Pod: ...
    @property
    def status(self) -> PodStatus: ...
    @property
    def lifecycle(self) -> str: ...
    @property
    def since(self) -> datetime: ...
    @property
    def source(self) -> str: ...


class LogsRefused(Exception):
    """A container's log cannot be read; the message says why, as `/containerLogs` words it."""


class GlassSource(Protocol):
    """What the answers are made from. Only `read_logs` and `exec_url` do I/O."""

    def pods(self) -> Sequence[SeenPod]:
        """Every pod that has a worker."""

    def agent(self) -> AgentAnswer:
        """The agent itself; `findings` and `record` are filled in here."""

    def node(self) -> NodeSituation:
        """The node as a whole."""

    def probes(self, pod: Pod) -> tuple[ProbeRow, ...]:
        """The last results of the pod's probes, each probe's oldest first."""

    def stuck(self, pod: Pod) -> Stuck | None:
        """What hangs of the pod, if its worker makes no progress."""

    def read_logs(self, pod: Pod, request: LogRequest) -> AsyncIterator[bytes]:
        """The log of one container (its name is set). Raises LogsRefused or RuntimeCallError before the first chunk."""

    async def exec_url(self, pod: Pod, request: ExecRequest) -> str:
        """The runtime's streaming URL. Raises RuntimeCallError."""


class Refused(Exception):
    """A request that gets an error answer."""

    def __init__(self, status: int, answer: ErrorAnswer) -> None:
        super().__init__(answer.error)
        self.status = status
        self.answer = answer


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def glass_routes(*, source: GlassSource, keeper: RecordKeeper) -> list[web.RouteDef]:
    """The routes, with GET and POST as they are to be authorised."""
    glass = Glass(source=source, keeper=keeper)
    pod = f"{PREFIX}/pods/{{namespace}}/{{name}}"
    return [
        web.get(f"{PREFIX}/pods", _answering(glass.pods)),
        web.get(f"{PREFIX}/records", _answering(glass.records)),
        web.get(pod, _answering(glass.describe)),
        web.get(f"{pod}/trace", _answering(glass.trace)),
        web.get(f"{pod}/why", _answering(glass.why)),
        web.get(f"{pod}/logs", _answering(glass.logs)),
        web.post(f"{pod}/exec", _answering(glass.exec)),
        web.get(f"{PREFIX}/waits", _answering(glass.waits)),
        web.get(f"{PREFIX}/tasks", _answering(glass.tasks)),
        web.get(f"{PREFIX}/agent", _answering(glass.agent)),
        web.get(f"{PREFIX}/agent/trace", _answering(glass.agent_trace)),
        web.get(f"{PREFIX}/node/why", _answering(glass.node_why)),
    ]


class Glass:
    """Handlers: one per question."""

    def __init__(self, *, source: GlassSource, keeper: RecordKeeper) -> None:
        self.source = source
        self.keeper = keeper
        self.record = keeper.record

    async def pods(self, request: web.Request) -> web.StreamResponse:
        """`ps`."""
        agent = self.source.agent()
        standings = self.record.standings()
        rows = []
        for seen in self.source.pods():
            ref = pod_ref(seen.pod)
            record = standings.get(ref) or PodRecord(pod=ref)
            if not any(c.type == "Ready" and c.status == "True" for c in seen.status.conditions):
                record = self.record.history_of(record)
            it = self._situation(seen, record, agent)
            rows.append(pod_row(it, in_short(it)))
        rows.sort(key=lambda row: (row.namespace, row.name, row.created is None, row.created))
        return _json(PodsAnswer(pods=tuple(rows)))

    async def records(self, request: web.Request) -> web.StreamResponse:
        """Every pod that something is known of, ended ones included."""
        alive = {pod.pod.metadata.uid for pod in self.source.pods()}
        rows = [
            RecordRow(namespace=ref.namespace, name=ref.name, uid=ref.uid, alive=ref.uid in alive)
            for ref in await self.keeper.pods()
        ]
        return _json(RecordsAnswer(records=tuple(rows)))

    async def describe(self, request: web.Request) -> web.StreamResponse:
        """`describe`."""
        seen = self._pod(request)
        it = await self._known(seen)
        description = pod_description(it, judge(it), source=seen.source)
        return _json(replace(description, probes=self.source.probes(seen.pod)))

    async def trace(self, request: web.Request) -> web.StreamResponse:
        """`trace`."""
        record = await self._record(request)
        return _json(waterfall(record, now=self._now().timestamp()))

    async def agent_trace(self, request: web.Request) -> web.StreamResponse:
        """The agent's own record as a trace."""
        record = await self.keeper.of(None) or PodRecord(pod=None)
        return _json(waterfall(record, now=self._now().timestamp()))

    async def why(self, request: web.Request) -> web.StreamResponse:
        """`why`."""
        seen = self._find(request)
        if seen is None:
            return _json(gone(await self._record(request), self._now()))
        it = await self._known(seen)
        verdict = judge(it)
        if verdict.rule in _LAST_WORDS_RULES and (words := await self._last_words(it)):
            verdict = judge(replace(it, last_words=words))
        return _json(verdict)

    async def node_why(self, request: web.Request) -> web.StreamResponse:
        """`why node`."""
        return _json(judge_node(self.source.node()))

    async def logs(self, request: web.Request) -> web.StreamResponse:
        """`logs`: the text, chunked."""
        seen = self._pod(request)
        asked = _log_request(request, self._now())
        asked = replace(asked, container=_container(seen.pod, asked.container))
        chunks = self.source.read_logs(seen.pod, asked)
        async with aclosing(_closing(chunks)) as reading:
            first = await anext(reading, None)
            response = web.StreamResponse(headers={**_LOG_CHUNK_HEADERS, "X-Glasslet-Container": asked.container})
            await response.prepare(request)
            if first is not None:
                await response.write(first)
                async for chunk in reading:
                    await response.write(chunk)
            await response.write_eof()
        return response

    async def exec(self, request: web.Request) -> web.StreamResponse:
        """`exec`: where the streams are."""
        seen = self._pod(request)
        try:
            asked = msgspec.json.decode(await request.read(), type=ExecRequest)
        except msgspec.MsgspecError as error:
            raise Refused(400, ErrorAnswer(error=f"not an exec request: {error}", field="body")) from error
        if not asked.command:
            raise Refused(400, ErrorAnswer(error="no command", field="command", allowed="at least one word"))
        asked = replace(asked, container=_container(seen.pod, asked.container))
        return _json(ExecAnswer(url=await self.source.exec_url(seen.pod, asked), container=asked.container))

    async def waits(self, request: web.Request) -> web.StreamResponse:
        """`waits`."""
        return _json(WaitsAnswer(waits=tuple(wait_row(wait) for wait in self.record.live_waits())))

    async def tasks(self, request: web.Request) -> web.StreamResponse:
        """`tasks`."""
        waits = {wait.task: wait for wait in reversed(self.record.live_waits()) if wait.task}
        rows = []
        for task in asyncio.all_tasks():
            wait = waits.get(task.get_name())
            pod = str(wait.pod) if wait is not None and wait.pod is not None else ""
            what = f"{wait.kind}: {wait.on}" if wait is not None else ""
            rows.append(TaskRow(name=task.get_name(), at=innermost(awaited_frames(task)), pod=pod, wait=what))
        return _json(TasksAnswer(tasks=tuple(sorted(rows, key=lambda row: row.name))))

    async def agent(self, request: web.Request) -> web.StreamResponse:
        """The agent itself."""
        return _json(
            replace(
                self.source.agent(),
                findings=tuple(self.record.findings()),
                record=f"{len(self.record.pods())} pods in memory, on disk at {self.keeper.folder}",
            )
        )

    def _now(self) -> datetime:
        return self.record.clock.now()

    def _situation(self, seen: SeenPod, record: PodRecord, agent: AgentAnswer) -> Situation:
        return Situation(
            pod=seen.pod,
            status=seen.status,
            now=self._now(),
            record=record,
            lifecycle=seen.lifecycle,
            since=seen.since,
            runtime_error=agent.runtime_error,
            network_error=agent.network_error,
            stuck=self.source.stuck(seen.pod),
        )

    async def _known(self, seen: SeenPod) -> Situation:
        ref = pod_ref(seen.pod)
        record = await self.keeper.of(ref) or PodRecord(pod=ref)
        return self._situation(seen, record, self.source.agent())

    def _find(self, request: web.Request) -> SeenPod | None:
        """The newest pod of that name; a predecessor that still ends comes second."""
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        fitting = [
            seen
            for seen in self.source.pods()
            if seen.pod.metadata.name == name and seen.pod.metadata.namespace == namespace
        ]
        return next((seen for seen in fitting if seen.lifecycle == "syncing"), fitting[-1] if fitting else None)

    def _pod(self, request: web.Request) -> SeenPod:
        seen = self._find(request)
        if seen is None:
            raise self._unknown(request, (pod_ref(pod.pod) for pod in self.source.pods()))
        return seen

    async def _record(self, request: web.Request) -> PodRecord:
        """The record of a pod that is here, or else of the last one of that name."""
        seen = self._find(request)
        refs = [pod_ref(seen.pod)] if seen is not None else await self.keeper.pods()
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        for ref in reversed(refs):
            if ref.name == name and ref.namespace == namespace:
                record = await self.keeper.of(ref)
                return record if record is not None else PodRecord(pod=ref)
        raise self._unknown(request, refs)

    def _unknown(self, request: web.Request, known: Iterable[PodRef]) -> Refused:
        asked = f"{request.match_info['namespace']}/{request.match_info['name']}"
        names = sorted({str(ref) for ref in known})
        answer = ErrorAnswer(
            error=f"no pod {asked} on this node",
            field="pod",
            value=asked,
            allowed="the name of a pod that is here, or that left a record",
            nearest=nearest(asked, names),
        )
        return Refused(404, answer)

    async def _last_words(self, it: Situation) -> dict[str, str]:
        """The last log line of each container that does not run as it should, or did not before it was restarted."""
        words = {}
        for status, _ in it.statuses():
            before = status.last_state.terminated
            if not status.container_id or (status.ready and (before is None or before.exit_code == 0)):
                continue
            asked = LogRequest(container=status.name, tail=1, previous=status.ready)
            try:
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    chunks = self.source.read_logs(it.pod, asked)
                    async with aclosing(_closing(chunks)) as reading:
                        line = b"".join([chunk async for chunk in reading])
            except (LogsRefused, RuntimeCallError, OSError, TimeoutError):
                # Last words are a help, not a fact: without them the verdict is shorter.
                continue
            words[status.name] = line.decode(errors="replace").strip()[-_LAST_WORDS_LENGTH:]
        return words


def _answering(handler: Handler) -> Handler:
    """Refusals become one JSON error each."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refused as refused:
            return _json(refused.answer, status=refused.status)
        except LogsRefused as refused:
            return _json(ErrorAnswer(error=str(refused)), status=400)
        except RuntimeCallError as error:
            return _json(ErrorAnswer(error=f"the container runtime refused: {error}"), status=502)

    return answer


def _json(answer: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=encode(answer), status=status, content_type="application/json")


async def _closing(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The same chunks; closes a generator when the reader stops early."""
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


def _container(pod: Pod, asked: str) -> str:
    """The container that is meant: the one asked for, the pod's default, or its first."""
    spec = pod.spec
    names = [c.name for c in (*spec.containers, *spec.init_containers)] + [c.name for c in spec.ephemeral_containers]
    chosen = asked or pod.metadata.annotations.get("kubectl.kubernetes.io/default-container") or names[0]
    if chosen not in names:
        answer = ErrorAnswer(
            error=f"pod {pod.metadata.namespace}/{pod.metadata.name} has no container {chosen}",
            field="container",
            value=chosen,
            allowed=", ".join(names),
            nearest=nearest(chosen, names),
        )
        raise Refused(404, answer)
    return chosen


def _log_request(request: web.Request, now: datetime) -> LogRequest:
    query = request.query
    return LogRequest(
        container=query.get("container", ""),
        follow=_flag(query.get("follow"), "follow"),
        previous=_flag(query.get("previous"), "previous"),
        timestamps=_flag(query.get("timestamps"), "timestamps"),
        tail=_count(query.get("tail"), "tail", least=0),
        since=_since(query.get("since"), now),
        limit_bytes=_count(query.get("limitBytes"), "limitBytes", least=1),
    )


def _flag(text: str | None, field: str) -> bool:
    if text in (None, "", "0", "false"):
        return False
    if text in ("1", "true"):
        return True
    raise Refused(400, ErrorAnswer(error="not a yes or no", field=field, value=str(text), allowed="true, false, 1, 0"))


def _count(text: str | None, field: str, *, least: int) -> int | None:
    if text is None or text == "":
        return None
    if text.isascii() and text.isdigit() and int(text) >= least:
        return int(text)
    raise Refused(400, ErrorAnswer(error="not such a number", field=field, value=text, allowed=f"{least} or more"))


def _since(text: str | None, now: datetime) -> datetime | None:
    """Seconds before now, or an RFC 3339 time."""
    if text is None or text == "":
        return None
    try:
        if text.replace(".", "", 1).isdecimal():
            return now - timedelta(seconds=float(text))
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        allowed = "seconds before now, or an RFC 3339 time"
        raise Refused(400, ErrorAnswer(error="not a time", field="since", value=text, allowed=allowed)) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
