"""csi: volumes of CSI drivers, behind claims or of the pod itself.

attached by the controller ──▶ staged for the node ──▶ published to the pod
       (if the driver wants)        (if it stages)       again: if the driver wants, and after a restart
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Protocol

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.api.storage import CSIDriver
from glasslet.exchange.volume import MountedVolume
from glasslet.volumes.csi.cluster_data import CSIClusterData
from glasslet.volumes.csi.driver_calls import Capability, DriverCalls
from glasslet.volumes.csi.driver_objects import needs_attachment
from glasslet.volumes.csi.errors import PREFIX, Aftermath, CSIProblem, DriverCallFailed, NotTried
from glasslet.volumes.csi.expansion import PublishedAt, VolumeGrowth
from glasslet.volumes.csi.figures import OpenVolume
from glasslet.volumes.csi.places import PLUGIN, unique_name
from glasslet.volumes.csi.publishing import PublishData, Publishing
from glasslet.volumes.csi.selinux import LabelledMounts
from glasslet.volumes.csi.staging import StageData, Staging
from glasslet.volumes.csi.volume_terms import (
    TOKENS,
    CSIVolume,
    fs_group,
    gives_to_group,
    labelled,
    lifecycle_problem,
    pod_attributes,
    volume_capability,
    volume_of,
)
from glasslet.volumes.group_owner import EmitEvent, GroupOwner
from glasslet.volumes.plugin import VolumeProblem, VolumeRequest

_log = logging.getLogger(__name__)


class DriverWishes(Protocol):
    """`csi.driver_objects.DriverObjects`. Raises NotTried."""

    async def get(self, name: str) -> CSIDriver | None: ...


class CSIVolumes:
    """The plugin."""

    name = PLUGIN
    local = False

    def __init__(
        self,
        *,
        calls: DriverCalls,
        wishes: DriverWishes,
        data: CSIClusterData,
        staging: Staging,
        publishing: Publishing,
        growth: VolumeGrowth,
        groups: GroupOwner,
        emit: EmitEvent,
        labels: LabelledMounts | None = None,
    ) -> None:
        self._calls = calls
        self._wishes = wishes
        self._data = data
        self._staging = staging
        self._publishing = publishing
        self._growth = growth
        self._opened: dict[str, dict[str, OpenVolume]] = {}
        self._groups = groups
        self._emit = emit
        self._labels = labels or LabelledMounts()

    async def attachment(self, request: VolumeRequest) -> str:
        """The volume's name in the node's status, "" if no controller attaches it."""
        volume = volume_of(request)
        if volume.inline or self._is_done(request, volume):
            return ""
        wanted = await self._wanted(request, volume)
        return unique_name(volume.driver, volume.handle) if needs_attachment(wanted) else ""

    async def why_not_attached(self, request: VolumeRequest) -> str:
        """What the attachment says: that there is none, or the error of the driver's controller."""
        try:
            await self._data.publish_context(volume_of(request))
        except NotTried as problem:
            return str(problem)
        return ""

    async def stage(self, request: VolumeRequest) -> None:
        """Has the driver stage the volume for all pods of the node. Raises CSIProblem, OSError."""
        volume = volume_of(request)
        uid = request.pod.metadata.uid
        if volume.inline or self._is_done(request, volume):
            return
        wanted = await self._wanted(request, volume)
        volume = self._labelled(request, volume, wanted)

        async def data() -> StageData:
            context = await self._context(volume, wanted)
            return StageData(context, await self._data.secret(volume.stage_secret, "NodeStageSecretRef"))

        try:
            await self._staging.stage(uid, volume, fs_group(request.pod), data)
        except CSIProblem as problem:
            if not await self._goes_on(request, volume, problem):
                raise _at(problem, "SetUpDevice" if volume.block else "MountDevice") from problem

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Has the driver publish the volume to the pod, unless that is done and nothing wants it again. A volume that
        is there stays in use whatever the driver answers. Raises CSIProblem, OSError."""
        volume = volume_of(request)
        uid = request.pod.metadata.uid
        certain = self._publishing.is_certain(uid, volume.name)
        try:
            wanted = await self._wishes.get(volume.driver)
            volume = self._labelled(request, volume, wanted)
            if not certain or (wanted is not None and wanted.spec.requires_republish):
                await self._publish(request, volume, wanted)
        except CSIProblem as problem:
            if not await self._goes_on(request, volume, problem):
                raise _at(problem, "MapPodDevice" if volume.block else "SetUp") from problem
        place = self._publishing.place(uid, volume)
        if volume.block:
            return MountedVolume(name=request.volume.name, device=place.path, read_only=volume.read_only)
        return MountedVolume(
            name=request.volume.name,
            path=place.path,
            read_only=volume.read_only,
            selinux_relabel=not volume.read_only and not volume.label,
        )

    async def expand(self, request: VolumeRequest, mounted: MountedVolume) -> None:
        """Has the driver grow the volume, if it grew. Before the pod has it a failure holds up the pod; later on the
        pod's events tell. Raises VolumeProblem."""
        volume, uid = volume_of(request), request.pod.metadata.uid
        opened = self._opened.setdefault(uid, {})
        if not volume.inline and self._publishing.is_certain(uid, volume.name):
            view = PublishedAt(self._publishing.place(uid, volume).path, self._staging.place(volume).path)
            try:
                await self._growth.grow(request, volume, view)
            except VolumeProblem as problem:
                if request.volume.name not in opened:
                    raise VolumeProblem(f"failed while expanding volume: {problem}") from problem
                text = f'NodeExpandVolume.NodeExpandVolume failed for volume "{volume.name}" : {problem}'
                self._emit(pod_ref(request.pod), "Warning", "VolumeResizeFailed", text)
        opened[request.volume.name] = OpenVolume(
            pod=pod_ref(request.pod),
            volume=request.volume.name,
            name=volume.name,
            driver=volume.driver,
            handle=volume.handle,
            path=self._publishing.place(uid, volume).path,
        )

    def opened(self) -> list[OpenVolume]:
        """The volumes that pods have, as far as this agent has published them or found them."""
        return [one for volumes in self._opened.values() for one in volumes.values()]

    async def tear_down(self, uid: str, volume: str) -> None:
        """Has the driver take the volume back from the pod. Raises VolumeProblem, OSError."""
        for place in await self._publishing.unpublish(uid, volume):
            self._staging.leaves(uid, place)

    async def release(self, uid: str) -> None:
        """Has drivers undo what no pod uses any more. Raises VolumeProblem, OSError."""
        await self._staging.release(uid)
        for one in self._opened.pop(uid, {}).values():
            if not any((one.driver, one.handle) == (other.driver, other.handle) for other in self.opened()):
                self._growth.forget(one.driver, one.handle)

    async def _publish(self, request: VolumeRequest, volume: CSIVolume, wanted: CSIDriver | None) -> None:
        uid, first = request.pod.metadata.uid, not self._publishing.is_certain(request.pod.metadata.uid, volume.name)
        if problem := lifecycle_problem(volume, wanted):
            raise NotTried(f"{PREFIX}mounter.SetupAt failed to check volume lifecycle mode: {problem}")
        able = await self._calls.capabilities(volume.driver, volume=volume.name)
        for_group = gives_to_group(volume, wanted, able)
        await self._publishing.publish(uid, volume, await self._given(request.pod, volume, wanted, able))
        # Once: a walk through a large volume at each republish would never end.
        if first and for_group and not volume.block:
            await self._give(request.pod, volume)

    async def _given(self, pod: Pod, volume: CSIVolume, wanted: CSIDriver | None, able: Collection[int]) -> PublishData:
        attributes = dict(volume.attributes)
        if wanted is not None and wanted.spec.pod_info_on_mount:
            attributes |= pod_attributes(pod, inline=volume.inline)
        tokens = "" if volume.block else await self._data.tokens(pod, wanted)
        if tokens:
            attributes[TOKENS] = tokens
        staged = not volume.inline and (volume.block or Capability.STAGE_UNSTAGE_VOLUME in able)
        return PublishData(
            capability=volume_capability(volume, able, fs_group(pod)),
            staging=self._staging.place(volume).path if staged else "",
            publish_context=await self._context(volume, wanted),
            secrets=await self._data.secret(volume.publish_secret, "NodePublishSecretRef"),
            attributes=attributes,
            hidden=(tokens,),
        )

    async def _context(self, volume: CSIVolume, wanted: CSIDriver | None) -> dict[str, str]:
        if volume.inline or not needs_attachment(wanted):
            return {}
        return await self._data.publish_context(volume)

    async def _give(self, pod: Pod, volume: CSIVolume) -> None:
        path = self._publishing.place(pod.metadata.uid, volume).path
        try:
            await self._groups.give(pod, volume.name, path)
        except OSError as error:
            self._publishing.doubt(pod.metadata.uid, volume.name)
            said = f"applyFSGroup failed for vol {volume.handle}: {error.strerror or error}"
            raise VolumeProblem(said, of=volume.name) from error

    async def _wanted(self, request: VolumeRequest, volume: CSIVolume) -> CSIDriver | None:
        try:
            return await self._wishes.get(volume.driver)
        except NotTried as problem:
            if await self._goes_on(request, volume, problem):
                return None
            raise

    def _labelled(self, request: VolumeRequest, volume: CSIVolume, wanted: CSIDriver | None) -> CSIVolume:
        if volume.inline or volume.block:
            return volume
        return labelled(volume, self._labels.label(request.pod, request.volume.name, volume.modes, wanted))

    def _is_done(self, request: VolumeRequest, volume: CSIVolume) -> bool:
        return self._publishing.is_certain(request.pod.metadata.uid, volume.name)

    async def _goes_on(self, request: VolumeRequest, volume: CSIVolume, problem: CSIProblem) -> bool:
        """Whether the pod has the volume all the same, which then stays in use: it was published by this agent, or by
        an earlier one and nothing could be asked since. The pod's events tell."""
        uid = request.pod.metadata.uid
        asked = problem.aftermath is not Aftermath.TRANSIENT
        if not self._publishing.is_certain(uid, volume.name) and (
            asked or not await self._publishing.is_there(uid, volume)
        ):
            return False
        text = f'MountVolume.SetUp failed for volume "{volume.name}" : {problem}'
        _log.warning("volume stays as it is", extra={"volume": volume.name, "error": str(problem)})
        self._emit(pod_ref(request.pod), "Warning", "FailedMount", text)
        return True


def _at(problem: CSIProblem, step: str) -> CSIProblem:
    """The problem as one of that step, unless it has another than the usual one."""
    if problem.step == "SetUp":
        problem.step = step
    if isinstance(problem, DriverCallFailed) or not str(problem).startswith("driver name"):
        return problem
    return NotTried(f"{PREFIX}{_CLIENT[step]}: {problem}", step=step)


_CLIENT = {
    "MountDevice": "attacher.MountDevice failed to create newCsiDriverClient",
    "SetUp": "mounter.SetUpAt failed to get CSI client",
    "SetUpDevice": "blockMapper.SetUpDevice failed to get CSI client",
    "MapPodDevice": "blockMapper.MapPodDevice failed to get CSI client",
}
"""Upstream's words, by step, for a driver that is not registered."""
