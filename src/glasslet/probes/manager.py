"""All probes of all pods: follows each status as it is built, and keeps exactly the workers that its pod needs.

    ProbeManager(probing=..., results=..., memory=..., report=..., on_change=...)
    outcomes(ref)           the outcomes of a pod's probes now, by container instance: for the planner and the status
    begin(facts)            before a status is built: start values for instances that are new
    follow(facts, status)   after a status was built: the workers that the pod needs, and what each must know
    last(ref)               the last single results, with their parts
    run()                   owns the workers' tasks

A status holds all that a probe must know: which instance there is, whether it runs and has started, the pod's address,
whether the pod ends. Probes need no other input.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec.structs import replace

from glasslet.api.object import ContainerID, PodUID
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.api.pod_status import ContainerStatus, PodStatus
from glasslet.concurrency.supervision import Supervisor
from glasslet.exchange.facts import ProbeOutcome, StatusFacts
from glasslet.probes.kinds import ProbeKind
from glasslet.probes.prober import Probing
from glasslet.probes.results import ProbeResult, ProbeResults
from glasslet.probes.wanted import LOOPBACK, Key, ProbeTarget, instances, kinds_of, may_begin, target_of, wanted_probes
from glasslet.probes.worker import ProbeReport, ProbeServices, ProbeWorker
from glasslet.runtime.model import ContainerPhase, ObservedContainer


class RecalledOutcomes(Protocol):
    """The outcomes that an earlier run of the agent left (`probes.memory`)."""

    def recall(self, instance: ContainerID) -> ProbeOutcome: ...
    def changed(self) -> None: ...


class ProbeManager:
    """Owner of the probes' outcomes. Made in the loop's thread; `on_change(ref)`: the pod needs a sync."""

    def __init__(
        self,
        *,
        probing: Probing,
        results: ProbeResults,
        memory: RecalledOutcomes,
        report: ProbeReport,
        on_change: Callable[[PodRef], None],
        node_ip: str = LOOPBACK,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._results = results
        self._memory = memory
        self._on_change = on_change
        self._node_ip = node_ip
        self._supervisor = Supervisor()
        self._workers: dict[PodUID, dict[Key, ProbeWorker]] = {}
        self._services = ProbeServices(
            probing=probing,
            results=results,
            report=report,
            on_change=self._changed,
            born=report.clock.monotonic(),
            draw=draw,
        )

    async def run(self) -> None:
        """Runs the probes until cancelled."""
        await self._supervisor.run()

    def outcomes(self, ref: PodRef) -> Mapping[ContainerID, ProbeOutcome]:
        """The outcomes of a pod's probes now, by container instance."""
        return self._results.outcomes(ref)

    def last(self, ref: PodRef) -> tuple[ProbeResult, ...]:
        """The last single results of a pod, each probe's oldest first."""
        return self._results.last(ref)

    def begin(self, facts: StatusFacts) -> StatusFacts:
        """The facts, with start values for instances that were not probed yet."""
        ref = pod_ref(facts.pod)
        if facts.finished:
            return facts
        begun = False
        for container, instance in instances(facts):
            kinds = kinds_of(container)
            if not kinds or self._results.outcome(ref, instance.id) is not None:
                continue
            known = self._known(facts, container.name, instance)
            self._results.begin(ref, instance.id, kinds, _of(kinds, known))
            begun = True
            if known.started or known.ready:
                # The plan was made without this: the pod needs another sync, but not from within this one.
                asyncio.get_running_loop().call_soon(self._changed, ref)
        if begun:
            self._results.keep_only(ref, {instance.id for _, instance in instances(facts)})
        return replace(facts, probes=self._results.outcomes(ref)) if begun else facts

    def _known(self, facts: StatusFacts, name: str, instance: ObservedContainer) -> ProbeOutcome:
        """The outcome of an instance before this agent: from its predecessor, or from the API's status."""
        if instance.phase is not ContainerPhase.RUNNING:
            return ProbeOutcome()
        known = self._memory.recall(instance.id)
        shown = _shown_as(facts.previous, name, instance.id)
        if shown is None:
            return known
        return ProbeOutcome(started=known.started or shown.started or None, ready=known.ready or shown.ready or None)

    def _changed(self, ref: PodRef) -> None:
        self._memory.changed()
        self._on_change(ref)

    # -- workers -------------------------------------------------------------------------------------------------------

    def follow(self, facts: StatusFacts, status: PodStatus) -> None:
        """Brings the pod's workers in line with a status, just built from these facts."""
        ref = pod_ref(facts.pod)
        wanted = wanted_probes(facts)
        workers = self._workers.get(ref.uid, {})
        for key in [key for key in workers if key not in wanted]:
            workers.pop(key).stop()
        if may_begin(facts):
            for key in wanted.keys() - workers.keys():
                worker = workers[key] = ProbeWorker(ref=ref, kind=key.kind, wanted=wanted[key], services=self._services)
                self._supervisor.start(worker.task_name, worker.run)
        if workers:
            self._workers[ref.uid] = workers
        else:
            self._workers.pop(ref.uid, None)
        for key, worker in workers.items():
            self._inform(worker, key, target_of(facts, status, key.container, self._node_ip), ref)
        if facts.finished:
            self._results.forget(ref.uid)
            self._memory.changed()

    def _inform(self, worker: ProbeWorker, key: Key, target: ProbeTarget, ref: PodRef) -> None:
        worker.look(target)
        if key.kind is not ProbeKind.READINESS or target.instance is None:
            return
        if not target.running:
            if self._results.set(ref, target.instance, ProbeKind.READINESS, False):
                self._memory.changed()
        elif target.started and not target.ready:
            worker.trigger()


def _of(kinds: tuple[ProbeKind, ...], known: ProbeOutcome) -> ProbeOutcome:
    """The part of an outcome that counts for a container with these kinds of probes."""
    return ProbeOutcome(
        started=known.started if ProbeKind.STARTUP in kinds else None,
        ready=known.ready if ProbeKind.READINESS in kinds else None,
    )


def _shown_as(status: PodStatus, name: str, instance: ContainerID) -> ContainerStatus | None:
    """The container status that shows this very instance."""
    for shown in (*status.container_statuses, *status.init_container_statuses):
        if shown.name == name and shown.container_id.endswith(f"://{instance}"):
            return shown
    return None
