"""Allocates devices to pods.

    claim()      at admission, at once: refuses the pod, or keeps enough devices free for it
    allocate()   by the pod's worker: calls the plugins, which may take long; only this pod waits
    prepare()    before each start of a container: PreStartContainer, and what the container gets

A pod keeps its devices until it is removed, also over a restart of the agent (`checkpoint`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from google.protobuf.message import DecodeError

from glasslet.api.container import Container
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.devices.allocation_plan import (
    AllocationRefused,
    AllocationStep,
    Held,
    Ids,
    Stock,
    amounts,
    choose,
    demands,
    plan,
    served,
    up_to,
)
from glasslet.devices.allocations import Allocation, DeviceAllocations, Owner
from glasslet.devices.checkpoint import KnownDevices
from glasslet.devices.checkpoint_file import CheckpointFile
from glasslet.devices.container_devices import container_devices
from glasslet.devices.device_hints import container_hints, free_by_node, pod_hints
from glasslet.devices.inventory import by_numa_node
from glasslet.devices.offers import Offers
from glasslet.devices.plugin import DevicePluginFailed
from glasslet.devices.registration import prepare_folder
from glasslet.exchange.admission import Rejected, unexpected
from glasslet.exchange.devices import DeviceProblem
from glasslet.exchange.numa import NO_OPINION, Hints
from glasslet.record.recorder import Recorder
from glasslet.runtime.spec import ContainerDevices

logger = logging.getLogger(__name__)

NOTHING = ContainerDevices()
NOTIFY_SECONDS = 0.2
"""Changes within this time are reported together."""


class KnownPods(Protocol):
    """See `pod_knowledge.PodKnowledge`."""

    def stands(self, uid: PodUID) -> bool: ...

    def all_known(self) -> bool: ...


class AllocationMetrics(Protocol):
    """Measures the calls of plugins."""

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
        numa_nodes: Sequence[int] = (),
    ) -> None:
        """`numa_nodes`: ids of all nodes of the machine."""
        self._file = file
        self._offers = offers
        self._pods = pods
        self._metrics = metrics
        self._recorder = recorder
        self._numa_nodes = tuple(numa_nodes)
        self._claims: dict[str, Mapping[str, Ids]] = {}
        self._near: dict[str, dict[str, int | None]] = {}
        """The NUMA nodes chosen for the containers of pods with a claim."""
        self.allocations = DeviceAllocations()
        self._subscribers: list[Callable[[], None]] = []
        self._notifying: asyncio.TimerHandle | None = None
        offers.subscribe(self._on_change)

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Calls `callback` soon after each change of the node's devices, once for changes that come together."""
        self._subscribers.append(callback)

    async def start(self) -> None:
        """Restores the checkpoint and makes plugins register again. Without its folder there are no device plugins, and
        a finding."""
        try:
            prepare_folder(self._file.folder)
            await self.load()
        except OSError as error:
            self._recorder.finding(f"folder of device plugins cannot be used: {error}")

    async def load(self) -> None:
        """Restores the checkpoint. Raises OSError."""
        if (known := await self._file.read()) is not None:
            self.allocations = DeviceAllocations(known.allocations)
            self._offers.expect(known.registered)

    # -- admission: at once --------------------------------------------------------------------------------------------

    def claim(self, pod: Pod, others: Sequence[Pod]) -> Rejected | None:
        """Keeps devices for the pod, wherever they are, or refuses it. `others`: the pods that occupy the node."""
        self.begin(pod, others)
        wanted = demands(pod)
        return self.claim_for(pod, wanted[-1].container, None) if wanted else None

    def begin(self, pod: Pod, others: Sequence[Pod]) -> None:
        """A pod comes to admission: devices of pods that are gone are free."""
        if demands(pod):
            self._release({other.metadata.uid for other in others} | {pod.metadata.uid})

    def claim_for(self, pod: Pod, container: str, mask: int | None) -> Rejected | None:
        """Keeps devices for this container, those of the mask's NUMA nodes first, and for the containers before it."""
        uid = pod.metadata.uid
        if not (wanted := up_to(demands(pod), container)):
            return None
        self._near.setdefault(uid, {})[container] = mask
        found = plan(wanted, self._stock(uid), self._held(uid, self._settled(pod)))
        if isinstance(found, AllocationRefused):
            return unexpected(found.why)
        if found:
            self._claims[uid] = _claimed(found)
        return None

    def hints(self, pod: Pod, container: str) -> Hints:
        """The NUMA nodes that the container's devices could come from, beside those claimed for containers before
        it."""
        uid = pod.metadata.uid
        if not (wanted := up_to(demands(pod), container)):
            return NO_OPINION
        stock = self._stock(uid)
        asks = served(wanted, stock, self._held(uid, self._settled(pod)))
        return container_hints([ask for ask, _ in asks if ask.container == container], stock, self._numa_nodes)

    def pod_hints(self, pod: Pod) -> Hints:
        """The same for the pod as a whole."""
        uid = pod.metadata.uid
        stock = self._stock(uid)
        return pod_hints(pod, stock, self.allocations.of_pod(uid), self._numa_nodes)

    def holds(self, pod: Pod) -> bool:
        """Whether the pod needs no device, or has all of them."""
        uid = pod.metadata.uid
        wanted = [one for one in demands(pod) if any(self._stock(uid).has(name) for name in one.amounts)]
        return not wanted or plan(wanted, self._stock(uid), self._held(uid, self._settled(pod))) == ()

    def room(self) -> Mapping[str, Mapping[int, str]]:
        """The free devices of each NUMA node."""
        stock = self._stock("")
        return {resource: free_by_node(resource, stock) for resource in stock.places}

    def unclaim(self, uid: str) -> None:
        """Frees the pod's claim: it was refused for another reason."""
        self._claims.pop(uid, None)
        self._near.pop(uid, None)

    def at_least(self, pod: Pod) -> Mapping[str, int]:
        """The least amounts that the node has for a pod with devices or a claim: allocated devices exist, whatever the
        node object says."""
        uid = pod.metadata.uid
        if uid not in self._claims and uid not in self.allocations.pods():
            return {}
        return {resource: len(ids) for resource, ids in self._taken("").items()}

    # -- the pod's worker ----------------------------------------------------------------------------------------------

    async def allocate(self, pod: Pod) -> Rejected | None:
        """Allocates the claimed devices. Refusals are final. May be repeated."""
        uid = pod.metadata.uid
        if uid not in self._claims:
            return None
        why = await self._allocate(pod, self._settled(pod))
        if why is None:
            return None
        if self.allocations.release(lambda one: one == uid):
            await self._on_change()
        return unexpected(why)

    async def prepare(self, pod: Pod, container: Container) -> ContainerDevices:
        """Prepares the container's devices before its creation. Raises DeviceProblem."""
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
        return self._devices_of(uid, container.name)

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
                raise DevicePluginFailed(f"endpoint {resource} has been stopped")
            await offer.plugin.pre_start(has.ids)
        except DevicePluginFailed as error:
            raise DeviceProblem(f"device plugin PreStartContainer rpc failed with err: {error}") from error

    def _devices_of(self, uid: str, container: str) -> ContainerDevices:
        had = self.allocations.of_container(uid, container)
        try:
            together, conflicts = container_devices({resource: one.response for resource, one in had.items()})
        except DecodeError as error:
            raise DeviceProblem(f"answers of device plugins for {container} cannot be decoded: {error}") from error
        for conflict in conflicts:
            self._recorder.finding(f"{conflict} in container {container}")
        return together

    async def _allocate(self, pod: Pod, settled: Collection[str]) -> str | None:
        """Allocates all devices that the pod lacks. Returns None, or why not. The pod's claim is freed in the end."""
        try:
            if not await self._take_all(pod, settled):
                return None
            return await self._save()
        except DevicePluginFailed as error:
            return str(error)
        finally:
            self.unclaim(pod.metadata.uid)

    async def _take_all(self, pod: Pod, settled: Collection[str]) -> bool:
        """Allocates step by step; each is planned again, because things change while a plugin answers. Whether anything
        was to be done. Raises DevicePluginFailed."""
        uid, wanted = pod.metadata.uid, demands(pod)
        done = False
        while True:
            steps = plan(wanted, self._stock(uid), self._held(uid, settled))
            if isinstance(steps, AllocationRefused):
                raise DevicePluginFailed(steps.why)
            if not steps:
                return done
            self._claims[uid] = _claimed(steps)
            await self._take(uid, steps[0])
            done = True

    async def _take(self, uid: str, step: AllocationStep) -> None:
        """Allocates one container's devices of one resource. Raises DevicePluginFailed."""
        offer = self._offers.get(step.resource)
        if offer is None:
            raise DevicePluginFailed(f"unknown Device Plugin {step.resource}")
        if offer.plugin is None:
            raise DevicePluginFailed(f"endpoint {step.resource} has been stopped")
        ids = step.ids
        if offer.options.preferred_allocation and len(step.fixed) < step.amount:
            try:
                preferred = await offer.plugin.preferred(step.available | step.fixed, step.fixed, step.amount)
            except DevicePluginFailed as error:
                raise DevicePluginFailed(
                    f"device plugin GetPreferredAllocation rpc failed with err: {error}"
                ) from error
            ids = self._choose(uid, step, preferred)
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

    def _choose(self, uid: str, step: AllocationStep, preferred: Collection[str]) -> Ids:
        """The plugin's choice among the devices that are still free; claimed for the pod from now on."""
        stock = self._stock(uid)
        free = stock.healthy.get(step.resource, frozenset()) - stock.taken.get(step.resource, frozenset())
        ids = choose(step, free.intersection(preferred))
        claims = self._claims.get(uid, {})
        self._claims[uid] = {**claims, step.resource: claims.get(step.resource, frozenset()) - step.ids | ids}
        return ids

    # -- allocations
    # -----------------------------------------------------------------------------------------------------

    def _stock(self, uid: str) -> Stock:
        """The devices for this pod: its own claim counts as free."""
        return Stock(healthy=self._offers.healthy(), taken=self._taken(uid), places=self._offers.places())

    def _taken(self, but: str) -> dict[str, Ids]:
        taken = self.allocations.taken()
        for uid, claim in self._claims.items():
            if uid != but:
                for resource, ids in claim.items():
                    taken[resource] = taken.get(resource, frozenset()) | ids
        return taken

    def _held(self, uid: str, settled: Collection[str]) -> Held:
        return Held(pod_uid=uid, devices=self.allocations.of_pod(uid), settled=settled, near=self._near.get(uid, {}))

    def _settled(self, pod: Pod) -> Collection[str]:
        """Containers of a pod that an earlier agent started: they have their devices, even if their plugins are not
        back yet. A container without any gets them before its next start."""
        if not self._pods.stands(PodUID(pod.metadata.uid)):
            return ()
        return [one.container for one in demands(pod)]

    def _release(self, staying: Collection[str]) -> None:
        """Frees the devices of pods that no longer exist: not before all pods are known, and not while a part of them
        runs."""
        for uid in self._claims.keys() - staying:
            self.unclaim(uid)
        if self._pods.all_known():
            self.allocations.release(lambda uid: uid not in staying and not self._pods.stands(PodUID(uid)))

    async def _on_change(self) -> None:
        await self._save()
        if self._notifying is None:
            self._notifying = asyncio.get_running_loop().call_later(NOTIFY_SECONDS, self._notify)

    def _notify(self) -> None:
        self._notifying = None
        for callback in self._subscribers:
            callback()

    async def _save(self) -> str | None:
        """Writes the checkpoint. Returns None, or the problem."""
        return await self._file.write(lambda: KnownDevices(tuple(self.allocations), self._offers.healthy()))


def _claimed(steps: Sequence[AllocationStep]) -> dict[str, Ids]:
    claimed: dict[str, Ids] = {}
    for step in steps:
        claimed[step.resource] = claimed.get(step.resource, frozenset()) | step.ids
    return claimed
