"""The loop of the controllers: read the files and the agent, plan, write, pass connections on.

It may end and start again at any time: what it must know is in `BoxStore` before anything runs because of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from glasslet.answers.agent import AgentAnswer
from glasslet.answers.box import BoxAnswer, BoxSources, FindingRow
from glasslet.answers.pods import PodsAnswer
from glasslet.box.addresses import OwnAddresses
from glasslet.box.agent import AgentAway, AgentView
from glasslet.box.documents import DocumentFinding, all_of
from glasslet.box.plan import BoxMemory, BoxPlace, BoxPlan, plan
from glasslet.box.pods import BoxPod, Seen
from glasslet.box.proxy import Proxy
from glasslet.box.services import BackingPod, routing
from glasslet.box.sources import SourceReader
from glasslet.box.store import BoxStore

_BUSY_SECONDS = 0.25
_IDLE_SECONDS = 2.0

logger = logging.getLogger(__name__)


class Controller:
    """All controllers of one state folder."""

    def __init__(self, store: BoxStore, agent: AgentView, *, now: Callable[[], datetime]) -> None:
        self._store = store
        self._agent = agent
        self._now = now
        self._reader = SourceReader(store.box)
        self._memory: BoxMemory | None = None
        self._ready_since: dict[str, datetime] = {}
        self._proxy = Proxy()
        self._addresses = OwnAddresses()
        self._names_problem = ""
        self._names: object = None

    async def run(self) -> None:
        """Works until cancelled."""
        try:
            while True:
                answer, wake = await self.look()
                with suppress(OSError):
                    self._store.say(answer)
                seconds = _IDLE_SECONDS if answer.settled else _BUSY_SECONDS
                if wake is not None:
                    seconds = min(seconds, max(_BUSY_SECONDS, (wake - self._now()).total_seconds()))
                await asyncio.sleep(seconds)
        finally:
            await self._proxy.close()

    async def look(self) -> tuple[BoxAnswer, datetime | None]:
        """One look at everything; the answer, and when the next one is due at the latest."""
        try:
            sources = self._store.sources()
            read = self._reader.read(sources.files)
            pods, agent = await self._agent.pods(), await self._agent.agent()
            step = self._plan(sources, all_of(read).objects, self._seen(pods, agent.node))
            self._store.apply(step)
            self._memory = step.memory
            findings = [*all_of(read).findings, *step.findings, *await self._pass_on(sources, step, pods, agent)]
        except AgentAway as error:
            return BoxAnswer(problem=f"the agent does not answer: {error}"), None
        except (OSError, msgspec.MsgspecError) as error:
            # A full disk, a damaged list: the pods go on, and the next look tries again.
            return BoxAnswer(problem=f"{type(error).__name__}: {error}"), None
        return self._answer(sources, step, findings, self._seen(pods, agent.node)), step.wake

    def _plan(self, sources: BoxSources, objects: Sequence[object], seen: Seen) -> BoxPlan:
        if self._memory is None:
            self._memory = self._store.memory()
        place = BoxPlace(claims=self._store.state / "claims", services=sources.services or "10.217.0.0/24")
        return plan(objects, self._memory, seen, self._now(), place)  # type: ignore[arg-type]

    def _seen(self, answer: PodsAnswer, node: str) -> Seen:
        """The agent's pods under the names of their manifests: static pods end in the node's name."""
        suffix, now = f"-{node.lower()}", self._now()
        ready = {row.uid for row in answer.pods if row.is_ready}
        self._ready_since = {uid: self._ready_since.get(uid, now) for uid in ready}
        return {
            (row.namespace, row.name.removesuffix(suffix)): BoxPod(
                uid=row.uid,
                phase=row.phase,
                ready=row.is_ready,
                ready_since=self._ready_since.get(row.uid),
                ip=row.ip,
                settled=row.settled,
            )
            for row in answer.pods
        }

    async def _pass_on(
        self, sources: BoxSources, step: BoxPlan, pods: PodsAnswer, agent: AgentAnswer
    ) -> list[DocumentFinding]:
        """Routes and names as the plan has them. What cannot be served comes back."""
        if not sources.gateway:
            without = "needs the private containerd of `glasslet up`, whose network it knows"
            return [DocumentFinding("", f"Service {one.key} has no address: it {without}") for one in step.services]
        manifests, seen = self._store.pods(), self._seen(pods, agent.node)
        manifests |= {pod.key: pod.body for pod in step.pods if pod.body is not None}
        manifests |= self._store.linked_pods()
        behind = [
            BackingPod(namespace=key[0], manifest=manifests[key], ip=pod.ip, ready=pod.ready)
            for key, pod in seen.items()
            if key in manifests and not pod.over
        ]
        routes = routing(step.services, step.memory.addresses, behind)
        problems = await self._addresses.show(routes.addresses)
        await self._proxy.show(routes.routes)
        if step.services:
            problems += await self._serve_names(sources.gateway, routes.names, routes.aliases)
        return [DocumentFinding("", text) for text in (*problems, *self._proxy.problems())]

    async def _serve_names(self, gateway: str, names: object, aliases: object) -> list[str]:
        from glasslet.box.names import PORT, NameServer

        if not isinstance(self._names, NameServer):
            server = NameServer()
            try:
                await server.listen(gateway)
            except OSError as error:
                await server.close()
                return [f"names of services are not served at {gateway}:{PORT}: {error.strerror}"]
            self._names = server
        self._names.show(names, aliases)  # type: ignore[arg-type]
        return []

    def _answer(self, sources: BoxSources, step: BoxPlan, findings: Sequence[DocumentFinding], seen: Seen) -> BoxAnswer:
        there = all(
            pod.key in seen and seen[pod.key].uid == pod.slot.uid(pod.namespace) and seen[pod.key].settled
            for pod in step.pods
        )
        return BoxAnswer(
            files=tuple(file.place for file in sources.files),
            workloads=step.rows,
            findings=tuple(FindingRow(text=str(one), broken=one.broken) for one in findings),
            pods=len(step.pods),
            settled=there and all(row.settled for row in step.rows),
        )


async def run(state: Path, socket: Path) -> None:
    """Runs the controllers of a state folder until cancelled."""
    from glasslet.box.store import make_folders

    await Controller(make_folders(state), AgentView(socket), now=lambda: datetime.now(UTC)).run()
