"""Security settings of sandbox and container: user, groups, capabilities, profiles, masked paths.

A container's field replaces the pod's, field by field. Rules and messages are upstream's.
"""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.container import Container, EphemeralContainer
from glasslet.api.pod import Pod
from glasslet.api.security import (
    AppArmorProfile,
    Capabilities,
    PodSecurityContext,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
)
from glasslet.podspec.errors import CONTAINER_CONFIG, SANDBOX_CONFIG, ConfigError, container_error
from glasslet.podspec.namespaces import namespaces
from glasslet.podspec.request import ContainerRequest, NodeFacts, SandboxRequest
from glasslet.runtime.model import Image
from glasslet.runtime.spec import ContainerSecurity, SandboxSecurity, SecurityProfile, SELinux

MASKED_PATHS = (
    "/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
    "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
    "/sys/devices/virtual/powercap",
)  # fmt: skip
READONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_MAX_USER_ID = 2**31 - 1
_GROUP_POLICIES = ("Merge", "Strict")
_RUNTIME_DEFAULT = SecurityProfile(kind="RuntimeDefault")
_UNCONFINED = SecurityProfile(kind="Unconfined")
_NO_POD_CONTEXT = PodSecurityContext()
_NO_CONTEXT = SecurityContext()
_NO_CAPABILITIES = Capabilities()


class _Effective(Struct, frozen=True):
    """The settings of a container after its own fields replaced the pod's."""

    run_as_user: int | None
    run_as_group: int | None
    run_as_non_root: bool
    selinux: SELinuxOptions | None


def sandbox_security(request: SandboxRequest) -> SandboxSecurity:
    """The sandbox's context. Raises ConfigError."""
    pod = request.pod
    own = pod.spec.security_context or _NO_POD_CONTEXT
    return SandboxSecurity(
        namespaces=namespaces(
            pod,
            user_namespace=request.user_namespace,
            runtime_handler=request.runtime_handler,
            reason=SANDBOX_CONFIG,
        ),
        selinux=_selinux(own.se_linux_options),
        run_as_user=own.run_as_user,
        run_as_group=own.run_as_group,
        supplemental_groups=_groups(own, request.supplemental_groups, volumes_last=False),
        supplemental_groups_policy=_groups_policy(own, SANDBOX_CONFIG),
        privileged=_has_privileged(pod),
        # The sandbox's own process needs nothing special, whatever the containers are allowed.
        seccomp=_RUNTIME_DEFAULT,
    )


def container_security(request: ContainerRequest) -> ContainerSecurity:
    """The container's context. Raises ConfigError, also for a container that may not run as root but would."""
    pod, container = request.pod, request.container
    pod_own = pod.spec.security_context or _NO_POD_CONTEXT
    own = container.security_context or _NO_CONTEXT
    effective = _merge(pod_own, own)
    _refuse_root(effective, request.image, pod, container)
    user, username = _user(effective, request.image)
    unmasked = own.proc_mount == "Unmasked"
    capabilities = own.capabilities or _NO_CAPABILITIES
    mounted = (request.volumes.get(mount.name) for mount in container.volume_mounts)
    volume_groups = tuple(v.supplemental_group for v in mounted if v is not None and v.supplemental_group is not None)
    return ContainerSecurity(
        add_capabilities=capabilities.add,
        drop_capabilities=capabilities.drop,
        privileged=bool(own.privileged),
        namespaces=namespaces(
            pod,
            user_namespace=request.user_namespace,
            runtime_handler=request.runtime_handler,
            reason=CONTAINER_CONFIG,
            target=request.target_id,
        ),
        selinux=_selinux(effective.selinux),
        run_as_user=user,
        run_as_group=effective.run_as_group,
        run_as_username=username,
        readonly_rootfs=bool(own.read_only_root_filesystem),
        supplemental_groups=_groups(pod_own, volume_groups, volumes_last=True),
        supplemental_groups_policy=_groups_policy(pod_own, CONTAINER_CONFIG),
        no_new_privs=own.allow_privilege_escalation is False,
        masked_paths=() if unmasked else MASKED_PATHS + request.node.masked_paths,
        readonly_paths=() if unmasked else READONLY_PATHS,
        seccomp=_seccomp(own.seccomp_profile or pod_own.seccomp_profile, request.node),
        apparmor=_apparmor(_apparmor_profile(pod, container)),
    )


def _merge(pod: PodSecurityContext, own: SecurityContext) -> _Effective:
    non_root = pod.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root
    return _Effective(
        pod.run_as_user if own.run_as_user is None else own.run_as_user,
        pod.run_as_group if own.run_as_group is None else own.run_as_group,
        bool(non_root),
        own.se_linux_options or pod.se_linux_options,
    )


def _user(effective: _Effective, image: Image) -> tuple[int | None, str]:
    if effective.run_as_user is not None:
        return effective.run_as_user, ""
    if image.uid is None and image.username:
        return None, image.username
    return image.uid or 0, ""


