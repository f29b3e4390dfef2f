"""Prepares what a pod needs before its sandbox: directories, cgroup, volumes."""

from __future__ import annotations

from glasslet.api.pod_ref import PodRef
from glasslet.pods.collaborators import WARNING, Cgroups, ConfigurationData, FilesOfPods, PodVolumes, RuntimeHandlers
from glasslet.pods.failures import Retry, StepFailed
from glasslet.pods.memory import PodMemory
from glasslet.pods.planner import POD_LEVEL
from glasslet.pods.reporting import Reporting
from glasslet.record.stations import Station
from glasslet.volumes.errors import VolumeNotReady


class PodPreparer:
    """Prepares pods, and gives back what it prepared."""

    def __init__(
        self,
        *,
        volumes: PodVolumes,
        data: ConfigurationData,
        files: FilesOfPods,
        cgroups: Cgroups,
        handlers: RuntimeHandlers,
        report: Reporting,
    ) -> None:
        self._volumes = volumes
        self._data = data
        self._files = files
        self._cgroups = cgroups
        self._handlers = handlers
        self._report = report
        self._events = report.events
        self._clock = report.clock

    async def prepare(self, memory: PodMemory) -> None:
        """Makes everything and notes it in `memory`. Raises StepFailed."""
        pod, ref = memory.pod, memory.ref
        self._data.register(pod)
        async with self._report.at(Station.CGROUP):
            try:
                memory.cgroup_parent = await self._cgroups.ensure(pod)
            except OSError as error:
                self._events(
                    ref, WARNING, "FailedCreatePodContainer", f"unable to ensure pod container exists: {error}"
                )
                why = f"the pod's cgroup could not be made{_place(error)}: {error.strerror or error}"
                raise StepFailed(POD_LEVEL, why) from error
        async with self._report.at(Station.VOLUMES):
            try:
                await self._files.prepare(pod)
            except OSError as error:
                self._events(ref, WARNING, "Failed", f"error making pod data directories: {error}")
                why = f"the pod's directories could not be made{_place(error)}: {error.strerror or error}"
                raise StepFailed(POD_LEVEL, why) from error
            try:
                self._note_refresh(memory)
                volumes = await self._volumes.prepare(pod)
            except VolumeNotReady as problem:
                self._send_events(ref, problem)
                raise StepFailed(POD_LEVEL, problem.message, retry=Retry.GROWING) from problem
        memory.volumes = volumes
        memory.went_well(POD_LEVEL)

    async def refresh(self, memory: PodMemory) -> None:
        """Brings changed data into the volumes of a running pod. A failure gives events and changes nothing else."""
        self._data.register(memory.pod)
        self._note_refresh(memory)
        try:
            await self._volumes.refresh(memory.pod)
        except VolumeNotReady as problem:
            self._send_events(memory.ref, problem)

    def _send_events(self, ref: PodRef, problem: VolumeNotReady) -> None:
        for one in problem.problems:
            # The words say which of the two it is; a check of the node is a mount's even for a disk.
            of_disk = one.startswith("MapVolume.") and not one.startswith("MapVolume.NodeAffinity")
            self._events(ref, WARNING, "FailedMapVolume" if of_disk else "FailedMount", one)

    def _note_refresh(self, memory: PodMemory) -> None:
        # Noted before the refresh: a change during it needs another one.
        memory.stale = False
        memory.refreshed_for = memory.pod
        memory.refreshed_at = self._clock.monotonic()

    async def give_back(self, memory: PodMemory) -> None:
        """Unmounts the volumes and removes the cgroup of a pod without containers. Raises StepFailed."""
        try:
            await self._volumes.tear_down(memory.ref)
            await self._cgroups.remove(memory.ref)
        except VolumeNotReady as problem:
            raise StepFailed(POD_LEVEL, problem.message, retry=Retry.GROWING) from problem
        except OSError as error:
            raise StepFailed(POD_LEVEL, f"the pod's cgroup could not be removed: {error.strerror}") from error
        self._handlers.release(memory.ref)
        memory.volumes = None
        self._data.forget(memory.ref)


def _place(error: Exception) -> str:
    path = getattr(error, "filename", None)
    return f" ({path})" if path else ""
