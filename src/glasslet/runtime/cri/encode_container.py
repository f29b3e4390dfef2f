"""ContainerSpec -> ContainerConfig."""

from __future__ import annotations

from glasslet.runtime.cri._generated import container_pb2, image_spec_pb2, linux_pb2
from glasslet.runtime.cri.encode_linux import (
    encode_groups_policy,
    encode_id,
    encode_id_mappings,
    encode_namespaces,
    encode_profile,
    encode_resources,
    encode_selinux,
)
from glasslet.runtime.cri.signals import signal_number
from glasslet.runtime.spec import ContainerSecurity, ContainerSpec, Mount, SecurityProfile


def encode_container(spec: ContainerSpec) -> container_pb2.ContainerConfig:
    """ContainerConfig."""
    return container_pb2.ContainerConfig(
        metadata=container_pb2.ContainerMetadata(name=spec.name, attempt=spec.attempt),
        image=image_spec_pb2.ImageSpec(
            image=spec.image,
            user_specified_image=spec.user_specified_image,
            runtime_handler=spec.runtime_handler,
        ),
        command=spec.command,
        args=spec.args,
        working_dir=spec.working_dir,
        # Values may hold bytes that are no UTF-8 (read as surrogates); the protocol takes them as they are.
        envs=[linux_pb2.KeyValue(key=key, value=value.encode(errors="surrogateescape")) for key, value in spec.envs],
        mounts=[_mount(mount) for mount in spec.mounts],
        devices=[
            container_pb2.Device(container_path=d.container_path, host_path=d.host_path, permissions=d.permissions)
            for d in spec.devices
        ],
        CDI_devices=[container_pb2.CDIDevice(name=name) for name in spec.cdi_devices],
        labels=spec.labels,
        annotations=spec.annotations,
        log_path=spec.log_path,
        stdin=spec.stdin,
        stdin_once=spec.stdin_once,
        tty=spec.tty,
        linux=container_pb2.LinuxContainerConfig(
            resources=encode_resources(spec.resources), security_context=_security(spec.security)
        ),
        stop_signal=signal_number(spec.stop_signal),
    )


def _mount(mount: Mount) -> container_pb2.Mount:
    return container_pb2.Mount(
        container_path=mount.container_path,
        host_path=mount.host_path,
        readonly=mount.readonly,
        selinux_relabel=mount.selinux_relabel,
        propagation=container_pb2.MountPropagation.ValueType(mount.propagation),
        uidMappings=encode_id_mappings(mount.uid_mappings),
        gidMappings=encode_id_mappings(mount.gid_mappings),
        recursive_read_only=mount.recursive_read_only,
        image=image_spec_pb2.ImageSpec(image=mount.image) if mount.image else None,
        image_sub_path=mount.image_sub_path,
    )


def _security(security: ContainerSecurity) -> container_pb2.LinuxContainerSecurityContext:
    capabilities = None
    if security.add_capabilities or security.drop_capabilities:
        capabilities = container_pb2.Capability(
            add_capabilities=security.add_capabilities, drop_capabilities=security.drop_capabilities
        )
    return container_pb2.LinuxContainerSecurityContext(
        capabilities=capabilities,
        privileged=security.privileged,
        namespace_options=encode_namespaces(security.namespaces),
        selinux_options=encode_selinux(security.selinux),
        run_as_user=encode_id(security.run_as_user),
        run_as_group=encode_id(security.run_as_group),
        run_as_username=security.run_as_username,
        readonly_rootfs=security.readonly_rootfs,
        supplemental_groups=security.supplemental_groups,
        supplemental_groups_policy=encode_groups_policy(security.supplemental_groups_policy),
        no_new_privs=security.no_new_privs,
        masked_paths=security.masked_paths,
        readonly_paths=security.readonly_paths,
        seccomp=encode_profile(security.seccomp),
        apparmor=encode_profile(security.apparmor),
        apparmor_profile=_apparmor_name(security.apparmor),
    )


def _apparmor_name(profile: SecurityProfile | None) -> str:
    """The profile once more in the older string field, for runtimes that read only that one."""
    if profile is None:
        return ""
    match profile.kind:
        case "RuntimeDefault":
            return "runtime/default"
        case "Unconfined":
            return "unconfined"
        case _:
            return f"localhost/{profile.localhost_ref}"
