"""Mounts of a container: its volumes in spec order, then /etc/hosts, then the termination log."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.api.container import VolumeMount
from glasslet.exchange.volume import MountedVolume, SubPath
from glasslet.podspec.environment import environment
from glasslet.podspec.errors import container_error
from glasslet.podspec.expansion import expand_strictly
from glasslet.podspec.request import ContainerRequest
from glasslet.runtime.spec import Device, IdMapping, Mount, MountPropagation

ETC_HOSTS = "/etc/hosts"

_PROPAGATION = {
    None: MountPropagation.PRIVATE,
    "None": MountPropagation.PRIVATE,
    "HostToContainer": MountPropagation.HOST_TO_CONTAINER,
    "Bidirectional": MountPropagation.BIDIRECTIONAL,
}


def container_mounts(request: ContainerRequest, envs: Mapping[str, str]) -> tuple[Mount, ...]:
    """All mounts of a container. Raises ConfigError."""
    container = request.container
    uids, gids = _id_mappings(request)
    mounts = [_volume_mount(request, index, envs, uids, gids) for index in range(len(container.volume_mounts))]
    managed = (
        [] if any(m.mount_path == ETC_HOSTS for m in container.volume_mounts) else [(ETC_HOSTS, request.etc_hosts)]
    )
    managed.append((container.termination_message_path, request.termination_log))
    mounts.extend(
        Mount(
            container_path=_absolute(inside),
            host_path=on_host,
            selinux_relabel=request.node.selinux,
            uid_mappings=uids,
            gid_mappings=gids,
        )
        for inside, on_host in managed
        if inside and on_host
    )
    return tuple(mounts)


def container_devices(request: ContainerRequest) -> tuple[Device, ...]:
    """Block devices of a container (volumeDevices). Raises ConfigError."""
    devices = []
    for wanted in request.container.volume_devices:
        volume = request.volumes.get(wanted.name)
        if volume is None or not volume.device:
            raise container_error(
                f'cannot find volume "{wanted.name}" to pass into container "{request.container.name}"'
            )
        permissions = "r" if volume.read_only else "mrw"
        devices.append(Device(container_path=wanted.device_path, host_path=volume.device, permissions=permissions))
    return tuple(devices)


def sub_paths(request: ContainerRequest) -> tuple[SubPath, ...]:
    """The parts of volumes that must be bound on the host before this container can be created.
    Raises ConfigError, also for what the environment lacks."""
    mounts = request.container.volume_mounts
    if not any(mount.sub_path or mount.sub_path_expr for mount in mounts):
        return ()
    envs = environment(request) if any(mount.sub_path_expr for mount in mounts) else {}
    wanted = []
    for index, mount in enumerate(mounts):
        path = _sub_path(mount, envs)
        volume = _volume(request, mount)
        if path and not volume.image:
            read_only = mount.read_only or volume.read_only
            wanted.append(SubPath(index=index, volume=mount.name, path=path, read_only=read_only))
    return tuple(wanted)


def _volume_mount(
    request: ContainerRequest,
    index: int,
    envs: Mapping[str, str],
    uids: tuple[IdMapping, ...],
    gids: tuple[IdMapping, ...],
) -> Mount:
    mount = request.container.volume_mounts[index]
    volume = _volume(request, mount)
    path = _sub_path(mount, envs)
    able = request.runtime_handler in request.node.recursive_read_only_handlers
    return Mount(
        container_path=_absolute(mount.mount_path),
        host_path=_host_path(request, index, volume, path),
        readonly=mount.read_only or volume.read_only,
        selinux_relabel=volume.selinux_relabel and request.node.selinux,
        propagation=_propagation(mount),
        recursive_read_only=_recursive_read_only(mount, able),
        uid_mappings=uids,
        gid_mappings=gids,
        image=volume.image,
        image_sub_path=path if volume.image else "",
    )


def _volume(request: ContainerRequest, mount: VolumeMount) -> MountedVolume:
    volume = request.volumes.get(mount.name)
    if volume is None:
        raise container_error(f'cannot find volume "{mount.name}" to mount into container "{request.container.name}"')
    return volume


def _host_path(request: ContainerRequest, index: int, volume: MountedVolume, path: str) -> str:
    if volume.image:
        return ""
    if not path:
        return volume.path
    bound = request.sub_paths.get(index)
    if bound is None:
        name = request.container.name
        raise container_error(f'failed to prepare subPath for volumeMount "{volume.name}" of container "{name}"')
    return bound


def _sub_path(mount: VolumeMount, envs: Mapping[str, str]) -> str:
    path = expand_strictly(mount.sub_path_expr, envs) if mount.sub_path_expr else mount.sub_path
    # Of an expression only the expression is shown: what it expands to may come from a Secret.
    shown = mount.sub_path_expr or path
    if path.startswith("/"):
        raise container_error(f"error SubPath `{shown}` must not be an absolute path")
    if ".." in path.split("/"):
        raise container_error(f"unable to provision SubPath `{shown}`: must not contain '..'")
    return path


def _propagation(mount: VolumeMount) -> MountPropagation:
    try:
        return _PROPAGATION[mount.mount_propagation]
    except KeyError:
        raise container_error(f'invalid MountPropagation mode: "{mount.mount_propagation}"') from None


def _recursive_read_only(mount: VolumeMount, supported: bool) -> bool:
    mode = mount.recursive_read_only
    if mode in (None, "Disabled"):
        return False
    failed = (
        f'failed to resolve recursive read-only mode: volume "{mount.name}" requested recursive read-only mode, but'
    )
    if not mount.read_only:
        raise container_error(f"{failed} it is not read-only")
    if mount.mount_propagation not in (None, "None"):
        raise container_error(f'{failed} it is not compatible with propagation "{mount.mount_propagation}"')
    match mode:
        case "IfPossible":
            return supported
        case "Enabled" if supported:
            return True
        case "Enabled":
            raise container_error(f"{failed} it is not supported by the runtime")
        case _:
            raise container_error(
                f'failed to resolve recursive read-only mode: unknown recursive read-only mode "{mode}"'
            )


def _id_mappings(request: ContainerRequest) -> tuple[tuple[IdMapping, ...], tuple[IdMapping, ...]]:
    mapped = request.user_namespace
    if mapped is None or request.pod.spec.host_users is not False:
        return (), ()
    return mapped.uids, mapped.gids


def _absolute(path: str) -> str:
    return path if not path or path.startswith("/") else f"/{path}"
