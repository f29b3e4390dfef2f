"""iscsi: a disk of a target, attached and mounted once for all pods of the node, and shown to each."""

from __future__ import annotations

import contextlib
import os
import re
from functools import partial

import msgspec

from glasslet.api.persistent_volume import SecretReference
from glasslet.api.volume import ISCSIVolumeSource
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.layout import RootLayout
from glasslet.host.files.small_files import make_directory
from glasslet.host.mounts.filesystems import mount_disk
from glasslet.host.mounts.iscsi import Chap, ISCSIFailed, ISCSITarget, drop_disk, log_in, log_out
from glasslet.host.mounts.options import joined
from glasslet.host.mounts.table import resolved
from glasslet.host.threads import Lane, ThreadPlace, Threads
from glasslet.kubeapi.errors import APIError
from glasslet.volumes.block_disks import BlockDisks
from glasslet.volumes.data_sources import Objects
from glasslet.volumes.iscsi_disks import (
    NOTE,
    PLUGIN,
    disk_folder,
    disk_folders,
    iqn_of,
    read_note,
    remove_note,
    session_of,
    unique_name,
    write_note,
)
from glasslet.volumes.plugin import REMOTE, WAIT_SECONDS, MountCalls, VolumeProblem, VolumeRequest, volume_key
from glasslet.volumes.pod_binds import PodBinds

_PRIVATE = 0o750
_PORT = ":3260"
_IQN = re.compile(r"(?:iqn|eui|naa)\.[^/\s]+")
_PORTAL = re.compile(r"[^-:/\s][^/\s]*")


