"""iscsi: a disk of a target, attached and mounted once for all pods of the node, and shown to each."""

from __future__ import annotations

import contextlib
import os
import re
from functools import partial
from glob import escape as glob_escape
from glob import glob

import msgspec

from glasslet.api.persistent_volume import SecretReference
from glasslet.api.volume import ISCSIVolumeSource
from glasslet.exchange.volume import MountedVolume
from glasslet.host.files.layout import RootLayout, component
from glasslet.host.files.small_files import make_directory, read_regular, write_in_place
from glasslet.host.mounts.filesystems import mount_disk
from glasslet.host.mounts.iscsi import Chap, ISCSIFailed, Target, drop_disk, log_in, log_out
from glasslet.host.mounts.options import joined
from glasslet.host.mounts.table import resolved
from glasslet.host.threads import Lane, Place, Threads
from glasslet.kubeapi.errors import APIError
from glasslet.volumes.data_sources import Objects
from glasslet.volumes.plugin import REMOTE, WAIT_SECONDS, Mounts, VolumeProblem, VolumeRequest, volume_key
from glasslet.volumes.pod_binds import PodBinds

_PRIVATE = 0o750
_NOTE = "iscsi.json"
_MAX_NOTE = 65536
_PORT = ":3260"
_IQN = re.compile(r"(?:iqn|eui|naa)\.[^/\s]+")
_FOLDER = re.compile(r".*?-((?:iqn|eui|naa)\..+)-lun-\d+")


class _Note(msgspec.Struct, rename={"portals": "Portals", "iqn": "Iqn", "lun": "Lun", "interface": "Iface"}):
    """What is kept beside the mount for the end, in the Go kubelet's form."""

    portals: tuple[str, ...]
    iqn: str
    lun: str
    interface: str
    base: str = msgspec.field(default="default", name="InitIface")


class ISCSIVolume:
    """The plugin. `root_of_devices` stands before /dev and /sys."""

    name = "kubernetes.io/iscsi"
    local = False

    def __init__(
        self, *, root: RootLayout, mounts: Mounts, threads: Threads, binds: PodBinds, objects: Objects
    ) -> None:
        self._root = root
        self._mounts = mounts
        self._threads = threads
        self._binds = binds
        self._objects = objects
        self._coming: list[str] = []
        self.root_of_devices = ""

    async def set_up(self, request: VolumeRequest) -> MountedVolume:
        """Attaches the disk, mounts it (an empty one is formatted), and shows it to the pod. Raises VolumeProblem,
        OSError with what the programs said."""
        source = request.volume.iscsi or ISCSIVolumeSource()
        target = target_of(source, request.name)
        chap = await self._chap(source, request)
        read_only = request.read_only if request.persistent is not None else source.read_only
        request = msgspec.structs.replace(request, read_only=read_only)
        shared = self._place(target)
        self._coming.append(shared)
        try:
            await self._threads.run(
                partial(self._attach, request, source, target, chap),
                on=f"volume {request.name}: attach {target.iqn} lun {target.lun}",
                key=f"{self.name}/{target.iqn}",
                within=WAIT_SECONDS,
                place=Place(Lane.REMOTE, server=target.portals[0]),
            )
            return await self._binds.show(self.name, request, shared)
        finally:
            self._coming.remove(shared)

    async def tear_down(self, uid: str, volume: str) -> None:
        """Takes it off the pod, and disks that no pod uses any more off the node. Raises OSError."""
        await self._threads.run(
            partial(self._binds.take_off, self.name, uid, volume),
            on=f"volume {volume}: unmount iscsi disk",
            key=volume_key(uid, volume),
            within=WAIT_SECONDS,
            place=REMOTE,
        )
        for shared in glob(f"{self._root.root_dir}/plugins/{self.name}/iface-*/*"):
            iqn = _iqn_of(shared)
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

    def _place(self, target: Target) -> str:
        folder = component(f"iface-{target.interface}", "iscsi interface")
        disk = component(f"{target.portals[0]}-{target.iqn}-lun-{target.lun}", "iscsi disk")
        return f"{self._root.root_dir}/plugins/{self.name}/{folder}/{disk}"

    def _attach(self, request: VolumeRequest, source: ISCSIVolumeSource, target: Target, chap: Chap) -> None:
        shared = self._place(target)
        if self._mounts.table().at(resolved(shared)) is not None:
            return
        make_directory(shared, _PRIVATE)
        note = _Note(target.portals, target.iqn, str(target.lun), target.interface, target.base_interface)
        # Before the login: whatever happens, it is known how to log out.
        write_in_place(f"{shared}/{_NOTE}", msgspec.json.encode(note), mode=0o600)
        try:
            device = log_in(target, chap, root=self.root_of_devices)
        except ISCSIFailed as error:
            raise VolumeProblem(error.strerror or "", step="WaitForAttach") from error
        options = joined(request.mount_options, ("ro",) if request.read_only else ())
        try:
            mount_disk(device, shared, fs_type=source.fs_type or "ext4", options=options)
        except OSError as error:
            raise VolumeProblem(error.strerror or str(error), step="MountDevice") from error

    def _others(self, shared: str) -> bool:
        """Whether another disk of the same session is attached, or about to be."""
        session = shared.rpartition("-lun-")[0]
        there = {*glob(f"{glob_escape(session)}-lun-*"), *self._coming} - {shared}
        return any(one.rpartition("-lun-")[0] == session for one in there)

    def _release(self, shared: str) -> None:
        table = self._mounts.table()
        entry = table.at(resolved(shared))
        if shared in self._coming or (entry is not None and self._binds.users(table, entry)):
            return
        if entry is not None:
            self._mounts.unmount(shared)
        # Without a (readable) note nobody knows of a session to end; the folder goes in any case.
        with contextlib.suppress(FileNotFoundError, ValueError):
            note = msgspec.json.decode(read_regular(f"{shared}/{_NOTE}", most=_MAX_NOTE), type=_Note)
            target = Target(
                portals=note.portals,
                iqn=note.iqn,
                lun=int(note.lun),
                interface=note.interface,
                base_interface=note.base,
            )
            if self._others(shared):
                drop_disk(target, root=self.root_of_devices)
            else:
                log_out(target, root=self.root_of_devices)
            os.unlink(f"{shared}/{_NOTE}")
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(shared)


def _iqn_of(shared: str) -> str:
    found = _FOLDER.fullmatch(os.path.basename(shared))
    return found[1] if found else shared


def target_of(source: ISCSIVolumeSource, volume: str) -> Target:
    """What is to be attached. Raises VolumeProblem for what the program would take for an option."""
    every = (source.target_portal, *source.portals)
    portals = tuple(dict.fromkeys(one if ":" in one else one + _PORT for one in every))
    base = source.iscsi_interface or "default"
    for what, text in (*(("targetPortal", portal) for portal in portals), ("iscsiInterface", base)):
        if text.startswith(("-", ":")):
            raise VolumeProblem(f"iscsi {what} {text!r} is not valid", step="NewMounter initialization")
    if not _IQN.fullmatch(source.iqn):
        raise VolumeProblem(f"iscsi iqn {source.iqn!r} is not valid", step="NewMounter initialization")
    initiator = source.initiator_name or ""
    return Target(
        portals=portals,
        iqn=source.iqn,
        lun=source.lun,
        interface=f"{portals[0]}:{volume}" if initiator else base,
        base_interface=base,
        initiator_name=initiator,
    )
