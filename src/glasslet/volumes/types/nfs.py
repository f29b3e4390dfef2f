"""nfs: a directory of a server, mounted for each pod by mount(8) and its helper."""

from __future__ import annotations

import contextlib
import ipaddress
import os
from functools import partial

from glasslet.api.volume import NFSVolumeSource
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.layout import RootLayout
from glasslet.host.files.small_files import make_directory
from glasslet.host.mounts.options import joined
from glasslet.host.mounts.program import mount_by_program
from glasslet.host.mounts.table import resolved
from glasslet.host.threads import HostCallStuck, Lane, ThreadPlace, Threads
from glasslet.volumes.plugin import REMOTE, WAIT_SECONDS, MountCalls, VolumeProblem, VolumeRequest, volume_key

FORCE_AFTER = 60.0
"""Seconds until an unmount that does not end is repeated by force."""

_PRIVATE = 0o750


class NFSVolume:
    """The plugin."""

    name = "kubernetes.io/nfs"
    local = False

    def __init__(self, *, root: RootLayout, mounts: MountCalls, threads: Threads) -> None:
        self._root = root
        self._mounts = mounts
        self._threads = threads

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Mounts the directory. Raises VolumeProblem, OSError with what mount(8) said."""
        source = request.volume.nfs or NFSVolumeSource()
        path = self._root.volume(request.pod.metadata.uid, self.name, request.name)
        # Of a pod's own volume the source says it, of a claimed one the claim.
        read_only = request.read_only if request.persistent is not None else source.read_only
        options = joined(request.mount_options, ("ro",) if read_only else ())
        await self._threads.run(
            partial(self._mount, nfs_source(source), path, options),
            on=f"volume {request.name}: mount {source.server}:{source.path}",
            key=volume_key(request.pod.metadata.uid, request.name),
            within=WAIT_SECONDS,
            place=ThreadPlace(Lane.REMOTE, server=source.server),
        )
        return MountedVolume(name=request.volume.name, path=path, read_only=read_only)

    async def tear_down(self, uid: str, volume: str) -> None:
        """Unmounts it, in the end by force. Raises OSError."""
        path, key = self._root.volume(uid, self.name, volume), volume_key(uid, volume)
        try:
            await self._threads.run(
                partial(self._unmount, path),
                on=f"volume {volume}: unmount nfs",
                key=key,
                within=FORCE_AFTER,
                place=REMOTE,
            )
        except HostCallStuck:
            # Past the thread that hangs: this is what makes the kernel let it go.
            await self._threads.run(
                partial(self._unmount, path, force=True),
                on=f"volume {volume}: unmount nfs by force",
                key=f"{key}/force",
                within=WAIT_SECONDS - FORCE_AFTER,
                place=ThreadPlace(Lane.RELEASE),
            )

    def _mount(self, source: str, path: str, options: tuple[str, ...]) -> None:
        if self._mounts.table().at(resolved(path)) is not None:
            return
        make_directory(path, _PRIVATE)
        try:
            mount_by_program(source, path, "nfs", options)
        except OSError:
            # The error is that of the mount; the next try removes the rest of this one.
            with contextlib.suppress(OSError):
                self._unmount(path)
            raise

    def _unmount(self, path: str, *, force: bool = False) -> None:
        if self._mounts.table().at(resolved(path)) is not None:
            self._mounts.unmount(path, force=force)
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(path)


def nfs_source(source: NFSVolumeSource) -> str:
    """Returns the source for mount(8). Raises VolumeProblem for text that it would take for an option."""
    server = source.server
    if not server or server.startswith("-"):
        raise VolumeProblem(f"nfs server {server!r} is not a host name or address")
    # A name of a host is no address, and needs no brackets.
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(server).version == 6:
            server = f"[{server}]"
    return f"{server}:{source.path}"