def _refuse_root(effective: _Effective, image: Image, pod: Pod, container: Container) -> None:
    if not effective.run_as_non_root:
        return
    meta = pod.metadata
    where = f'(pod: "{meta.name}_{meta.namespace}({meta.uid})", container: {container.name})'
    if effective.run_as_user is not None:
        if effective.run_as_user == 0:
            raise container_error(f"container's runAsUser breaks non-root policy {where}")
        return
    if image.uid is None and image.username:
        raise container_error(
            f"container has runAsNonRoot and image has non-numeric user ({image.username}), "
            f"cannot verify user is non-root {where}"
        )
    if not image.uid:
        raise container_error(f"container has runAsNonRoot and image will run as root {where}")
    if not 0 <= image.uid <= _MAX_USER_ID:
        raise container_error(
            f"container has runAsNonRoot and image has an invalid user id ({image.uid}). (Must be 1-({_MAX_USER_ID})): "
            f"must be between 0 and {_MAX_USER_ID}, inclusive {where}"
        )


def _groups(pod: PodSecurityContext, of_volumes: tuple[int, ...], *, volumes_last: bool) -> tuple[int, ...]:
    fs_group = () if pod.fs_group is None else (pod.fs_group,)
    rest = pod.supplemental_groups + of_volumes if volumes_last else of_volumes + pod.supplemental_groups
    return fs_group + rest


def _groups_policy(pod: PodSecurityContext, reason: str) -> str:
    policy = pod.supplemental_groups_policy
    if policy is not None and policy not in _GROUP_POLICIES:
        raise ConfigError(reason, f"unsupported supplementalGroupsPolicy: {policy}")
    return policy or ""


def _has_privileged(pod: Pod) -> bool:
    spec = pod.spec
    groups = (spec.containers, spec.init_containers, spec.ephemeral_containers)
    contexts = (container.security_context for group in groups for container in group)
    return any(context is not None and context.privileged for context in contexts)


def _selinux(options: SELinuxOptions | None) -> SELinux | None:
    if options is None:
        return None
    return SELinux(user=options.user, role=options.role, type=options.type, level=options.level)


def _seccomp(profile: SeccompProfile | None, node: NodeFacts) -> SecurityProfile:
    if profile is None:
        return _RUNTIME_DEFAULT if node.seccomp_default else _UNCONFINED
    match profile.type:
        case "RuntimeDefault":
            return _RUNTIME_DEFAULT
        case "Localhost":
            return SecurityProfile(kind="Localhost", localhost_ref=_seccomp_file(profile.localhost_profile, node))
        case _:
            return _UNCONFINED


def _seccomp_file(name: str | None, node: NodeFacts) -> str:
    if not name:
        raise container_error("localhostProfile must be set if seccompProfile type is Localhost.")
    if ".." in name.split("/"):
        raise container_error(f"seccompProfile.localhostProfile \"{name}\" must not contain '..'")
    return f"{node.root_dir}/seccomp/{name.lstrip('/')}"


def wants_apparmor(pod: Pod) -> bool:
    """Whether any container requests an AppArmor profile."""
    spec = pod.spec
    containers: list[Container | EphemeralContainer] = [*spec.init_containers, *spec.containers]
    for container in (*containers, *spec.ephemeral_containers):
        profile = _apparmor_profile(pod, container)
        if profile is not None and profile.type != "Unconfined":
            return True
    return False


def _apparmor_profile(pod: Pod, container: Container | EphemeralContainer) -> AppArmorProfile | None:
    own = container.security_context
    if own is not None and own.app_armor_profile is not None:
        return own.app_armor_profile
    # Manifests from files may carry the old annotations only.
    old = _from_annotation(pod.metadata.annotations.get(APPARMOR_ANNOTATION + container.name))
    if old is not None:
        return old
    of_pod = pod.spec.security_context
    return of_pod.app_armor_profile if of_pod is not None else None


def _from_annotation(value: str | None) -> AppArmorProfile | None:
    match value:
        case "runtime/default":
            return AppArmorProfile(type="RuntimeDefault")
        case "unconfined":
            return AppArmorProfile(type="Unconfined")
        case str() if value.startswith("localhost/"):
            return AppArmorProfile(type="Localhost", localhost_profile=value.removeprefix("localhost/"))
        case _:
            return None


def _apparmor(profile: AppArmorProfile | None) -> SecurityProfile | None:
    if profile is None:
        return None
    match profile.type:
        case "RuntimeDefault":
            return _RUNTIME_DEFAULT
        case "Unconfined":
            return _UNCONFINED
        case "Localhost":
            if profile.localhost_profile is None:
                raise container_error("missing localhost apparmor profile name")
            return SecurityProfile(kind="Localhost", localhost_ref=profile.localhost_profile)
        case _:
            raise container_error(f'unknown apparmor profile type: "{profile.type}"')
