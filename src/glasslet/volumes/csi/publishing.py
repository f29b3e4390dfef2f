"""What drivers publish: a volume shown to one pod. The note is written before the call and removed after the driver has
taken it back; by it alone a later agent knows what to undo."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from msgspec import Struct

from glasslet.host.files.small_files import make_directory
from glasslet.host.mounts.table import resolved
from glasslet.host.threads import Threads
from glasslet.volumes.csi._generated import csi_pb2 as messages
from glasslet.volumes.csi.driver_calls import DriverCalls
from glasslet.volumes.csi.errors import PREFIX, CSIProblem
from glasslet.volumes.csi.places import (
    CSIPlaces,
    PublishPlace,
    StagingPlace,
    VolumeNote,
    attachment_name,
    lifecycle_of,
    read_note,
    write_note,
)
from glasslet.volumes.csi.volume_states import VolumePresence, after_failure
from glasslet.volumes.csi.volume_terms import CSIVolume
from glasslet.volumes.plugin import REMOTE, WAIT_SECONDS, MountCalls, VolumeProblem, volume_key

_PRIVATE = 0o750

T = TypeVar("T")


class PublishData(Struct, frozen=True):
    """What the driver is given. `staging`: where it staged the volume, "" if it did not; `secrets` and tokens in
    `attributes` never leave the call."""

    capability: messages.VolumeCapability
    staging: str
    publish_context: Mapping[str, str]
    secrets: Mapping[str, str]
    attributes: Mapping[str, str]
    hidden: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "PublishData(***)"


class Publishing:
    """All volumes that are published to pods of the node, whose name is `node`."""

    def __init__(
        self, *, places: CSIPlaces, calls: DriverCalls, mounts: MountCalls, threads: Threads, node: str
    ) -> None:
        self._places = places
        self._calls = calls
        self._mounts = mounts
        self._threads = threads
        self._node = node
        self._published: set[tuple[str, str]] = set()
        self._own: set[tuple[str, str]] = set()

    def place(self, uid: str, volume: CSIVolume) -> PublishPlace:
        """Where the pod has the volume. Raises OSError for a name that is no path."""
        if volume.block:
            return self._places.block_published(uid, volume.name)
        return self._places.published(uid, volume.name)

    def is_certain(self, uid: str, name: str) -> bool:
        """Whether this agent has published it."""
        return (uid, name) in self._published

    def doubt(self, uid: str, name: str) -> None:
        """Something after the call failed: it is published again."""
        self._published.discard((uid, name))

    async def is_there(self, uid: str, volume: CSIVolume) -> bool:
        """Whether an earlier agent published it and it is still mounted, or its device still held."""
        return await self._in_thread(partial(self._is_there, self.place(uid, volume)), uid, volume.name, "is it there")

    async def publish(self, uid: str, volume: CSIVolume, data: PublishData) -> None:
        """Publishes the volume, or publishes it again with fresh data. Raises CSIProblem, OSError."""
        place, key = self.place(uid, volume), (uid, volume.name)
        had = await self._in_thread(partial(self._begin, place, volume), uid, volume.name, "note what is published")
        inherited = had and key not in self._own
        self._own.add(key)
        request = messages.NodePublishVolumeRequest(
            volume_id=volume.handle,
            publish_context=data.publish_context,
            staging_target_path=data.staging,
            target_path=place.path,
            volume_capability=data.capability,
            readonly=volume.read_only,
            secrets=data.secrets,
            volume_context=data.attributes,
        )
        try:
            await self._calls.call(
                volume.driver,
                request,
                messages.NodePublishVolumeResponse,
                volume=volume.name,
                secrets=(*data.secrets.values(), *data.hidden),
            )
        except CSIProblem as problem:
            before = VolumePresence.UNCERTAIN if had else VolumePresence.ABSENT
            if key in self._published:
                before = VolumePresence.PRESENT
            if after_failure(before, problem.aftermath, inherited=inherited) is VolumePresence.ABSENT:
                with contextlib.suppress(VolumeProblem, OSError):
                    await self._in_thread(partial(self._forget, place), uid, volume.name, "remove its directory")
            raise
        if volume.block:
            await self._in_thread(partial(self._hold, place), uid, volume.name, "hold its device")
        self._published.add(key)

    async def unpublish(self, uid: str, name: str) -> list[StagingPlace]:
        """Takes the volume of that name back from the pod, by what is on disk. Returns where it may be staged. Raises
        VolumeProblem, OSError."""
        left: list[StagingPlace] = []
        for place in self._places.of_pod(uid, name):
            if not os.path.lexists(place.link or os.path.dirname(place.path)):
                continue
            note = await self._in_thread(partial(self._note_of, place), uid, name, "note of what is published")
            self._published.discard((uid, name))
            if note is not None:
                await self._undo(uid, name, place, note)
                if not note.inline:
                    is_block = bool(place.link)
                    left.append(
                        self._places.block_staging(name) if is_block else self._places.staging(note.driver, note.handle)
                    )
            await self._in_thread(partial(self._forget, place), uid, name, "remove its directory")
            self._own.discard((uid, name))
        return left

    async def _undo(self, uid: str, name: str, place: PublishPlace, note: VolumeNote) -> None:
        if place.mark:
            await self._in_thread(partial(self._let_go, place), uid, name, "let its device go")
        try:
            await self._calls.call(
                note.driver,
                messages.NodeUnpublishVolumeRequest(volume_id=note.handle, target_path=place.path),
                messages.NodeUnpublishVolumeResponse,
                volume=name,
            )
        except CSIProblem as problem:
            text = f"{PREFIX}Unmounter.TearDownAt failed: {problem}"
            raise VolumeProblem(text, step="TearDown", of=name) from problem

    async def _in_thread(self, call: Callable[[], T], uid: str, name: str, what: str) -> T:
        on, key = f"volume {name}: {what}", volume_key(uid, name)
        return await self._threads.run(call, on=on, key=key, within=WAIT_SECONDS, place=REMOTE)

    def _begin(self, place: PublishPlace, volume: CSIVolume) -> bool:
        """Whether there was something already."""
        had = os.path.lexists(place.mark) if place.mark else read_note(place.note) is not None
        make_directory(os.path.dirname(place.path), _PRIVATE)
        attachment = "" if volume.inline else attachment_name(volume.handle, volume.driver, self._node)
        note = VolumeNote(
            driver=volume.driver,
            handle=volume.handle,
            name=volume.name,
            node=self._node,
            attachment=attachment,
            lifecycle=lifecycle_of(inline=volume.inline),
            label=volume.label,
        )
        write_note(place.note, note)
        if place.mark:
            for path in (place.mark, place.link):
                make_directory(os.path.dirname(path), _PRIVATE)
            if not os.path.lexists(place.mark):
                os.close(os.open(place.mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE))
            if not os.path.lexists(place.link):
                # By the link a later agent finds the volume.
                os.symlink(place.path, place.link)
        return had

    def _is_there(self, place: PublishPlace) -> bool:
        if read_note(place.note) is None:
            return False
        return self._mounts.table().at(resolved(place.mark or place.path)) is not None

    def _hold(self, place: PublishPlace) -> None:
        """Keeps the device at a place of the agent's own, as the Go kubelet does."""
        device = os.path.realpath(place.path)
        if self._mounts.table().at(resolved(place.mark)) is None:
            self._mounts.bind(device, place.mark)
        if os.readlink(place.link) != device:
            os.unlink(place.link)
            os.symlink(device, place.link)

    def _let_go(self, place: PublishPlace) -> None:
        if self._mounts.table().at(resolved(place.mark)) is not None:
            self._mounts.unmount(place.mark)

    def _note_of(self, place: PublishPlace) -> VolumeNote | None:
        """The note; where it is lost, that of what is staged and shown there. Raises VolumeProblem if something is
        mounted and nothing says whose it is."""
        if (note := read_note(place.note)) is not None:
            return note
        table = self._mounts.table()
        here = table.at(resolved(place.path))
        if here is None:
            return None
        for staging, found in self._places.all_staged():
            there = table.at(resolved(staging.path))
            if there is not None and (there.device, there.root) == (here.device, here.root):
                return found
        raise VolumeProblem(f"{place.path} is mounted, and {place.note}, which says by which driver, cannot be read")

    def _forget(self, place: PublishPlace) -> None:
        """Removes directory, note and link, never through a mount. Raises VolumeProblem, OSError."""
        if self._mounts.table().at_or_below(resolved(place.path)):
            raise VolumeProblem(f"the driver says that it is unpublished, but {place.path} is still mounted")
        with contextlib.suppress(FileNotFoundError):
            if place.link:
                os.unlink(place.path)
            else:
                os.rmdir(place.path)
        # The link goes last: by it the volume is found.
        for path in (place.mark, place.link) if place.link else (place.note,):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(os.path.dirname(place.path))
