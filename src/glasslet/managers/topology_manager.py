"""The topology manager: a pod's devices, CPUs and memory from the same NUMA nodes, by the policy.

    none              each is allocated by itself
    best-effort       together where possible
    restricted        refused unless on as few nodes as would do
    single-numa-node  refused unless on one node

Scope container decides for each container, scope pod once for all of them. A pod that has all that it needs, because an
earlier agent admitted it, is not asked again: it may be running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.exchange.admission import Rejected
from glasslet.exchange.numa import Hints, NUMAHint, mask_text
from glasslet.managers.hint_merge import MergeRules, merge
from glasslet.managers.misfit import MISFIT, topology_misfit
from glasslet.managers.needs import containers_of
from glasslet.record.recorder import Recorder
from glasslet.runtime.model import ObservedPod

Scope = Literal["container", "pod"]
ANY = NUMAHint(None, True)
TOPOLOGY_REFUSED = Rejected(
    reason="TopologyAffinityError", message="Resources cannot be allocated with Topology locality"
)


class Opinions(Protocol):
    """Something that comes from NUMA nodes."""

    def hints(self, pod: Pod, container: str) -> Hints: ...
    def pod_hints(self, pod: Pod) -> Hints: ...
    def holds(self, pod: Pod) -> bool:
        """Whether the pod has all that it needs of this."""

    def room(self) -> Mapping[str, Mapping[int, str]]:
        """What is left, by resource and NUMA node, for people."""


class HintProvider(Opinions, Protocol):
    """CPUs or memory: given out at admission."""

    def allocate(self, pod: Pod, container: str, chosen: NUMAHint) -> Rejected | None: ...
    def release(self, gone: Callable[[str], bool]) -> None: ...


class ClaimedHints(Opinions, Protocol):
    """Devices: claimed at admission, allocated by the pod's worker."""

    def begin(self, pod: Pod, others: Sequence[Pod]) -> None:
        """A pod comes to admission, beside those that occupy the node."""

    def claim_for(self, pod: Pod, container: str, mask: int | None) -> Rejected | None:
        """Keeps devices for this container and those before it."""

    def unclaim(self, uid: str) -> None: ...
    def at_least(self, pod: Pod) -> Mapping[str, int]: ...


class AlignmentMetrics(Protocol):
    """See `telemetry.metrics.managers.ManagerFamilies`."""

    def known(self, scope: str, boundary: str) -> None: ...
    def aligned(self, scope: str, boundary: str) -> None: ...
    def unaligned(self, scope: str, boundary: str) -> None: ...
    def admission(self, seconds: float) -> None: ...
    def admission_refused(self) -> None: ...


class PodsThatLive(Protocol):
    """Which pods may not lose what they have."""

    def all_known(self) -> bool:
        """Whether every source has reported its pods. Nothing is freed before."""

    def lives(self, uid: PodUID) -> bool:
        """Whether the pod has not ended, or something of it runs."""


class PodLife(Struct, frozen=True, kw_only=True):
    """Implements `PodsThatLive`. `observed`: a pod as the runtime holds it; `known`: whether every source and the
    runtime have reported; `worked_on`: whether its worker still runs it, None without a worker; `wanted`: whether a
    source gave it."""

    observed: Callable[[PodUID], ObservedPod | None]
    known: Callable[[], bool]
    worked_on: Callable[[PodUID], bool | None]
    wanted: Callable[[PodUID], bool]

    def all_known(self) -> bool:
        """Nothing may be freed before."""
        return self.known()

    def lives(self, uid: PodUID) -> bool:
        """From its coming until nothing of it runs or will run."""
        found = self.observed(uid)
        if found is not None and found.running():
            return True
        worked_on = self.worked_on(uid)
        return self.wanted(uid) if worked_on is None else worked_on


