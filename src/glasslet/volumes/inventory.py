"""What volumes are on the node now, read from disk and mount table, for people. Nothing here is decided by it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from glasslet.answers.volumes import DriverRow, StagedRow, VolumeRow, VolumesAnswer
from glasslet.host.files.layout import RootLayout
from glasslet.host.mounts.table import MountTable, resolved
from glasslet.host.threads import MEASURE, HostCallStuck, Threads
from glasslet.record.stations import WaitKind
from glasslet.volumes.csi.drivers import Drivers
from glasslet.volumes.csi.places import PLUGIN, CSIPlaces, read_note
from glasslet.volumes.plugin import MountCalls

PATIENCE = 2.0
"""Seconds for the size of each volume: a dead server holds up no other row."""
_MOST = 5000
"""Volumes that are listed."""


class VolumeInventory:
    """`pods`: names (`namespace/name`) of the pods of this node, by uid."""

    def __init__(
        self,
        *,
        root: RootLayout,
        mounts: MountCalls,
        threads: Threads,
        drivers: Drivers,
        pods: Callable[[], Mapping[str, str]],
    ) -> None:
        self._root = root
        self._places = CSIPlaces(root)
        self._mounts = mounts
        self._threads = threads
        self._drivers = drivers
        self._pods = pods

    async def __call__(self) -> VolumesAnswer:
        """All of them; a size that does not come in time is left out."""
        pods = self._pods()
        try:
            answer = await self._threads.run(partial(self._read, pods), on="list of volumes", place=MEASURE)
        except OSError as error:
            return VolumesAnswer(problem=error.strerror or str(error))
        rows = await asyncio.gather(*(self._with_size(row) for row in answer.volumes))
        return replace(answer, volumes=tuple(rows))

    def _read(self, pods: Mapping[str, str]) -> VolumesAnswer:
        table = self._mounts.table()
        volumes = []
        for row in self._rows(pods, table):
            volumes.append(row)
            if len(volumes) == _MOST:
                break
        return VolumesAnswer(
            volumes=tuple(volumes),
            staged=tuple(self._staged(pods, table)),
            drivers=tuple(
                DriverRow(name=one.name, endpoint=one.endpoint, version=".".join(map(str, one.version)))
                for one in self._drivers.all()
            ),
        )

    def _rows(self, pods: Mapping[str, str], table: MountTable) -> Iterator[VolumeRow]:
        for uid in _names(self._root.pods()):
            for parent, device in ((self._root.volumes(uid), False), (self._root.volume_devices(uid), True)):
                for plugin in _names(parent):
                    for name in _names(f"{parent}/{plugin}"):
                        row = VolumeRow(
                            pod=pods.get(uid, ""),
                            uid=uid,
                            volume=name,
                            plugin=plugin.replace("~", "/"),
                            path=f"{parent}/{plugin}/{name}",
                            device=device,
                        )
                        yield self._of_driver(row, table) if row.plugin == PLUGIN else _with_mount(row, table)

    def _of_driver(self, row: VolumeRow, table: MountTable) -> VolumeRow:
        if row.device:
            place = self._places.block_published(row.uid, row.volume)
        else:
            place = self._places.published(row.uid, row.volume)
        row = _with_mount(replace(row, path=place.path), table)
        note = read_note(place.note)
        return row if note is None else replace(row, driver=note.driver, handle=note.handle, published=True)

    def _staged(self, pods: Mapping[str, str], table: MountTable) -> Iterator[StagedRow]:
        published = list(self._places.all_published())
        for place, note in self._places.all_staged():
            users = self._places.block_users(place.name) if place.name else []
            if not place.name:
                users = [uid for uid, other in published if (other.driver, other.handle) == (note.driver, note.handle)]
            entry = table.at(resolved(place.path))
            yield StagedRow(
                driver=note.driver,
                handle=note.handle,
                path=place.path,
                mounted=entry.fs_type if entry is not None else "",
                users=tuple(pods.get(uid, uid) for uid in users),
            )

    async def _with_size(self, row: VolumeRow) -> VolumeRow:
        if not row.mounted or row.device:
            return row
        try:
            found = await self._threads.run(
                partial(os.statvfs, row.path),
                on=f"size of volume {row.volume}",
                key=f"size {row.path}",
                kind=WaitKind.VOLUME,
                within=PATIENCE,
                place=MEASURE,
            )
        except (HostCallStuck, OSError):
            return row
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        return replace(row, capacity=found.f_blocks * found.f_frsize, used=used)


def _with_mount(row: VolumeRow, table: MountTable) -> VolumeRow:
    entry = table.at(resolved(row.path))
    return row if entry is None else replace(row, mounted=entry.fs_type)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
