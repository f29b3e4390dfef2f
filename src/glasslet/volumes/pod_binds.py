"""Bind mounts into pods of volumes that are on the node already: local ones, attached disks."""

from __future__ import annotations

import os
from functools import partial

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.layout import RootLayout
from glasslet.host.files.removal import remove_tree
from glasslet.host.files.small_files import make_directory
from glasslet.host.mounts.options import joined
from glasslet.host.mounts.table import MountEntry, MountTable, resolved
from glasslet.host.threads import Threads
from glasslet.volumes.group_owner import EmitEvent, GroupOwner
from glasslet.volumes.plugin import REMOTE, WAIT_SECONDS, MountCalls, VolumeRequest, volume_key

_PRIVATE = 0o750
_READY = "ready"


class PodBinds:
    """Makes and unmounts them. One for all plugins."""

    def __init__(
        self, *, root: RootLayout, mounts: MountCalls, threads: Threads, groups: GroupOwner, emit: EmitEvent
    ) -> None:
        self._root = root
        self._mounts = mounts
        self._threads = threads
        self._groups = groups
        self._emit = emit

    async def show(self, plugin: str, request: VolumeRequest, source: str) -> MountedVolume:
        """Binds the directory `source` into the pod's folder and gives it to the pod's group, unless other pods use it
        already. May be repeated; continues where an earlier try stopped. Raises OSError."""
        uid, name = request.pod.metadata.uid, request.name
        path = self._root.volume(uid, plugin, name)
        notes = self._root.volume_notes(uid, plugin, name)
        shared = await self._threads.run(
            partial(self._bind, request, source, path, notes),
            on=f"volume {name}: bind {source}",
            key=volume_key(uid, name),
            within=WAIT_SECONDS,
            place=REMOTE,
        )
        if shared is not None:
            self._check_group(request.pod, name, path, shared)
            if not request.read_only and not shared:
                await self._groups.give(request.pod, name, path)
            make_directory(notes, _PRIVATE)
            os.close(os.open(f"{notes}/{_READY}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640))
        return MountedVolume(name=request.volume.name, path=path, read_only=request.read_only, selinux_relabel=True)

    def take_off(self, plugin: str, uid: str, name: str) -> None:
        """Unmounts it from the pod's folder, never touching what it shows. Blocks. Raises OSError."""
        path = self._root.volume(uid, plugin, name)
        remove_tree(self._root.volume_notes(uid, plugin, name), self._mounts.table())
        if self._mounts.table().at(resolved(path)) is not None:
            self._mounts.unmount(path)
        try:
            # Not a tree: if the mount were still there, its files would go.
            os.rmdir(path)
        except FileNotFoundError:
            return

    def users(self, table: MountTable, entry: MountEntry) -> list[str]:
        """Where pods' folders show the same directory."""
        pods = resolved(self._root.pods()) + "/"
        return [
            other.path
            for other in table.entries
            if other.path.startswith(pods) and (other.device, other.root) == (entry.device, entry.root)
        ]

    def _bind(self, request: VolumeRequest, source: str, path: str, notes: str) -> bool | None:
        """Whether other pods use it; None if this pod is served already."""
        own = resolved(path)
        there = self._mounts.table().at(own)
        if there is not None and os.path.exists(f"{notes}/{_READY}"):
            return None
        make_directory(path, _PRIVATE)
        options = joined(request.mount_options, ("ro",) if request.read_only else ())
        if there is None:
            self._mounts.bind(os.path.realpath(source), path)
        self._mounts.set_options(path, options)
        table = self._mounts.table()
        entry, pod = table.at(own), resolved(self._root.pod(request.pod.metadata.uid))
        return entry is not None and any(not user.startswith(f"{pod}/") for user in self.users(table, entry))

    def _check_group(self, pod: Pod, name: str, path: str, shared: bool) -> None:
        context = pod.spec.security_context
        group = context.fs_group if context is not None else None
        has = os.stat(path).st_gid
        if shared and group is not None and group != has:
            text = (
                f"The requested fsGroup is {group}, but the volume {name} has GID {has}. "
                "The volume may not be shareable."
            )
            self._emit(pod_ref(pod), "Warning", "AlreadyMountedVolume", text)
