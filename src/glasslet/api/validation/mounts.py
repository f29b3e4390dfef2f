"""Volume mounts and block devices of a container: they name volumes of the pod, each path and device once."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.api.container import Container, EphemeralContainer, VolumeDevice, VolumeMount
from glasslet.api.field_errors import FieldPath, forbidden, invalid, not_found, not_supported, required
from glasslet.api.validation.rules import Errors, below_folder
from glasslet.api.volume import Volume

AnyContainer = Container | EphemeralContainer
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def mount_errors(container: AnyContainer, path: FieldPath, volumes: Mapping[str, Volume]) -> Errors:
    """`volumeMounts` and `volumeDevices` of a container; `volumes` are the pod's usable ones."""
    devices = {device.name: device.device_path for device in container.volume_devices}
    mounts = {mount.name: mount.mount_path for mount in container.volume_mounts}
    taken: set[str] = set()
    for number, mount in enumerate(container.volume_mounts):
        here = path.child("volumeMounts").at(number)
        yield from _mount(mount, here, volumes)
        if mount.mount_path in taken:
            yield invalid(here.child("mountPath"), mount.mount_path, "must be unique")
        taken.add(mount.mount_path)
        if mount.name in devices:
            yield invalid(here.child("name"), mount.name, "must not already exist in volumeDevices")
        if mount.mount_path in devices.values():
            text = "must not already exist as a path in volumeDevices"
            yield invalid(here.child("mountPath"), mount.mount_path, text)
        # The paths of these errors lack the index, upstream as here: a known peculiarity that tools may rely on.
        yield from _how(mount, path.child("volumeMounts"), here, privileged=_is_privileged(container))
    yield from _devices(container.volume_devices, path.child("volumeDevices"), volumes, mounts)


def _mount(mount: VolumeMount, path: FieldPath, volumes: Mapping[str, Volume]) -> Errors:
    if not mount.name:
        yield required(path.child("name"))
    if mount.name not in volumes:
        yield not_found(path.child("name"), mount.name)
    if not mount.mount_path:
        yield required(path.child("mountPath"))


def _how(mount: VolumeMount, path: FieldPath, own: FieldPath, *, privileged: bool) -> Errors:
    if mount.sub_path:
        yield from below_folder(mount.sub_path, path.child("subPath"))
    if mount.sub_path_expr:
        if mount.sub_path:
            text = "subPathExpr and subPath are mutually exclusive"
            yield invalid(own.child("subPathExpr"), mount.sub_path_expr, text)
        yield from below_folder(mount.sub_path_expr, path.child("subPathExpr"))
    propagation, recursive = mount.mount_propagation, mount.recursive_read_only
    here = path.child("mountPropagation")
    if propagation is not None and propagation not in _PROPAGATIONS:
        yield not_supported(here, propagation, _PROPAGATIONS)
    if propagation == "Bidirectional" and not privileged:
        yield forbidden(here, "Bidirectional mount propagation is available only to privileged containers")
    here = path.child("recursiveReadOnly")
    if recursive in ("Enabled", "IfPossible"):
        if not mount.read_only:
            yield forbidden(here, "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            yield forbidden(here, "may only be specified when mountPropagation is None or not specified")
    elif recursive not in (None, "Disabled"):
        yield not_supported(here, recursive, _RECURSIVE)


def _devices(
    devices: tuple[VolumeDevice, ...], path: FieldPath, volumes: Mapping[str, Volume], mounts: Mapping[str, str]
) -> Errors:
    names: set[str] = set()
    paths: set[str] = set()
    for number, device in enumerate(devices):
        name, device_path, here = device.name, device.device_path, path.at(number)
        volume = volumes.get(name)
        if not name:
            yield required(here.child("name"))
        if name in names:
            yield invalid(here.child("name"), name, "must be unique")
        if volume is None:
            yield not_found(here.child("name"), name)
        elif volume.persistent_volume_claim is None and volume.ephemeral is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(here.child("name"), name, text)
        if not device_path:
            yield required(here.child("devicePath"))
        if device_path in paths:
            yield invalid(here.child("devicePath"), device_path, "must be unique")
        if ".." in device_path.split("/"):
            yield invalid(here.child("devicePath"), device_path, "can not contain backsteps ('..')")
        else:
            paths.add(device_path)
        if name in mounts:
            yield invalid(here.child("name"), name, "must not already exist in volumeMounts")
        if device_path in mounts.values():
            yield invalid(here.child("devicePath"), device_path, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)


def _is_privileged(container: AnyContainer) -> bool:
    return container.security_context is not None and container.security_context.privileged is True
