"""What drivers stage: a volume made ready once for all pods of the node, and undone after the last.

The note beside it is written before the call and removed after the driver has undone it, so a killed agent leaves
nothing that the next one does not find. One volume at a time is staged or undone; others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TypeVar

from msgspec import Struct

from glasslet.host.files.small_files import make_directory
from glasslet.host.mounts.table import resolved
from glasslet.host.threads import Threads
from glasslet.record.recorder import Recorder
from glasslet.record.stations import WaitKind
from glasslet.volumes.csi._generated import csi_pb2 as messages
from glasslet.volumes.csi.driver_calls import Capability, DriverCalls
from glasslet.volumes.csi.errors import PREFIX, CSIProblem
from glasslet.volumes.csi.places import CSIPlaces, StagingPlace, VolumeNote, lifecycle_of, read_note, write_note
from glasslet.volumes.csi.selinux import conflict
from glasslet.volumes.csi.volume_states import VolumePresence, after_failure
from glasslet.volumes.csi.volume_terms import CSIVolume, volume_capability
from glasslet.volumes.plugin import REMOTE, WAIT_SECONDS, MountCalls, VolumeProblem

_log = logging.getLogger(__name__)

SWEEP_SECONDS = 60.0
"""Seconds between looks for what no pod uses."""
_PRIVATE = 0o750

T = TypeVar("T")


class StageData(Struct, frozen=True):
    """What the driver is given. `secrets` never leave the call."""

    publish_context: dict[str, str]
    secrets: dict[str, str]

    def __repr__(self) -> str:
        return "StageData(***)"


class Staging:
    """All staged volumes of the node."""

    def __init__(
        self, *, places: CSIPlaces, calls: DriverCalls, mounts: MountCalls, threads: Threads, recorder: Recorder
    ) -> None:
        self._places = places
        self._calls = calls
        self._mounts = mounts
        self._threads = threads
        self._recorder = recorder
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, set[str]] = {}
        self._leaving: dict[str, set[str]] = {}
        self._staged: set[str] = set()
        self._own: set[str] = set()
        """Where this agent tried to stage: notes elsewhere are those of an earlier one."""

    def place(self, volume: CSIVolume) -> StagingPlace:
        """Where the volume is staged. Raises OSError for a name that is no path."""
        if volume.block:
            return self._places.block_staging(volume.name)
        return self._places.staging(volume.driver, volume.handle)

    async def stage(
        self, uid: str, volume: CSIVolume, group: int | None, data: Callable[[], Awaitable[StageData]]
    ) -> None:
        """Stages the volume for the pod, if the driver stages at all; nothing if it is. Raises CSIProblem, OSError."""
        place = self.place(volume)
        self._users.setdefault(place.path, set()).add(uid)
        async with self._alone(place, volume.name):
            await self._free_of_other_label(uid, place, volume)
            if place.path in self._staged:
                return
            able = await self._calls.capabilities(volume.driver, volume=volume.name)
            if Capability.STAGE_UNSTAGE_VOLUME not in able:
                return
            given = await data()
            request = messages.NodeStageVolumeRequest(
                volume_id=volume.handle,
                publish_context=given.publish_context,
                staging_target_path=place.path,
                volume_capability=volume_capability(volume, able, group),
                secrets=given.secrets,
                volume_context=volume.attributes,
            )
            await self._call(place, volume, request)

    async def _free_of_other_label(self, uid: str, place: StagingPlace, volume: CSIVolume) -> None:
        """A volume that is staged with another SELinux label is undone first, if no other pod has it. Raises NotTried,
        VolumeProblem, OSError."""
        note = await self._in_thread(partial(read_note, place.note), volume.name, "note of what is staged")
        if note is None or note.label == volume.label:
            return
        if self._users.get(place.path, set()) - {uid}:
            raise conflict(volume.name)
        if await self._in_thread(partial(self._is_used, place, note), volume.name, "notes of its users"):
            raise conflict(volume.name)
        self._staged.discard(place.path)
        await self._unstage(place, note, volume.name)
        await self._in_thread(partial(self._forget, place), volume.name, "remove the staging directory")

    async def _call(self, place: StagingPlace, volume: CSIVolume, request: messages.NodeStageVolumeRequest) -> None:
        had = await self._in_thread(partial(self._begin, place, _note(volume)), volume.name, "note what is staged")
        inherited = had and place.path not in self._own
        self._own.add(place.path)
        try:
            await self._calls.call(
                volume.driver,
                request,
                messages.NodeStageVolumeResponse,
                volume=volume.name,
                secrets=request.secrets.values(),
            )
        except CSIProblem as problem:
            before = VolumePresence.UNCERTAIN if had else VolumePresence.ABSENT
            if after_failure(before, problem.aftermath, inherited=inherited) is VolumePresence.ABSENT:
                with contextlib.suppress(VolumeProblem, OSError):
                    await self._in_thread(partial(self._forget, place), volume.name, "remove the staging directory")
            raise
        self._staged.add(place.path)

    def leaves(self, uid: str, place: StagingPlace) -> None:
        """The pod used what is staged there, and does so no more."""
        self._users.get(place.path, set()).discard(uid)
        self._leaving.setdefault(uid, set()).add(place.path)

    async def release(self, uid: str) -> None:
        """The pod uses nothing any more: what no other uses is undone. May be repeated. Raises VolumeProblem, OSError
        while a driver does not undo it."""
        leaving = self._leaving.setdefault(uid, set())
        for path, users in list(self._users.items()):
            if uid in users:
                users.discard(uid)
                leaving.add(path)
            if not users:
                del self._users[path]
        if leaving:
            found = {place.path: (place, note) for place, note in await self._all()}
            for path in sorted(leaving):
                if path in found:
                    await self._undo_unused(*found[path])
                leaving.discard(path)
        del self._leaving[uid]

    async def sweep(self) -> None:
        """Undoes what no pod uses: the agent was killed between unpublish and unstage, or its pod is long gone."""
        for place, note in await self._all():
            try:
                await self._undo_unused(place, note)
            except (VolumeProblem, OSError) as error:
                fields = {"driver": note.driver, "path": place.path, "error": str(error)}
                _log.warning("unused volume stays staged", extra=fields)

    async def run(self) -> None:
        """Sweeps from time to time until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self.sweep()

    async def _undo_unused(self, place: StagingPlace, note: VolumeNote) -> None:
        name = place.name or note.name or note.handle
        async with self._alone(place, name):
            if self._users.get(place.path):
                return
            if await self._in_thread(partial(self._is_used, place, note), name, "notes of its users"):
                return
            # Whatever the driver answers, it is not known to be staged from here on.
            self._staged.discard(place.path)
            # A disk of a driver that does not stage has a note, and no directory.
            if not place.name or os.path.lexists(place.path):
                await self._unstage(place, note, name)
            await self._in_thread(partial(self._forget, place), name, "remove the staging directory")
            self._own.discard(place.path)

    async def _unstage(self, place: StagingPlace, note: VolumeNote, name: str) -> None:
        try:
            await self._calls.call(
                note.driver,
                messages.NodeUnstageVolumeRequest(volume_id=note.handle, staging_target_path=place.path),
                messages.NodeUnstageVolumeResponse,
                volume=name,
            )
        except CSIProblem as problem:
            text = f"{PREFIX}attacher.UnmountDevice failed: {problem}"
            raise VolumeProblem(text, step="UnmountDevice", of=name) from problem

    @contextlib.asynccontextmanager
    async def _alone(self, place: StagingPlace, name: str) -> AsyncIterator[None]:
        lock = self._locks.setdefault(place.path, asyncio.Lock())
        with self._recorder.wait(WaitKind.QUEUE, on=f"volume {name}: another pod's call of its driver to end"):
            await lock.acquire()
        try:
            yield
        finally:
            lock.release()

    async def _all(self) -> list[tuple[StagingPlace, VolumeNote]]:
        return await self._in_thread(lambda: list(self._places.all_staged()), "", "notes of staged volumes")

    async def _in_thread(self, call: Callable[[], T], name: str, what: str) -> T:
        on = f"volume {name}: {what}" if name else what
        return await self._threads.run(call, on=on, key=f"csi {name}", within=WAIT_SECONDS, place=REMOTE)

    def _begin(self, place: StagingPlace, note: VolumeNote) -> bool:
        """Whether there was a note already."""
        had = read_note(place.note) is not None
        make_directory(place.folder, _PRIVATE)
        if self._mounts.table().at(resolved(place.path)) is None:
            make_directory(place.path, _PRIVATE)
        write_note(place.note, note)
        return had

    def _is_used(self, place: StagingPlace, note: VolumeNote) -> bool:
        if place.name:
            return bool(self._places.block_users(place.name))
        return any(
            (other.driver, other.handle, other.inline) == (note.driver, note.handle, False)
            for _, other in self._places.all_published()
        )

    def _forget(self, place: StagingPlace) -> None:
        """Removes directory and note, never through a mount. Raises VolumeProblem, OSError."""
        if self._mounts.table().at_or_below(resolved(place.path)):
            raise VolumeProblem(f"the driver says that it is undone, but {place.path} is still mounted")
        for folder in (place.path, *((f"{place.folder}/dev",) if place.name else ())):
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(folder)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place.note)
        for folder in dict.fromkeys((os.path.dirname(place.note), place.folder)):
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(folder)


def _note(volume: CSIVolume) -> VolumeNote:
    if not volume.block:
        return VolumeNote(driver=volume.driver, handle=volume.handle, label=volume.label)
    lifecycle = lifecycle_of(inline=False)
    return VolumeNote(driver=volume.driver, handle=volume.handle, name=volume.name, lifecycle=lifecycle)
