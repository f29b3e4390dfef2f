"""Defaults of one volume: its kind, file modes, and the settings of network block devices."""

from __future__ import annotations

from glasslet.api.defaults.container import default_amounts, default_field_ref, default_pull_policy
from glasslet.api.defaults.sharing import each, with_changes
from glasslet.api.volume import (
    DownwardAPIVolumeFile,
    EmptyDirVolumeSource,
    EphemeralVolumeSource,
    ProjectedVolumeSource,
    Volume,
    VolumeProjection,
)

FILE_MODE = 0o644
_TOKEN_SECONDS = 3600


def default_volume(volume: Volume) -> Volume:
    """A volume with everything filled in; one without any source is an emptyDir."""
    if all(getattr(volume, name) is None for name in volume.__struct_fields__ if name != "name"):
        return with_changes(volume, empty_dir=EmptyDirVolumeSource())
    return with_changes(_devices(volume), **_files(volume))


def _files(volume: Volume) -> dict[str, object]:
    host_path, secret, config_map, image = volume.host_path, volume.secret, volume.config_map, volume.image
    downward = volume.downward_api
    return {
        "host_path": host_path and with_changes(host_path, type=host_path.type or ""),
        "secret": secret and with_changes(secret, default_mode=_mode(secret.default_mode)),
        "config_map": config_map and with_changes(config_map, default_mode=_mode(config_map.default_mode)),
        "downward_api": downward
        and with_changes(
            downward, default_mode=_mode(downward.default_mode), items=each(downward.items, _downward_file)
        ),
        "projected": volume.projected and _projected(volume.projected),
        "ephemeral": volume.ephemeral and _ephemeral(volume.ephemeral),
        "image": image and with_changes(image, pull_policy=image.pull_policy or default_pull_policy(image.reference)),
    }


def _devices(volume: Volume) -> Volume:
    iscsi, rbd, disk, scale_io = volume.iscsi, volume.rbd, volume.azure_disk, volume.scale_io
    return with_changes(
        volume,
        iscsi=iscsi and with_changes(iscsi, iscsi_interface=iscsi.iscsi_interface or "default"),
        rbd=rbd
        and with_changes(
            rbd, pool=rbd.pool or "rbd", user=rbd.user or "admin", keyring=rbd.keyring or "/etc/ceph/keyring"
        ),
        azure_disk=disk
        and with_changes(
            disk,
            caching_mode="ReadWrite" if disk.caching_mode is None else disk.caching_mode,
            fs_type="ext4" if disk.fs_type is None else disk.fs_type,
            read_only=False if disk.read_only is None else disk.read_only,
            kind="Shared" if disk.kind is None else disk.kind,
        ),
        scale_io=scale_io
        and with_changes(
            scale_io,
            storage_mode=scale_io.storage_mode or "ThinProvisioned",
            fs_type=scale_io.fs_type or "xfs",
        ),
    )


def _mode(mode: int | None) -> int:
    return FILE_MODE if mode is None else mode


def _downward_file(file: DownwardAPIVolumeFile) -> DownwardAPIVolumeFile:
    return with_changes(file, field_ref=default_field_ref(file.field_ref))


def _projected(projected: ProjectedVolumeSource) -> ProjectedVolumeSource:
    return with_changes(
        projected, default_mode=_mode(projected.default_mode), sources=each(projected.sources, _projection)
    )


def _projection(source: VolumeProjection) -> VolumeProjection:
    downward, token = source.downward_api, source.service_account_token
    return with_changes(
        source,
        downward_api=downward and with_changes(downward, items=each(downward.items, _downward_file)),
        service_account_token=token
        and with_changes(
            token,
            expiration_seconds=_TOKEN_SECONDS if token.expiration_seconds is None else token.expiration_seconds,
        ),
    )


def _ephemeral(ephemeral: EphemeralVolumeSource) -> EphemeralVolumeSource:
    template = ephemeral.volume_claim_template
    if template is None:
        return ephemeral
    spec = template.spec
    resources = with_changes(
        spec.resources,
        limits=default_amounts(spec.resources.limits),
        requests=default_amounts(spec.resources.requests),
    )
    spec = with_changes(
        spec, volume_mode="Filesystem" if spec.volume_mode is None else spec.volume_mode, resources=resources
    )
    return with_changes(ephemeral, volume_claim_template=with_changes(template, spec=spec))
