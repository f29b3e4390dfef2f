"""local: a directory or disk of this node behind a PersistentVolume."""

from __future__ import annotations

import os
import stat
from functools import partial

from glasslet.api.persistent_volume import LocalVolumeSource
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.layout import RootLayout
from glasslet.host.files.small_files import make_directory
from glasslet.host.mounts.filesystems import mount_disk
from glasslet.host.mounts.options import joined
from glasslet.host.mounts.table import resolved
from glasslet.host.threads import Threads
from glasslet.volumes.plugin import REMOTE, WAIT_SECONDS, MountCalls, VolumeProblem, VolumeRequest, volume_key
from glasslet.volumes.pod_binds import PodBinds

_PRIVATE = 0o750


class LocalVolume:
    """The plugin."""

    name = "kubernetes.io/local-volume"
    local = False

    def __init__(self, *, root: RootLayout, mounts: MountCalls, threads: Threads, binds: PodBinds) -> None:
        self._root = root
        self._mounts = mounts
        self._threads = threads
        self._binds = binds

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Shows the directory; a disk is mounted once for all pods before, and formatted if there is nothing on it.
        Raises VolumeProblem, OSError."""
        source = request.persistent.spec.local if request.persistent is not None else None
        source = source or LocalVolumeSource()
        if not source.path:
            raise VolumeProblem("local volume source is nil or local path is not set", step="NewMounter initialization")
        if ".." in source.path.split("/"):
            raise VolumeProblem(f"invalid path: {source.path} must not contain '..'")
        if request.persistent is not None and request.persistent.spec.volume_mode == "Block":
            return await self._disk(request, source)
        directory = await self._threads.run(
            partial(self._directory, request, source),
            on=f"volume {request.name}: check {source.path}",
            # The disk is one for all pods.
            key=f"{self.name}/{request.name}",
            within=WAIT_SECONDS,
            place=REMOTE,
        )
        return await self._binds.show(self.name, request, directory)

    async def tear_down(self, uid: str, volume: str) -> None:
        """Unmounts it from the pod, and with the last pod the disk from the node. Raises OSError."""
        await self._threads.run(
            partial(self._binds.take_off, self.name, uid, volume),
            on=f"volume {volume}: unmount local volume",
            key=volume_key(uid, volume),
            within=WAIT_SECONDS,
            place=REMOTE,
        )
        await self._threads.run(
            partial(self._release_disk, volume),
            on=f"volume {volume}: unmount disk",
            key=f"{self.name}/{volume}",
            within=WAIT_SECONDS,
            place=REMOTE,
        )

    async def _disk(self, request: VolumeRequest, source: LocalVolumeSource) -> MountedVolume:
        """The device itself, for containers that want no file system."""
        on = f"volume {request.name}: check {source.path}"
        path = await self._threads.run(partial(_device, source.path), on=on, within=WAIT_SECONDS, place=REMOTE)
        return MountedVolume(name=request.volume.name, device=path, read_only=request.read_only)

    def _directory(self, request: VolumeRequest, source: LocalVolumeSource) -> str:
        """Returns the directory to bind into the pod."""
        try:
            mode = os.stat(source.path).st_mode
        except FileNotFoundError:
            text = f'path "{source.path}" does not exist'
            raise VolumeProblem(text, step="NewMounter initialization") from None
        if stat.S_ISDIR(mode):
            return source.path
        if not stat.S_ISBLK(mode):
            raise VolumeProblem("only directory and block device are supported", step="NewMounter initialization")
        target = self._root.shared_mount(self.name, request.name)
        if self._mounts.table().at(resolved(target)) is None:
            make_directory(target, _PRIVATE)
            options = joined(request.mount_options, ("ro",) if request.read_only else ())
            try:
                mount_disk(source.path, target, fs_type=source.fs_type or "ext4", options=options)
            except OSError as error:
                text = (
                    f"local: failed to mount device {source.path} at {target} (fstype: {source.fs_type or 'ext4'}), "
                    f"error {error.strerror}"
                )
                raise VolumeProblem(text, step="MountDevice") from error
        return target

    def _release_disk(self, volume: str) -> None:
        target = self._root.shared_mount(self.name, volume)
        table = self._mounts.table()
        entry = table.at(resolved(target))
        if entry is not None:
            if self._binds.users(table, entry):
                return
            self._mounts.unmount(target)
        try:
            os.rmdir(target)
        except FileNotFoundError:
            # Removed already.
            return


def _device(path: str) -> str:
    real = os.path.realpath(path)
    if not stat.S_ISBLK(os.stat(real).st_mode):
        raise VolumeProblem(f"{path} is not a block device", step="SetUpDevice")
    return real
