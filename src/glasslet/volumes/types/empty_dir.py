"""emptyDir: a directory that lives as long as its pod, on disk, in memory, or in huge pages."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from glasslet.api.pod import Pod
from glasslet.api.volume import EmptyDirVolumeSource
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.layout import RootLayout
from glasslet.host.files.removal import remove_tree
from glasslet.host.files.small_files import make_directory
from glasslet.host.mounts.table import MountEntry, resolved
from glasslet.host.threads import Threads
from glasslet.volumes.ownership import give_to_group, open_to_all
from glasslet.volumes.plugin import WAIT_SECONDS, MountCalls, VolumeProblem, VolumeRequest, volume_key
from glasslet.volumes.types.empty_dir_size import HUGE_PAGES, page_size, tmpfs_size

_MODE = 0o777
_MEMORY = "Memory"
_READY = "ready"
_IN_MEMORY = ("tmpfs", "hugetlbfs")


class EmptyDir:
    """The plugin. `pod_memory_limit` and `allocatable_memory` give bytes, 0 for no limit. `count`: has the file system
    count what is below an empty folder (`ProjectQuotas.count`)."""

    name = "kubernetes.io/empty-dir"
    local = True

    def __init__(
        self,
        *,
        root: RootLayout,
        mounts: MountCalls,
        threads: Threads,
        pod_memory_limit: Callable[[Pod], int],
        allocatable_memory: Callable[[], int],
        count: Callable[[str], object] | None = None,
    ) -> None:
        self._root = root
        self._mounts = mounts
        self._threads = threads
        self._pod_memory_limit = pod_memory_limit
        self._allocatable_memory = allocatable_memory
        self._count = count

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Makes the directory, and mounts memory on it if its medium says so. Raises VolumeProblem, OSError."""
        source = request.volume.empty_dir or EmptyDirVolumeSource()
        uid, name = request.pod.metadata.uid, request.volume.name
        path = self._root.volume(uid, self.name, name)
        notes = self._root.volume_notes(uid, self.name, name)
        if source.medium:
            mount = self._mounting(source, request.pod, path)
            prepare = partial(self._prepare_in_memory, mount, path, notes, _fs_group(request.pod))
            await self._threads.run(
                prepare, on=f"volume {name}: mount {source.medium}", key=volume_key(uid, name), within=WAIT_SECONDS
            )
        elif not _is_ready(path, notes):
            await self._prepare_on_disk(request, path, notes)
        return MountedVolume(name=name, path=path, selinux_relabel=True)

    async def tear_down(self, uid: str, volume: str) -> None:
        """Removes the directory with all it holds. Raises OSError, also while something else is mounted inside."""
        await self._threads.run(
            partial(self._remove, uid, volume),
            on=f"volume {volume}: remove emptyDir",
            key=volume_key(uid, volume),
            within=WAIT_SECONDS,
        )

    async def _prepare_on_disk(self, request: VolumeRequest, path: str, notes: str) -> None:
        found = os.path.isdir(path)
        _make(path)
        group = _fs_group(request.pod)
        # As upstream: a pod without user namespace might change the id of its own files.
        if self._count is not None and not found and request.pod.spec.host_users is False:
            uid, name = request.pod.metadata.uid, request.volume.name
            count = partial(self._count, path)
            await self._threads.run(
                count, on=f"volume {name}: project quota", key=volume_key(uid, name), within=WAIT_SECONDS
            )
        if group is not None and found:
            # What an interrupted set-up, or a lost mark, left behind may be large.
            uid, name = request.pod.metadata.uid, request.volume.name
            give = partial(give_to_group, path, group)
            await self._threads.run(
                give, on=f"volume {name}: set fsGroup", key=volume_key(uid, name), within=WAIT_SECONDS
            )
        elif group is not None:
            give_to_group(path, group)
        _mark_ready(notes)

    def _mounting(self, source: EmptyDirVolumeSource, pod: Pod, path: str) -> Callable[[MountEntry | None], None]:
        """Returns the call that mounts the medium, given the present mount."""
        if source.medium == _MEMORY:
            size = tmpfs_size(source, pod_limit=self._pod_memory_limit(pod), allocatable=self._allocatable_memory())
            return partial(self._mount_memory, path, size)
        if source.medium == HUGE_PAGES or source.medium.startswith(f"{HUGE_PAGES}-"):
            return partial(self._mount_huge_pages, path, page_size(source.medium, pod))
        raise VolumeProblem(f'unknown storage medium "{source.medium}"')

    def _mount_memory(self, path: str, size: int, there: MountEntry | None) -> None:
        if there is None or there.fs_type != "tmpfs":
            self._mounts.mount_tmpfs(path, size=size)

    def _mount_huge_pages(self, path: str, size: str, there: MountEntry | None) -> None:
        if there is None or there.fs_type != "hugetlbfs":
            self._mounts.mount_hugetlbfs(path, page_size=size)

    def _prepare_in_memory(
        self, mount: Callable[[MountEntry | None], None], path: str, notes: str, group: int | None
    ) -> None:
        there = self._mounts.table().at(resolved(path))
        if there is not None and there.fs_type in _IN_MEMORY and os.path.exists(f"{notes}/{_READY}"):
            return
        _make(path)
        mount(there)
        open_to_all(path)
        if group is not None:
            give_to_group(path, group)
        _mark_ready(notes)

    def _remove(self, uid: str, volume: str) -> None:
        path = self._root.volume(uid, self.name, volume)
        # The mark goes first: half a volume must never look ready.
        remove_tree(self._root.volume_notes(uid, self.name, volume), self._mounts.table())
        there = self._mounts.table().at(resolved(path))
        if there is not None and there.fs_type in _IN_MEMORY:
            self._mounts.unmount(path)
        remove_tree(path, self._mounts.table())


def _fs_group(pod: Pod) -> int | None:
    context = pod.spec.security_context
    return context.fs_group if context is not None else None


def _make(path: str) -> None:
    make_directory(os.path.dirname(path), 0o750)
    make_directory(path, _MODE)


def _is_ready(path: str, notes: str) -> bool:
    return os.path.exists(f"{notes}/{_READY}") and os.path.isdir(path)


def _mark_ready(notes: str) -> None:
    make_directory(notes, 0o750)
    os.close(os.open(f"{notes}/{_READY}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640))