class TopologyManager:
    """`providers`: CPUs, then memory; devices come before them."""

    def __init__(
        self,
        *,
        rules: MergeRules,
        scope: Scope,
        devices: ClaimedHints,
        providers: Sequence[HintProvider],
        pods: PodsThatLive,
        metrics: AlignmentMetrics,
        recorder: Recorder,
    ) -> None:
        self._rules = rules
        self._scope = scope
        self._devices = devices
        self._providers = tuple(providers)
        self._all: tuple[Opinions, ...] = (devices, *self._providers)
        self._pods = pods
        self._metrics = metrics
        self._recorder = recorder
        for known in ("container", "pod"):
            metrics.known(known, "numa_node")

    # -- admission -----------------------------------------------------------------------------------------------------

    def claim(self, pod: Pod, others: Sequence[Pod]) -> Rejected | None:
        """Keeps devices, CPUs and memory for the pod, or refuses it. `others`: the pods that occupy the node."""
        began = time.monotonic()
        self._devices.begin(pod, others)
        self.tidy({pod.metadata.uid, *(other.metadata.uid for other in others)})
        refused = self._admitted(pod)
        if refused is not None:
            self.unclaim(pod.metadata.uid)
        self._metrics.admission(time.monotonic() - began)
        return refused

    def unclaim(self, uid: str) -> None:
        """The pod was refused: what it was given is free again, at once."""
        self._devices.unclaim(uid)
        for provider in self._providers:
            provider.release(lambda one: one == uid)

    def at_least(self, pod: Pod) -> Mapping[str, int]:
        """Amounts of devices that the node has for this pod."""
        return self._devices.at_least(pod)

    def tidy(self, staying: Collection[str]) -> None:
        """Frees what pods have that no longer exist; `staying`: UIDs of pods that do in any case."""
        if self._pods.all_known():
            for provider in self._providers:
                provider.release(lambda uid: uid not in staying and not self._pods.lives(PodUID(uid)))

    def _admitted(self, pod: Pod) -> Rejected | None:
        if all(one.holds(pod) for one in self._all):
            return None
        names = [container.name for _, container in containers_of(pod)]
        if self._rules.policy == "none":
            return self._allocated(pod, dict.fromkeys(names, ANY))
        refused = self._of_pod(pod, names) if self._scope == "pod" else self._of_each(pod, names)
        if refused is not None:
            self._metrics.admission_refused()
        return refused

    def _of_pod(self, pod: Pod, names: Sequence[str]) -> Rejected | None:
        chosen = self._chosen("pod", "", [one.pod_hints(pod) for one in self._all])
        if chosen is None:
            return TOPOLOGY_REFUSED
        if (refused := self._allocated(pod, dict.fromkeys(names, chosen))) is not None:
            return refused
        self._aligned("pod")
        return None

    def _of_each(self, pod: Pod, names: Sequence[str]) -> Rejected | None:
        for name in names:
            said = [one.hints(pod, name) for one in self._all]
            if (chosen := self._chosen("container", name, said)) is None:
                return TOPOLOGY_REFUSED
            if (refused := self._allocated(pod, {name: chosen})) is not None:
                return refused
            self._aligned("container")
        return None

    def _chosen(self, scope: Scope, container: str, said: Sequence[Hints]) -> NUMAHint | None:
        """The choice, None if the policy does not take it. Both go to the record."""
        found = merge(self._rules, said)
        policy = self._rules.policy
        if not found.admitted:
            room = {name: nodes for one in self._all for name, nodes in one.room().items()}
            self._recorder.decided(MISFIT, container=container, because=topology_misfit(policy, said, room))
            if policy == "single-numa-node":
                self._metrics.unaligned(scope, "numa_node")
            return None
        if asked := sorted(name for hints in said for name in hints):
            self._recorder.decided(
                "NUMA nodes chosen",
                container=container,
                nodes=mask_text(found.hint.mask),
                preferred=found.hint.preferred,
                policy=policy,
                resources=", ".join(asked),
            )
        return found.hint

    def _allocated(self, pod: Pod, chosen: Mapping[str, NUMAHint]) -> Rejected | None:
        for name, hint in chosen.items():
            if (refused := self._devices.claim_for(pod, name, hint.mask)) is not None:
                return refused
            for provider in self._providers:
                if (refused := provider.allocate(pod, name, hint)) is not None:
                    return refused
        return None

    def _aligned(self, scope: Scope) -> None:
        if self._rules.policy == "single-numa-node":
            self._metrics.aligned(scope, "numa_node")
