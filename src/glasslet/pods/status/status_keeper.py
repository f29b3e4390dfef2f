"""The status of one pod as this agent reports it: built from facts, published when it changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.api.pod_status import PodStatus
from glasslet.concurrency.clock import Clock
from glasslet.exchange.facts import ProbeOutcome, Resizing, StatusFacts, Waiting
from glasslet.exchange.finality import has_ended, shows_an_end, with_end_withheld
from glasslet.pods.collaborators import ProbeOutcomes, Publish, StatusBuilder, StatusFollower
from glasslet.pods.lifecycle import Finished, State, Syncing, Terminated
from glasslet.pods.memory import PodMemory
from glasslet.pods.status.api_status import taken_over
from glasslet.runtime.model import ObservedPod


class StatusServices(Struct, frozen=True, kw_only=True):
    """What statuses are built with. `finished` is called once per pod, with its final status, when nothing of it is in
    use any more: from then on its API object may be deleted."""

    build: StatusBuilder
    publish: Publish
    probes: ProbeOutcomes
    host_ips: Callable[[], tuple[str, ...]]
    finished: Callable[[Pod, PodStatus], None]
    follower: StatusFollower | None = None
    resizing: Callable[[Pod, str], Resizing] = lambda pod, error: Resizing()


class _Inputs(Struct, frozen=True, kw_only=True):
    """The facts of a status without the time, which only dates changes."""

    pod: Pod
    observed: ObservedPod | None
    state: State
    waiting: dict[str, Waiting]
    probes: dict[ContainerID, ProbeOutcome]
    termination_messages: dict[ContainerID, str]
    host_ips: tuple[str, ...]
    resizing: Resizing

    def same_as(self, other: _Inputs | None) -> bool:
        """Whether nothing changed. Pods and snapshots are never changed, only replaced."""
        return (
            other is not None
            and self.pod is other.pod
            and self.observed is other.observed
            and self.state == other.state
            and self.waiting == other.waiting
            and self.probes == other.probes
            and self.termination_messages == other.termination_messages
            and self.host_ips == other.host_ips
            and self.resizing == other.resizing
        )


class StatusKeeper:
    """Keeps the last reported status of one pod."""

    def __init__(self, *, services: StatusServices, clock: Clock, first: PodStatus) -> None:
        self._services = services
        self._clock = clock
        self._published: PodStatus | None = None
        self._believed: _Inputs | None = None
        self._final = False
        self.status = first

    @property
    def ended(self) -> bool:
        """Whether the phase is terminal."""
        return has_ended(self.status)

    def started_at(self, observed: ObservedPod | None) -> datetime | None:
        """When the pod was first seen here. Without a start time in its status (a static pod after a restart of
        the agent), its oldest sandbox counts."""
        if self.status.start_time is not None or observed is None or not observed.sandboxes:
            return self.status.start_time
        return min(sandbox.created_at for sandbox in observed.sandboxes).replace(microsecond=0)

    def report(
        self, memory: PodMemory, observed: ObservedPod | None, state: State, *, provisional: bool = False
    ) -> None:
        """Builds the status of now, and publishes it if it differs from the last one. `provisional`: work on the pod is
        under way; an end that shows now (a container that is restarted) is not reported. Nothing follows the final
        status: later changes of the pod are only the removal of its remains."""
        if self._final:
            return
        inputs = _Inputs(
            pod=memory.pod,
            observed=observed,
            state=state,
            waiting=dict(memory.start_failures),
            probes=dict(self._services.probes(pod_ref(memory.pod))),
            termination_messages=dict(memory.termination_messages),
            host_ips=self._services.host_ips(),
            resizing=self._services.resizing(memory.pod, memory.resize_error),
        )
        if inputs.same_as(self._believed):
            return
        status = self._build(self._facts(inputs))
        if provisional and shows_an_end(memory.pod, self.status, status):
            return
        self._believed = inputs
        before, self.status = self._published or memory.pod.status, status
        nothing_runs = observed is None or isinstance(state, Terminated | Finished)
        reported = status if nothing_runs else with_end_withheld(status, before)
        if reported != self._published:
            self._published = reported
            self._services.publish(memory.pod, reported)

    def _build(self, facts: StatusFacts) -> PodStatus:
        follower = self._services.follower
        if follower is None:
            return self._services.build(facts)
        facts = follower.begin(facts)
        status = self._services.build(facts)
        follower.follow(facts, status)
        return status

    def _facts(self, inputs: _Inputs) -> StatusFacts:
        state = inputs.state
        return StatusFacts(
            pod=inputs.pod,
            now=self._clock.now(),
            observed=inputs.observed,
            previous=taken_over(self._with_start_time(inputs.observed), inputs.pod),
            waiting=inputs.waiting,
            probes=inputs.probes,
            termination_messages=inputs.termination_messages,
            verdict=None if isinstance(state, Syncing) else state.verdict,
            terminating=not isinstance(state, Syncing),
            finished=isinstance(state, Terminated | Finished),
            host_ips=inputs.host_ips,
            resizing=inputs.resizing,
        )

    def _with_start_time(self, observed: ObservedPod | None) -> PodStatus:
        began = self.started_at(observed)
        return self.status if began == self.status.start_time else replace(self.status, start_time=began)

    def finish(self, memory: PodMemory) -> None:
        """The last reported status is the final one."""
        self._final = True
        self._services.finished(memory.pod, self.status)
