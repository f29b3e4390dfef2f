"""Volumes that grew since they were published: the driver grows what is on the node, the claim is told."""

from __future__ import annotations

import logging
from typing import Any, Protocol, TypeVar

from grpc import StatusCode
from msgspec import Struct

from glasslet.api.persistent_volume import PersistentVolumeClaim
from glasslet.api.pod_ref import pod_ref
from glasslet.concurrency.clock import Clock
from glasslet.kubeapi import paths
from glasslet.kubeapi.errors import APIError
from glasslet.kubeapi.protocols import PatchType
from glasslet.volumes.csi._generated import csi_pb2 as messages
from glasslet.volumes.csi.cluster_data import CSIClusterData
from glasslet.volumes.csi.driver_calls import Capability, DriverCalls
from glasslet.volumes.csi.errors import Aftermath, CSIProblem, DriverCallFailed
from glasslet.volumes.csi.expansion_rules import (
    ExpansionNeed,
    begun,
    expansion_need,
    failed,
    finished,
    spec_changed,
    storage_of,
    target_size,
)
from glasslet.volumes.csi.volume_terms import CSIVolume, volume_capability
from glasslet.volumes.group_owner import EmitEvent
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest
from glasslet.volumes.problems import is_unreachable

_log = logging.getLogger(__name__)
_INFEASIBLE = (StatusCode.INVALID_ARGUMENT, StatusCode.OUT_OF_RANGE, StatusCode.NOT_FOUND)

T = TypeVar("T")


class ClaimStatusClient(Protocol):
    """Reads claims and writes their status (`kubeapi.client`). Raises APIError."""

    async def get(self, path: str, kind: type[T]) -> T: ...
    async def patch(self, path: str, body: Any, kind: type[T], *, patch_type: PatchType) -> T: ...


class PublishedAt(Struct, frozen=True):
    """Where a published volume is: `path`, and `staging`, where it was staged."""

    path: str
    staging: str


