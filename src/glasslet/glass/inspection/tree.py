"""The tree of one pod.

where it is      namespace, name, uid, node, at, after, container, attempt, held
as it is to be   pod, lifecycle, source
as it is         status, observed (with observedAt), volumes, probes
what comes       plan (each action with `because`), retries, backOffs, waits
at its place     request, probe, newStatus, failure: as far as there is one
in the code      stack, tasks
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from glasslet.answers.pods import Hold
from glasslet.api.codec import to_plain
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.concurrency.clock import Clock
from glasslet.concurrency.task_frames import awaited_frames
from glasslet.glass.inspection.plain import plain
from glasslet.glass.inspection.plans import plan_tree
from glasslet.glass.inspection.requests import shown_facts
from glasslet.pods.census import PodCensus
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner import POD_LEVEL, CreateSandbox, StartContainer
from glasslet.pods.worker import PodWorker
from glasslet.probes.results import ProbeResult
from glasslet.record.history import PodRecord
from glasslet.runtime.model import ObservedPod
from glasslet.stops.arrivals import Arrival


class Inspector:
    """Builds trees. `last`: the last results of a pod's probes; `standing`: a pod's open waits."""

    def __init__(
        self,
        *,
        node: str,
        census: PodCensus,
        observed: Callable[[PodUID], ObservedPod | None],
        last: Callable[[PodRef], Iterable[ProbeResult]],
        standing: Callable[[PodRef], PodRecord],
        hold_of: Callable[[PodUID], Hold | None],
        clock: Clock,
    ) -> None:
        self._node = node
        self._census = census
        self._observed = observed
        self._last = last
        self._standing = standing
        self._hold_of = hold_of
        self._clock = clock

    def tree(self, ref: PodRef, arrival: Arrival | None) -> dict[str, Any]:
        """All that is known of the pod now. `arrival`: the place where it is."""
        worker, observed = self._census.worker(ref.uid), self._observed(ref.uid)
        pod = worker.pod if worker is not None else None
        container = arrival.container if arrival is not None else ""
        memory = worker.memory if worker is not None else None
        task = arrival.task if arrival is not None else None
        return {
            "namespace": ref.namespace,
            "name": ref.name,
            "uid": ref.uid,
            "node": self._node,
            "at": arrival.place if arrival is not None else "",
            "after": arrival.after if arrival is not None else False,
            "container": container,
            "attempt": _attempt(memory, observed, container),
            "held": plain(self._hold_of(ref.uid)),
            **_life(worker, pod),
            "observed": self._seen(observed),
            "volumes": plain(dict(memory.volumes or {})) if memory is not None else {},
            "probes": [plain(result) for result in self._last(ref)],
            "plan": plan_tree(memory.planned) if memory is not None else {},
            **_pauses(memory),
            "waits": [
                {"kind": wait.kind, "on": wait.on, "container": wait.container, "station": wait.station}
                for wait in self._standing(ref).waits
            ],
            "request": None,
            "probe": None,
            "newStatus": None,
            "failure": "",
            **(shown_facts(arrival.facts(), pod, container) if arrival is not None else {}),
            "stack": awaited_frames(task) if task is not None else [],
            "tasks": [
                {"name": one.get_name(), "stack": awaited_frames(one)}
                for one in asyncio.all_tasks()
                if str(ref) in one.get_name().split()
            ],
        }

    def _seen(self, observed: ObservedPod | None) -> dict[str, Any]:
        """The observation, with the wall time of the read that gave it."""
        if observed is None:
            return {}
        tree: dict[str, Any] = plain(observed)
        del tree["observedAt"]
        return {"observedAt": plain(self._wall(observed.observed_at)), **tree}

    def _wall(self, monotonic: float) -> datetime:
        return self._clock.now() + timedelta(seconds=monotonic - self._clock.monotonic())


def _life(worker: PodWorker | None, pod: Pod | None) -> dict[str, Any]:
    tree = to_plain(pod) if pod is not None else {}
    tree.pop("status", None)
    tree.get("metadata", {}).pop("managedFields", None)
    return {
        "pod": tree,
        "lifecycle": type(worker.state).__name__.lower() if worker is not None else "",
        "source": worker.source if worker is not None else "",
        "status": to_plain(worker.keeper.status) if worker is not None else {},
    }


def _pauses(memory: PodMemory | None) -> dict[str, Any]:
    """Steps that failed and wait to be tried again, and the restart back-off of each container."""
    if memory is None:
        return {"retries": {}, "backOffs": {}}
    return {
        "retries": {key if key != POD_LEVEL else "pod": plain(hold) for key, hold in memory.holds.items()},
        "backOffs": {key.container: plain(entry) for key, entry in memory.back_offs.items()},
    }


def _attempt(memory: PodMemory | None, observed: ObservedPod | None, container: str) -> int:
    """The attempt that the pod is at: of the container, without one of the sandbox."""
    for action in memory.planned.plan.actions if memory is not None and memory.planned is not None else ():
        if isinstance(action, StartContainer) and action.name == container and action.attempt is not None:
            return action.attempt
        if isinstance(action, CreateSandbox) and not container:
            return action.attempt
    if observed is None:
        return 0
    if container:
        instance = observed.newest(container)
        return instance.attempt if instance is not None else 0
    return observed.sandboxes[0].attempt if observed.sandboxes else 0
