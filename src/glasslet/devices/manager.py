"""Gives devices to pods.

    claim()      at admission, at once: refuses, or keeps enough devices free for the pod
    allocate()   by the pod's worker: asks the plugins, which may take their time; only this pod waits
    prepare()    before each start of a container: PreStartContainer, and what the container is given

What a pod has is kept until the pod is gone, also over a restart of the agent (`checkpoint`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from google.protobuf.message import DecodeError

from glasslet.api.container import Container
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.devices.allocation import Held, Ids, Refused, Step, Stock, choose, plan
from glasslet.devices.allocations import Allocation, Allocations, Owner
from glasslet.devices.checkpoint import encode
from glasslet.devices.checkpoint_file import CheckpointFile
from glasslet.devices.demand import amounts, demands
from glasslet.devices.given import given
from glasslet.devices.inventory import by_numa_node
from glasslet.devices.offers import Offers
from glasslet.devices.plugin import PluginFailed
from glasslet.exchange.admission import Rejected
from glasslet.record.recorder import Recorder
from glasslet.runtime.spec import ContainerDevices

logger = logging.getLogger(__name__)

NOTHING = ContainerDevices()


class DeviceProblem(Exception):
    """A container cannot be started with its devices; the text is for its status."""


class KnownPods(Protocol):
    """What the runtime holds, and whether all pods that should run are known."""

    def stands(self, uid: PodUID) -> bool:
        """Whether the pod's sandbox is up, or anything of it runs: it was begun with its devices, and since then the
        node was not started anew."""

    def all_known(self) -> bool:
        """Whether every source has told of its pods."""


class AllocationMetrics(Protocol):
    """How long plugins take."""

    def allocated(self, resource: str, seconds: float) -> None: ...


class DeviceManager:
    """See the module's docstring."""

    def __init__(
        self,
        *,
        file: CheckpointFile,
        offers: Offers,
        pods: KnownPods,
        metrics: AllocationMetrics,
        recorder: Recorder,
    ) -> None:
        self._file = file
        self._offers = offers
        self._pods = pods
        self._metrics = metrics
        self._recorder = recorder
        self._claims: dict[str, Mapping[str, Ids]] = {}
        self.allocations = Allocations()
        offers.on_change = self._on_change
        self.changed: Callable[[], None] = lambda: None
        """Called when the node has other devices than before."""

    def load(self) -> None:
        """Takes up what an earlier agent left. Raises OSError."""
        if (known := self._file.read()) is not None:
            self.allocations = Allocations(known.allocations)
            self._offers.expect(known.registered)

    # -- admission: at once --------------------------------------------------------------------------------------------

    def claim(self, pod: Pod, others: Sequence[Pod]) -> Rejected | None:
        """Keeps devices for the pod, or refuses it. `others`: the pods that occupy the node."""
        wanted = demands(pod)
        if not wanted:
            return None
        uid = pod.metadata.uid
        self._release({other.metadata.uid for other in others} | {uid})
        found = plan(wanted, self._stock(uid), self._held(uid, self._settled(pod)))
        if isinstance(found, Refused):
            return refusal(found.why)
        self._claims[uid] = _claimed(found)
        return None

    def unclaim(self, uid: str) -> None:
        """The pod was refused for another reason."""
        self._claims.pop(uid, None)

    def at_least(self, pod: Pod) -> Mapping[str, int]:
        """What the node can be taken to have for a pod that has, or is kept, devices: what was given away cannot be
        lacking, whatever the node object says."""
        uid = pod.metadata.uid
        if uid not in self._claims and uid not in self.allocations.pods():
            return {}
        return {resource: len(ids) for resource, ids in self._taken("").items()}

    # -- the pod's worker ----------------------------------------------------------------------------------------------

    async def allocate(self, pod: Pod) -> Rejected | None:
        """Allocates what was claimed. Refusals are final. Again and again is fine."""
        uid = pod.metadata.uid
        if uid not in self._claims:
            return None
        why = await self._allocate(pod, self._settled(pod))
        if why is None:
            return None
        if self.allocations.release(lambda one: one == uid):
            await self._on_change()
        return refusal(why)

    async def prepare(self, pod: Pod, container: Container) -> ContainerDevices:
        """Before a container is created. Raises DeviceProblem."""
        wanted = {name: amount for name, amount in amounts(container).items() if amount > 0}
        uid = pod.metadata.uid
        known = [name for name in wanted if self._stock(uid).has(name)] if wanted else ()
        if not known:
            return NOTHING
        missing = False
        for resource in known:
            has = self.allocations.of_container(uid, container.name).get(resource)
            await self._pre_start(uid, container.name, resource, has)
            missing = missing or has is None
        if missing:
            others = [one.container for one in demands(pod) if one.container != container.name]
            if (why := await self._allocate(pod, others)) is not None:
                raise DeviceProblem(why)
        return self._given(uid, container.name)

    async def _pre_start(self, uid: str, container: str, resource: str, has: Allocation | None) -> None:
        offer = self._offers.get(resource)
        if offer is None:
            raise DeviceProblem(f"endpoint not found in cache for a registered resource: {resource}")
        if not offer.options.pre_start:
            return
        if has is None:
            where = f"pod {uid}, container {container}, resource {resource}"
            raise DeviceProblem(f"no devices found allocated in local cache for {where}")
        try:
            if offer.plugin is None:
                raise PluginFailed(f"endpoint {resource} has been stopped")
            await offer.plugin.pre_start(has.ids)
        except PluginFailed as error:
            raise DeviceProblem(f"device plugin PreStartContainer rpc failed with err: {error}") from error

    def _given(self, uid: str, container: str) -> ContainerDevices:
        had = self.allocations.of_container(uid, container)
        try:
            together, conflicts = given({resource: one.response for resource, one in had.items()})
        except DecodeError as error:
            raise DeviceProblem(f"what device plugins gave container {container} cannot be read: {error}") from error
        for conflict in conflicts:
            self._recorder.finding(f"{conflict} in container {container}")
        return together

    async def _allocate(self, pod: Pod, settled: Collection[str]) -> str | None:
        """All that the pod lacks; None, or why not. What was kept for it is free again in the end."""
        try:
            if not await self._take_all(pod, settled):
                return None
            return await self._save()
        except PluginFailed as error:
            return str(error)
        finally:
            self._claims.pop(pod.metadata.uid, None)

    async def _take_all(self, pod: Pod, settled: Collection[str]) -> bool:
        """Step by step; each is planned anew, because things change while a plugin is asked. Whether anything was to be
        done. Raises PluginFailed."""
        uid, wanted = pod.metadata.uid, demands(pod)
        done = False
        while True:
            steps = plan(wanted, self._stock(uid), self._held(uid, settled))
            if isinstance(steps, Refused):
                raise PluginFailed(steps.why)
            if not steps:
                return done
            self._claims[uid] = _claimed(steps)
            await self._take(uid, steps[0])
            done = True

    async def _take(self, uid: str, step: Step) -> None:
        """Asks the plugin for one container's devices of one resource. Raises PluginFailed."""
        offer = self._offers.get(step.resource)
        if offer is None:
            raise PluginFailed(f"unknown Device Plugin {step.resource}")
        if offer.plugin is None:
            raise PluginFailed(f"endpoint {step.resource} has been stopped")
        ids = step.ids
        if offer.options.preferred_allocation and len(step.reused) < step.amount:
            try:
                told = await offer.plugin.preferred(step.available | step.reused, step.reused, step.amount)
            except PluginFailed as error:
                raise PluginFailed(f"device plugin GetPreferredAllocation rpc failed with err: {error}") from error
            ids = self._choose(uid, step, told)
        began = time.monotonic()
        try:
            response = await offer.plugin.allocate(ids)
        finally:
            self._metrics.allocated(step.resource, time.monotonic() - began)
        by_node = by_numa_node(ids, self._offers.devices(step.resource))
        self.allocations.put(Owner(uid, step.container, step.resource), Allocation(by_node=by_node, response=response))
        self._recorder.decided(
            "devices allocated", container=step.container, resource=step.resource, devices=sorted(ids)
        )

    def _choose(self, uid: str, step: Step, preferred: Collection[str]) -> Ids:
        """The plugin's choice, as far as nobody has taken it meanwhile; kept for the pod from now on."""
        stock = self._stock(uid)
        free = stock.healthy.get(step.resource, frozenset()) - stock.taken.get(step.resource, frozenset())
        ids = choose(step, free.intersection(preferred))
        claims = self._claims.get(uid, {})
        self._claims[uid] = {**claims, step.resource: claims.get(step.resource, frozenset()) - step.ids | ids}
        return ids

    # -- the books -----------------------------------------------------------------------------------------------------

    def _stock(self, uid: str) -> Stock:
        """What there is for this pod: its own claim is free for it."""
        return Stock(healthy=self._offers.healthy(), taken=self._taken(uid))

    def _taken(self, but: str) -> dict[str, Ids]:
        taken = self.allocations.taken()
        for uid, claim in self._claims.items():
            if uid != but:
                for resource, ids in claim.items():
                    taken[resource] = taken.get(resource, frozenset()) | ids
        return taken

    def _held(self, uid: str, settled: Collection[str]) -> Held:
        return Held(pod_uid=uid, devices=self.allocations.of_pod(uid), settled=settled)

    def _settled(self, pod: Pod) -> Collection[str]:
        """Containers of a pod that an earlier agent began: they have their devices, whether or not their plugins are
        back already. One that has none after all is given some before its next start."""
        if not self._pods.stands(PodUID(pod.metadata.uid)):
            return ()
        return [one.container for one in demands(pod)]

    def _release(self, staying: Collection[str]) -> None:
        """Frees what pods have that are gone: not before all pods are known, and not while anything of them runs."""
        for uid in self._claims.keys() - staying:
            del self._claims[uid]
        if self._pods.all_known():
            self.allocations.release(lambda uid: uid not in staying and not self._pods.stands(PodUID(uid)))

    async def _on_change(self) -> None:
        await self._save()
        self.changed()

    async def _save(self) -> str | None:
        """Writes the checkpoint; None, or what went wrong."""
        return await self._file.write(lambda: encode(self.allocations, self._offers.healthy()))


def refusal(why: str) -> Rejected:
    """A pod that does not get its devices."""
    return Rejected(reason="UnexpectedAdmissionError", message=f"Allocate failed due to {why}, which is unexpected")


def _claimed(steps: Sequence[Step]) -> dict[str, Ids]:
    claimed: dict[str, Ids] = {}
    for step in steps:
        claimed[step.resource] = claimed.get(step.resource, frozenset()) | step.ids
    return claimed