class ISCSIVolume:
    """The plugin. `root_of_devices` stands before /dev and /sys."""

    name = PLUGIN
    local = False

    def __init__(
        self, *, root: RootLayout, mounts: MountCalls, threads: Threads, binds: PodBinds, objects: Objects
    ) -> None:
        self._root = root
        self._mounts = mounts
        self._threads = threads
        self._binds = binds
        self._objects = objects
        self._blocks = BlockDisks(root=root, mounts=mounts, plugin=self.name, note=NOTE)
        self._coming: list[str] = []
        self.root_of_devices = ""

    async def attachment(self, request: VolumeRequest) -> str:
        """The disk's name in the node's status."""
        source = request.volume.iscsi or ISCSIVolumeSource()
        return unique_name(source.target_portal, source.iqn, source.lun)

    async def why_not_attached(self, request: VolumeRequest) -> str:
        """Nothing: the controller has nothing to do for it but to say so."""
        return ""

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Attaches the disk. A file system is mounted (an empty disk is formatted) and shown to the pod; a block volume
        is handed over as it is and never written to. Raises VolumeProblem, OSError with what the programs said."""
        source = request.volume.iscsi or ISCSIVolumeSource()
        target = target_of(source, request.name)
        chap = await self._chap(source, request)
        read_only = request.read_only if request.persistent is not None else source.read_only
        request = msgspec.structs.replace(request, read_only=read_only)
        shared = disk_folder(self._root, target, block=request.block)
        attach = self._attach_block if request.block else self._attach_and_mount
        self._coming.append(shared)
        try:
            device = await self._threads.run(
                partial(attach, request, shared, target, chap),
                on=f"volume {request.name}: attach {target.iqn} lun {target.lun}",
                key=f"{self.name}/{target.iqn}",
                within=WAIT_SECONDS,
                place=ThreadPlace(Lane.REMOTE, server=target.portals[0]),
            )
            if request.block:
                return MountedVolume(name=request.volume.name, device=device, read_only=read_only)
            return await self._binds.show(self.name, request, shared)
        finally:
            self._coming.remove(shared)

    async def tear_down(self, uid: str, volume: str) -> None:
        """Unmounts it from the pod, and detaches disks that no pod uses any more. Raises OSError."""
        await self._threads.run(
            partial(self._take_off, uid, volume),
            on=f"volume {volume}: unmount iscsi disk",
            key=volume_key(uid, volume),
            within=WAIT_SECONDS,
            place=REMOTE,
        )
        for block in (False, True):
            for shared in disk_folders(self._root, block=block):
                iqn = iqn_of(shared)
                await self._threads.run(
                    partial(self._release, shared),
                    on=f"volume {volume}: detach {iqn}",
                    key=f"{self.name}/{iqn}",
                    within=WAIT_SECONDS,
                    place=REMOTE,
                )

    async def _chap(self, source: ISCSIVolumeSource, request: VolumeRequest) -> Chap:
        reference = source.secret_ref
        if not (source.chap_auth_discovery or source.chap_auth_session) or reference is None:
            return Chap()
        own = request.pod.metadata.namespace
        namespace = reference.namespace or own if isinstance(reference, SecretReference) else own
        try:
            secret = await self._objects.secret(namespace, reference.name)
        except APIError as error:
            text = f"couldn't get secret {namespace}/{reference.name} error: {error.message}"
            raise VolumeProblem(text, step="WaitForAttach") from error
        values = {name: value.decode("utf-8", "replace") for name, value in secret.data.items()}
        return Chap(discovery=source.chap_auth_discovery, session=source.chap_auth_session, secrets=values)

    def _attach_block(self, request: VolumeRequest, shared: str, target: ISCSITarget, chap: Chap) -> str:
        device = os.path.realpath(self._log_in(shared, target, chap))
        self._blocks.mark(request.pod.metadata.uid, request.name, shared, device)
        return device

    def _attach_and_mount(self, request: VolumeRequest, shared: str, target: ISCSITarget, chap: Chap) -> str:
        if self._mounts.table().at(resolved(shared)) is not None:
            return ""
        device = self._log_in(shared, target, chap)
        source = request.volume.iscsi or ISCSIVolumeSource()
        options = joined(request.mount_options, ("ro",) if request.read_only else ())
        try:
            mount_disk(device, shared, fs_type=source.fs_type or "ext4", options=options)
        except OSError as error:
            raise VolumeProblem(error.strerror or str(error), step="MountDevice") from error
        return device

    def _log_in(self, shared: str, target: ISCSITarget, chap: Chap) -> str:
        make_directory(shared, _PRIVATE)
        # Before the login: whatever happens, it is known how to log out.
        write_note(shared, target)
        try:
            return log_in(target, chap, root=self.root_of_devices)
        except ISCSIFailed as error:
            raise VolumeProblem(error.strerror or "", step="WaitForAttach") from error

    def _take_off(self, uid: str, volume: str) -> None:
        self._binds.take_off(self.name, uid, volume)
        self._blocks.unmark(uid, volume, disk_folders(self._root, block=True))

    def _others(self, shared: str) -> bool:
        """Whether another disk of the same session is attached, or about to be."""
        there = {*disk_folders(self._root, block=False), *disk_folders(self._root, block=True), *self._coming}
        return any(session_of(one) == session_of(shared) for one in there - {shared})

    def _release(self, shared: str) -> None:
        table = self._mounts.table()
        entry = table.at(resolved(shared))
        users = self._binds.users(table, entry) if entry is not None else self._blocks.users(shared)
        if shared in self._coming or users:
            return
        if entry is not None:
            self._mounts.unmount(shared)
        # Without a note no session is known that could be ended; the folder is removed in any case.
        if (target := read_note(shared)) is not None:
            if self._others(shared):
                drop_disk(target, root=self.root_of_devices)
            else:
                log_out(target, root=self.root_of_devices)
            remove_note(shared)
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(shared)


def target_of(source: ISCSIVolumeSource, volume: str) -> ISCSITarget:
    """Returns the disk to attach. Raises VolumeProblem for text that the program would take for an option, or that
    would lead the search for the disk's device out of /dev/disk/by-path."""
    every = (source.target_portal, *source.portals)
    portals = tuple(dict.fromkeys(one if ":" in one else one + _PORT for one in every))
    base = source.iscsi_interface or "default"
    for what, text in (*(("targetPortal", portal) for portal in portals), ("iscsiInterface", base)):
        if not _PORTAL.fullmatch(text):
            raise VolumeProblem(f"iscsi {what} {text!r} is not valid", step="NewMounter initialization")
    if not _IQN.fullmatch(source.iqn):
        raise VolumeProblem(f"iscsi iqn {source.iqn!r} is not valid", step="NewMounter initialization")
    initiator = source.initiator_name or ""
    return ISCSITarget(
        portals=portals,
        iqn=source.iqn,
        lun=source.lun,
        interface=f"{portals[0]}:{volume}" if initiator else base,
        base_interface=base,
        initiator_name=initiator,
    )
