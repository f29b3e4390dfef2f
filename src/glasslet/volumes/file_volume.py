"""The common part of volumes made of files: a directory on disk or in memory, filled all at once, shown read-only."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Awaitable, Callable, Iterator, Set
from functools import partial

from msgspec import Struct

from glasslet.api.container import VolumeMount
from glasslet.api.pod import Pod
from glasslet.api.volume import EmptyDirVolumeSource
from glasslet.concurrency.clock import Clock
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.atomic_files import DATA, Files, write_together
from glasslet.host.files.layout import RootLayout
from glasslet.host.files.removal import remove_tree
from glasslet.host.files.small_files import make_directory
from glasslet.host.mounts.table import resolved
from glasslet.host.threads import Threads
from glasslet.volumes.ownership import give_to_group, open_to_all
from glasslet.volumes.plugin import WAIT_SECONDS, MountCalls, VolumeProblem, VolumeRequest, volume_key
from glasslet.volumes.problems import SourceUnreachable
from glasslet.volumes.types.empty_dir_size import tmpfs_size

_MODE = 0o777
_NOTES = "kubernetes.io/empty-dir"
_WRAPPED = "wrapped_"
_READY = "ready"

MAX_FILES = 20_000
MAX_BYTES = 64 * 1024 * 1024
"""Bounds of one volume. The agent has it in memory while it writes it."""

Collect = Callable[[VolumeRequest], Awaitable[Files]]
"""Gathers the files of a volume. Raises VolumeProblem, SourceUnreachable while the API server does not answer."""


class Memory(Struct, frozen=True, kw_only=True):
    """Bytes that files in memory may take: the pod's own limit and what the node can give; 0 for no limit."""

    pod_limit: Callable[[Pod], int]
    allocatable: Callable[[], int]

    def size_for(self, pod: Pod) -> int:
        """Bytes that a volume of the pod may take, 0 for the kernel's default."""
        medium = EmptyDirVolumeSource(medium="Memory")
        return tmpfs_size(medium, pod_limit=self.pod_limit(pod), allocatable=self.allocatable())


class _Destination(Struct, frozen=True, kw_only=True):
    """Where a volume is. `ready`: it was made before; `memory`: bytes of the memory to mount, None for the disk."""

    path: str
    notes: str
    ready: bool
    memory: int | None


def check_amount(files: Files) -> None:
    """Raises VolumeProblem for more than a volume may hold."""
    if len(files) > MAX_FILES:
        raise VolumeProblem(f"it would hold {len(files)} files; at most {MAX_FILES} are written into one volume")
    if (total := sum(len(content.data) for content in files.values())) > MAX_BYTES:
        raise VolumeProblem(f"it would hold {total} bytes; at most {MAX_BYTES} are written into one volume")


