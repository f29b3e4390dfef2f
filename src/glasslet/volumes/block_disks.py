"""Disks that are handed to containers as they are (`volumeMode: Block`): which pod uses which, by what is on disk.

    pods/<uid>/volumeDevices/kubernetes.io~iscsi/<volume> -> /dev/sdb         the pod has it
    plugins/kubernetes.io/iscsi/volumeDevices/<disk>/<uid>                    a pod uses the disk

Both are the Go kubelet's places; it mounts the device on the second one.
"""

from __future__ import annotations

import contextlib
import os

from glasslet.host.files.layout import RootLayout, component
from glasslet.host.files.small_files import make_directory, read_regular, write_atomically
from glasslet.host.mounts.table import resolved
from glasslet.volumes.plugin import MountCalls

_PRIVATE = 0o750
_MAX_NAME = 4096


class BlockDisks:
    """The marks of one plugin; `note` is its own file in a disk's folder. Blocks. Every method raises OSError."""

    def __init__(self, *, root: RootLayout, mounts: MountCalls, plugin: str, note: str) -> None:
        self._root = root
        self._mounts = mounts
        self._plugin = plugin
        self._note = note

    def mark(self, uid: str, volume: str, disk: str, device: str) -> None:
        """The pod uses the device as its volume. `disk`: the folder of the disk."""
        mark = f"{disk}/{component(uid, 'pod uid')}"
        if not os.path.lexists(mark):
            write_atomically(mark, volume.encode())
        link = self._root.volume_device(uid, self._plugin, volume)
        make_directory(os.path.dirname(link), _PRIVATE)
        if os.path.lexists(link) and os.readlink(link) != device:
            os.unlink(link)
        if not os.path.lexists(link):
            os.symlink(device, link)

    def unmark(self, uid: str, volume: str, disks: list[str]) -> None:
        """The pod no longer uses the volume. `disks`: folders of all disks."""
        link = self._root.volume_device(uid, self._plugin, volume)
        if not os.path.lexists(link):
            return
        for disk in disks:
            mark = f"{disk}/{component(uid, 'pod uid')}"
            if self._is_of(mark, volume, link):
                if self._mounts.table().at(resolved(mark)) is not None:
                    self._mounts.unmount(mark)
                os.unlink(mark)
        # Last: without it nothing leads here again.
        os.unlink(link)

    def users(self, disk: str) -> list[str]:
        """UIDs of the pods that use a disk."""
        with contextlib.suppress(FileNotFoundError):
            return [name for name in os.listdir(disk) if name != self._note and not name.startswith(".")]
        return []

    def _is_of(self, mark: str, volume: str, link: str) -> bool:
        """Whether a mark is the volume's. One of the Go kubelet shows the device itself."""
        if self._mounts.table().at(resolved(mark)) is not None:
            with contextlib.suppress(OSError):
                return os.path.samefile(mark, link) or os.stat(mark).st_rdev == os.stat(link).st_rdev
            return True
        try:
            return read_regular(mark, most=_MAX_NAME) == volume.encode()
        except FileNotFoundError:
            return False
