"""Prepares the claims of a pod before its sandbox is made, and gives them back when it has ended.

    read the claims ─▶ may the pod use them? ─▶ note on disk ─▶ NodePrepareResources of each driver ─▶ note on disk
    NodeUnprepareResources where no other pod uses the claim ─▶ note on disk

What is on disk comes before what a driver is asked: an agent that is killed at any moment asks again, or gives back.
Pods that share a claim take turns; all others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.resource_claim import ResourceClaimObject
from glasslet.dra.claim_book import ClaimBook, ClaimEntry, ClaimKey, by_driver, key_of
from glasslet.dra.claim_file import ClaimFile
from glasslet.dra.claims import NamedRequest, WantedClaim, check_claim, drivers_of, named_requests, wanted_claims
from glasslet.dra.driver_calls import ClaimId, DRACalls, PreparedDevice
from glasslet.dra.plugins import DRAPlugins
from glasslet.exchange.claims import ClaimedDevice, ContainerClaim, DeviceClaimProblem
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import APIError
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind

T = TypeVar("T")


class ClaimReader(Protocol):
    """Reads objects (`kubeapi.client`). Raises APIError."""

    async def get(self, path: str, kind: type[T]) -> T: ...


class DRAWorkMetrics(Protocol):
    """`dra_operations_duration_seconds`; `operation` is PrepareResources or UnprepareResources."""

    def worked(self, operation: str, seconds: float, *, failed: bool) -> None: ...


class ClaimsOfPods:
    """`client` None: no API server, then no pod has claims. `extended`: gate DRAExtendedResource;
    `cdi_problem`: why the runtime gives no CDI devices."""

    def __init__(
        self,
        *,
        plugins: DRAPlugins,
        calls: DRACalls,
        file: ClaimFile,
        client: ClaimReader | None,
        recorder: Recorder,
        metrics: DRAWorkMetrics,
        extended: bool = False,
        cdi_problem: str = "",
    ) -> None:
        self.book = ClaimBook()
        self._plugins = plugins
        self._calls = calls
        self._file = file
        self._client = client
        self._recorder = recorder
        self._metrics = metrics
        self._extended = extended
        self._cdi_problem = cdi_problem
        self._turns: WeakValueDictionary[ClaimKey, asyncio.Lock] = WeakValueDictionary()

    async def start(self) -> None:
        """Reads what an earlier agent prepared. Comes before the first pod."""
        self.book.load(await self._file.read())

    # -- the way in ----------------------------------------------------------------------------------------------------

    async def prepare(self, pod: Pod) -> None:
        """Has all claims of the pod prepared; again and again is fine. Raises DeviceClaimProblem."""
        began, failed = monotonic(), True
        try:
            await self._prepare(pod)
            failed = False
        except DeviceClaimProblem as problem:
            raise type(problem)(f"prepare dynamic resources: {problem}", driver=problem.driver) from problem
        finally:
            self._metrics.worked("PrepareResources", monotonic() - began, failed=failed)

    async def _prepare(self, pod: Pod) -> None:
        wanted = {one.name: one for one in wanted_claims(pod, extended=self._extended)}
        if not wanted:
            return
        claims = [await self._read(pod, one) for one in wanted.values()]
        async with self._turn((pod.metadata.namespace, name) for name in wanted):
            self._check_names(claims)
            uid = pod.metadata.uid
            entries = [self.book.use(_id(claim), drivers_of(claim), uid) for claim in claims]
            await self._file.write(self.book.all, "cache")
            due = [entry for entry in entries if not entry.prepared]
            if not due:
                return
            await _together(self._prepare_by(driver, ids) for driver, ids in by_driver(due).items())
            self.book.all_prepared(key_of(entry.id) for entry in due)
            await self._file.write(self.book.all, "state")
        self._recorder.decided("resource claims prepared", claims=[str(entry.id) for entry in due])

    async def _read(self, pod: Pod, wanted: WantedClaim) -> ResourceClaimObject:
        if self._client is None:
            raise DeviceClaimProblem(f"fetch ResourceClaim {wanted.name}: there is no API server")
        try:
            claim = await self._client.get(
                paths.resource_claim(pod.metadata.namespace, wanted.name), ResourceClaimObject
            )
        except APIError as error:
            raise DeviceClaimProblem(f"fetch ResourceClaim {wanted.name}: {error.message}") from error
        check_claim(claim, wanted, pod)
        for driver in drivers_of(claim):
            self._plugins.choose(driver)
        return claim

    def _check_names(self, claims: Iterable[ResourceClaimObject]) -> None:
        for claim in claims:
            known = self.book.get(key_of(_id(claim)))
            if known is not None and known.id.uid != claim.metadata.uid:
                raise DeviceClaimProblem(
                    f"old ResourceClaim with same name {known.id.name} and different UID {known.id.uid} still exists "
                    "(previous pod force-deleted?!)"
                )

    async def _prepare_by(self, driver: str, claims: Sequence[ClaimId]) -> None:
        devices, failed = await self._calls.prepare(driver, claims)
        self.book.prepared_by(driver, devices)
        if failed is not None:
            raise failed

    # -- the way out ---------------------------------------------------------------------------------------------------

    def used_by(self, pod: PodRef) -> bool:
        """Whether the pod has claims that were, or may be, prepared."""
        return bool(self.book.of_pod(pod.uid))

    async def unprepare(self, pod: PodRef) -> None:
        """Gives back the claims of a pod of which nothing runs; again and again is fine. The API server is not asked:
        the claims may be gone. Raises DeviceClaimProblem."""
        began, failed = monotonic(), True
        try:
            await self._unprepare(pod)
            failed = False
        except DeviceClaimProblem as problem:
            raise type(problem)(f"unprepare dynamic resources: {problem}", driver=problem.driver) from problem
        finally:
            self._metrics.worked("UnprepareResources", monotonic() - began, failed=failed)

    async def _unprepare(self, pod: PodRef) -> None:
        if not self.book.of_pod(pod.uid):
            return
        async with self._turn(key_of(entry.id) for entry in self.book.of_pod(pod.uid)):
            entries = self.book.of_pod(pod.uid)
            last = [entry for entry in entries if entry.pods == {pod.uid}]
            self.book.leave(pod.uid, [key_of(entry.id) for entry in entries if entry not in last])
            try:
                await _together(self._calls.unprepare(driver, ids) for driver, ids in by_driver(last).items())
                self.book.leave(pod.uid, [key_of(entry.id) for entry in last])
            finally:
                await self._file.write(self.book.all, "state")
        self._recorder.decided("resource claims given back", claims=[str(entry.id) for entry in entries])

    # -- what containers have ------------------------------------------------------------------------------------------

    def cdi_ids(self, pod: Pod, container: Container) -> tuple[str, ...]:
        """The CDI names of the container's devices. Raises DeviceClaimProblem."""
        found: dict[str, None] = {}
        for one in named_requests(pod, container, extended=self._extended):
            entry = self.book.get((pod.metadata.namespace, one.claim))
            if entry is None:
                raise DeviceClaimProblem(f"internal error: unable to get claim info for ResourceClaim {one.claim}")
            for device in _devices(entry, one):
                found |= dict.fromkeys(device.cdi_ids)
        if found and self._cdi_problem:
            raise DeviceClaimProblem(f"{self._cdi_problem}: {', '.join(found)}")
        return tuple(found)

    def claims_of(self, pod: Pod, container: Container) -> tuple[ContainerClaim, ...]:
        """The container's claims as far as they are known; one that it names twice comes once."""
        try:
            named = named_requests(pod, container, extended=self._extended)
        except DeviceClaimProblem:
            return ()
        found: dict[str, ContainerClaim] = {}
        for one in named:
            entry = self.book.get((pod.metadata.namespace, one.claim))
            if entry is not None:
                known = found[one.claim].devices if one.claim in found else ()
                devices = tuple(dict.fromkeys((*known, *_devices(entry, one))))
                found[one.claim] = ContainerClaim(namespace=entry.id.namespace, name=entry.id.name, devices=devices)
        return tuple(found.values())

    # -- turns ---------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _turn(self, keys: Iterable[ClaimKey]) -> AsyncIterator[None]:
        """The turn of the pod at these claims, taken in one order by all."""
        async with AsyncExitStack() as held:
            for key in sorted(set(keys)):
                lock = self._turns.get(key)
                if lock is None:
                    lock = self._turns[key] = asyncio.Lock()
                if lock.locked():
                    on = f"work on resource claim {'/'.join(key)} for another pod"
                    with self._recorder.wait(WaitKind.QUEUE, on=on):
                        await held.enter_async_context(lock)
                else:
                    await held.enter_async_context(lock)
            yield


async def _together(calls: Iterable[Awaitable[None]]) -> None:
    """All of them side by side, to their ends; then raises the first DeviceClaimProblem."""
    failures: list[DeviceClaimProblem] = []

    async def one(call: Awaitable[None]) -> None:
        try:
            await call
        except DeviceClaimProblem as problem:
            failures.append(problem)

    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(one(call))
    if failures:
        raise failures[0]


def _id(claim: ResourceClaimObject) -> ClaimId:
    of = claim.metadata
    return ClaimId(namespace=of.namespace, name=of.name, uid=of.uid)


def _devices(entry: ClaimEntry, named: NamedRequest) -> tuple[ClaimedDevice, ...]:
    """The claim's devices for the request, of all drivers by their names."""
    return tuple(
        ClaimedDevice(driver=driver, pool=device.pool, device=device.device, cdi_ids=device.cdi_ids)
        for driver in sorted(entry.devices)
        for device in entry.devices[driver]
        if _is_for(device, named.request)
    )


def _is_for(device: PreparedDevice, request: str) -> bool:
    return not request or not device.requests or request in device.requests