class FileVolumes:
    """Makes, fills and removes the directories. One for all plugins."""

    def __init__(self, *, root: RootLayout, mounts: MountCalls, threads: Threads, clock: Clock, memory: Memory) -> None:
        self._root = root
        self._mounts = mounts
        self._threads = threads
        self._clock = clock
        self._memory = memory

    async def show(self, plugin: str, request: VolumeRequest, collect: Collect, *, in_memory: bool) -> MountedVolume:
        """Makes the volume hold exactly the files of `collect`. While the API server does not answer, a volume that
        was filled before stays as it is. Raises VolumeProblem, OSError."""
        uid, name = request.pod.metadata.uid, request.volume.name
        path = self._root.volume(uid, plugin, name)
        notes = self._root.volume_notes(uid, _NOTES, f"{_WRAPPED}{name}")
        ready = _is_ready(path, notes, in_memory)
        shown = MountedVolume(name=name, path=path, read_only=True, selinux_relabel=True)
        try:
            files = await collect(request)
        except SourceUnreachable:
            if ready and os.path.exists(f"{path}/{DATA}"):
                return shown
            raise
        check_amount(files)
        size = self._memory.size_for(request.pod) if in_memory and not ready else None
        # In a thread: there may be thousands of files.
        await self._threads.run(
            partial(self._fill, request, _Destination(path=path, notes=notes, ready=ready, memory=size), files),
            on=f"volume {name}: write {plugin.rpartition('/')[2]}",
            key=volume_key(uid, name),
            within=WAIT_SECONDS,
        )
        return shown

    async def tear_down(self, plugin: str, uid: str, volume: str) -> None:
        """Removes the volume with all it holds. Raises OSError."""
        await self._threads.run(
            partial(self._remove, plugin, uid, volume),
            on=f"volume {volume}: remove {plugin.rpartition('/')[2]}",
            key=volume_key(uid, volume),
            within=WAIT_SECONDS,
        )

    def _fill(self, request: VolumeRequest, target: _Destination, files: Files) -> None:
        if not target.ready:
            self._make(target)
        for inside in nested_mounts(request):
            # Other volumes are mounted in this one, which is read-only by then.
            os.makedirs(f"{target.path}/{inside}", mode=0o755, exist_ok=True)
        context = request.pod.spec.security_context
        group = context.fs_group if context is not None else None
        finish = partial(_give, target.path, group) if group is not None else lambda version: None
        write_together(target.path, files, now=self._clock.now(), finish=finish)

    def _make(self, target: _Destination) -> None:
        if target.memory is None:
            _make_directory(target.path)
            _mark_ready(target.notes)
        else:
            self._mount(target.path, target.notes, target.memory)

    def _mount(self, path: str, notes: str, size: int) -> None:
        _make_directory(path)
        there = self._mounts.table().at(resolved(path))
        if there is None or there.fs_type != "tmpfs":
            self._mounts.mount_tmpfs(path, size=size)
        open_to_all(path)
        _mark_ready(notes)

    def _remove(self, plugin: str, uid: str, volume: str) -> None:
        path = self._root.volume(uid, plugin, volume)
        # The mark goes first: half a volume must never look ready.
        remove_tree(self._root.volume_notes(uid, _NOTES, f"{_WRAPPED}{volume}"), self._mounts.table())
        there = self._mounts.table().at(resolved(path))
        if there is not None and there.fs_type == "tmpfs":
            self._mounts.unmount(path)
        remove_tree(path, self._mounts.table())


def nested_mounts(request: VolumeRequest) -> frozenset[str]:
    """Where in this volume other mounts of the same container lie, outermost ones only, relative to the volume."""
    found: set[str] = set()
    spec = request.pod.spec
    for mounts in (
        *(container.volume_mounts for container in (*spec.init_containers, *spec.containers)),
        *(container.volume_mounts for container in spec.ephemeral_containers),
    ):
        bases = {
            _inside_container(mount)
            for mount in mounts
            if mount.name == request.volume.name and not mount.sub_path and not mount.sub_path_expr
        }
        if bases:
            found.update(_outermost(bases, {_inside_container(mount) for mount in mounts}))
    return frozenset(found)


def _inside_container(mount: VolumeMount) -> str:
    # From the root, above which no `..` leads: what is relative to the volume can then not leave it either.
    return posixpath.normpath(f"/{mount.mount_path.lstrip('/')}")


def _outermost(bases: Set[str], places: Set[str]) -> Iterator[str]:
    """Of the places below each base the outermost ones, relative to it."""
    above: list[str] = []
    # A pod may have ten thousand mounts. In this order all that is inside a place follows it at once.
    for place in sorted(places, key=lambda place: place.replace("/", "\0")):
        while above and not place.startswith(f"{above[-1]}/"):
            above.pop()
        if above and above[-1] in bases:
            yield place[len(above[-1]) + 1 :]
        above.append(place)


def _is_ready(path: str, notes: str, in_memory: bool) -> bool:
    if not os.path.exists(f"{notes}/{_READY}"):
        return False
    try:
        own = os.stat(path).st_dev
        # A mount has a device of its own: a stat is cheaper than the mount table.
        return not in_memory or own != os.stat(os.path.dirname(path)).st_dev
    except OSError:
        return False


def _make_directory(path: str) -> None:
    make_directory(os.path.dirname(path), 0o750)
    make_directory(path, _MODE)


def _mark_ready(notes: str) -> None:
    make_directory(notes, 0o750)
    os.close(os.open(f"{notes}/{_READY}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640))


def _give(path: str, group: int, version: str) -> None:
    # The whole volume and not only the new version: its own directory and links belong to the group as well.
    give_to_group(path, group, read_only=True)