class VolumeGrowth:
    """Grows volumes. `sizes`: what they have, in bytes, by driver and handle, as far as this agent knows."""

    def __init__(
        self,
        *,
        client: ClaimStatusClient,
        calls: DriverCalls,
        data: CSIClusterData,
        emit: EmitEvent,
        clock: Clock,
        node: str,
    ) -> None:
        self._client = client
        self._calls = calls
        self._data = data
        self._emit = emit
        self._clock = clock
        self._node = node
        self._sizes: dict[tuple[str, str], int] = {}
        self._refused: set[tuple[str, str]] = set()
        self._failed: set[tuple[str, str]] = set()

    def forget(self, driver: str, handle: str) -> None:
        """No pod has the volume any more: it may be tried again, and has any size."""
        key = driver, handle
        self._sizes.pop(key, None)
        self._refused.discard(key)
        self._failed.discard(key)

    async def grow(self, request: VolumeRequest, volume: CSIVolume, view: PublishedAt) -> None:
        """Grows the volume if its PersistentVolume is larger than what this node has. Raises VolumeProblem."""
        persistent = request.persistent
        size = persistent.spec.capacity.get("storage") if persistent is not None else None
        reference = persistent.spec.claim_ref if persistent is not None else None
        key = volume.driver, volume.handle
        if size is None or reference is None or key in self._refused or self._sizes.get(key, 0) >= size.value():
            return
        path = paths.namespaced(request.pod.metadata.namespace, "persistentvolumeclaims", reference.name)
        try:
            claim = await self._client.get(path, PersistentVolumeClaim)
            await self._grow(request, volume, view, claim, size.value())
        except APIError as error:
            if is_unreachable(error):
                _log.warning("size of a claim is not known", extra={"volume": volume.name, "error": str(error)})
                return
            raise VolumeProblem(error.message) from error

    async def _grow(
        self, request: VolumeRequest, volume: CSIVolume, view: PublishedAt, claim: PersistentVolumeClaim, wanted: int
    ) -> None:
        key = volume.driver, volume.handle
        # A claim that had its size before this agent saw it has nothing to grow on this node.
        need = ExpansionNeed.NONE if not storage_of(claim) else expansion_need(claim, wanted)
        if need is ExpansionNeed.EXPAND_HERE_TOO and key not in self._sizes:
            need = ExpansionNeed.NONE
        if need is ExpansionNeed.WAIT:
            return
        if need is ExpansionNeed.NONE:
            self._sizes[key] = max(storage_of(claim), wanted)
            return
        if volume.read_only:
            self._told(
                request, "Warning", "FileSystemResizeFailed", f"{_failing(volume)} requested read-only file system"
            )
            self._sizes[key] = wanted
            return
        target = target_size(claim, wanted)
        tells = need is ExpansionNeed.EXPAND
        if tells:
            claim = await self._write(claim, begun(claim))
        try:
            done = await self._ask(volume, view, target)
        except CSIProblem as problem:
            if need is ExpansionNeed.EXPAND_HERE_TOO and _is_unable(problem):
                self._sizes[key] = target
                return
            await self._fails(key, claim, problem, target)
            if isinstance(problem, DriverCallFailed) and problem.code is StatusCode.FAILED_PRECONDITION:
                # Not on this node while it is in use; the pod has the volume as it is.
                self._refused.add(key)
                return
            raise
        self._sizes[key] = target
        self._failed.discard(key)
        if done:
            text = f'MountVolume.NodeExpandVolume succeeded for volume "{volume.name}" {self._node}'
            self._told(request, "Normal", "FileSystemResizeSuccessful", text)
        if tells:
            await self._write(claim, finished(claim, target))

    async def _ask(self, volume: CSIVolume, view: PublishedAt, target: int) -> bool:
        """Whether the driver had anything to do. Raises CSIProblem."""
        able = await self._calls.capabilities(volume.driver, volume=volume.name)
        if Capability.EXPAND_VOLUME not in able:
            # The controller's part was all.
            return False
        secrets = await self._data.secret(volume.expand_secret, "NodeExpandSecretRef")
        request = messages.NodeExpandVolumeRequest(
            volume_id=volume.handle,
            volume_path=view.path,
            capacity_range=messages.CapacityRange(required_bytes=target),
            staging_target_path=view.staging,
            volume_capability=volume_capability(volume, able),
            secrets=secrets,
        )
        await self._calls.call(
            volume.driver,
            request,
            messages.NodeExpandVolumeResponse,
            volume=volume.name,
            secrets=secrets.values(),
        )
        return True

    async def _fails(
        self, key: tuple[str, str], claim: PersistentVolumeClaim, problem: CSIProblem, target: int
    ) -> None:
        """Tells the claim of an error that is final. One whose end is not known is only tried again."""
        if problem.aftermath is not Aftermath.FINAL:
            return
        infeasible = isinstance(problem, DriverCallFailed) and problem.code in _INFEASIBLE
        infeasible = infeasible or (key in self._failed and spec_changed(claim, target))
        self._failed.add(key)
        try:
            await self._write(claim, failed(claim, str(problem), infeasible=infeasible, now=self._clock.now()))
        except APIError as error:
            _log.warning("claim is not told of its expansion", extra={"error": str(error)})

    async def _write(self, claim: PersistentVolumeClaim, patch: dict[str, Any]) -> PersistentVolumeClaim:
        if not patch:
            return claim
        meta = claim.metadata
        path = f"{paths.namespaced(meta.namespace, 'persistentvolumeclaims', meta.name)}/status"
        return await self._client.patch(path, patch, PersistentVolumeClaim, patch_type=PatchType.MERGE)

    def _told(self, request: VolumeRequest, kind: str, reason: str, text: str) -> None:
        self._emit(pod_ref(request.pod), kind, reason, text)


def _is_unable(problem: CSIProblem) -> bool:
    return isinstance(problem, DriverCallFailed) and problem.code is StatusCode.UNIMPLEMENTED


def _failing(volume: CSIVolume) -> str:
    return f'MountVolume.NodeExpandVolume failed for volume "{volume.name}"'
