"""Security settings of containers and pods, and the annotations that older manifests use for them."""

from __future__ import annotations

import re

from glasslet.api.field_errors import FieldPath, duplicate, forbidden, invalid, not_supported, required, too_long
from glasslet.api.formats import id_problems
from glasslet.api.pod import Pod, PodSpec
from glasslet.api.security import AppArmorProfile, PodSecurityContext, SeccompProfile, SecurityContext
from glasslet.api.validation.container_paths import containers_with_paths
from glasslet.api.validation.rules import Errors, below_folder, one_of

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_MAX_PROFILE = 4095
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SEGMENT}[\./])*{_SEGMENT}$"
_IPC_SYSCTLS = frozenset(
    {
        "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm",
        "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg",
    }
)  # fmt: skip
SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"


def container_security_errors(context: SecurityContext | None, path: FieldPath, *, host_users: bool) -> Errors:
    """`securityContext` of a container."""
    if context is None:
        return
    yield from _ids(context, path)
    mount = context.proc_mount
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            yield not_supported(path.child("procMount"), mount, ("Default", "Unmasked"))
        if mount == "Unmasked" and host_users:
            yield invalid(path.child("procMount"), mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp(context.seccomp_profile, path.child("seccompProfile"))
    if context.allow_privilege_escalation is False:
        clash = "cannot set `allowPrivilegeEscalation` to false and "
        if context.privileged:
            yield invalid(path, context, f"{clash}`privileged` to true")
        if context.capabilities is not None and "CAP_SYS_ADMIN" in context.capabilities.add:
            yield invalid(path, context, f"{clash}`capabilities.Add` CAP_SYS_ADMIN")
    yield from _apparmor(context.app_armor_profile, path.child("appArmorProfile"))


def pod_security_errors(spec: PodSpec, path: FieldPath) -> Errors:
    """`securityContext` of a pod, and what it has to do with the host's namespaces."""
    context = spec.security_context
    if spec.share_process_namespace and spec.host_pid:
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(path.child("shareProcessNamespace"), True, text)
    if context is None:
        return
    if context.fs_group is not None:
        yield from _id(context.fs_group, path.child("fsGroup"))
    yield from _ids(context, path)
    for number, group in enumerate(context.supplemental_groups):
        yield from _id(group, path.child("supplementalGroups").at(number))
    yield from _sysctls(context, spec, path.child("sysctls"))
    yield from _seccomp(context.seccomp_profile, path.child("seccompProfile"))
    yield from _apparmor(context.app_armor_profile, path.child("appArmorProfile"))
    for name, value, allowed in (
        ("fsGroupChangePolicy", context.fs_group_change_policy, ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", context.supplemental_groups_policy, ("Merge", "Strict")),
        ("seLinuxChangePolicy", context.se_linux_change_policy, ("MountOption", "Recursive")),
    ):
        if value is not None and value not in allowed:
            yield not_supported(path.child(name), value, allowed)


def annotation_profile_errors(pod: Pod, path: FieldPath) -> Errors:
    """Seccomp and AppArmor annotations: their format, and the containers they name. `path`: metadata.annotations."""
    names = {container.name for container, _ in containers_with_paths(pod.spec, path)}
    for key, value in pod.metadata.annotations.items():
        if key == SECCOMP_POD_ANNOTATION or key.startswith(SECCOMP_CONTAINER_ANNOTATION):
            if value.startswith("localhost/"):
                yield from below_folder(value.removeprefix("localhost/"), path.child(key))
            elif value not in ("runtime/default", "docker/default", "unconfined"):
                yield invalid(path.child(key), value, "must be a valid seccomp profile")
        elif key.startswith(APPARMOR_ANNOTATION):
            container = key.removeprefix(APPARMOR_ANNOTATION)
            if container not in names:
                yield invalid(path.key(key), container, "container not found")
            if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
                yield invalid(path.key(key), value, f'invalid AppArmor profile name: "{value}"')


def annotation_conflict_errors(pod: Pod, path: FieldPath) -> Errors:
    """Where annotation and field both name a profile, they must name the same. `path`: spec."""
    annotations, context = pod.metadata.annotations, pod.spec.security_context or PodSecurityContext()
    if context.seccomp_profile is not None and SECCOMP_POD_ANNOTATION in annotations:
        here = path.child("securityContext", "seccompProfile")
        yield from _conflict(annotations[SECCOMP_POD_ANNOTATION], context.seccomp_profile, here, "seccomp")
    for container, at in containers_with_paths(pod.spec, path):
        own = container.security_context or SecurityContext()
        text = annotations.get(f"{SECCOMP_CONTAINER_ANNOTATION}{container.name}")
        if text is not None and own.seccomp_profile is not None:
            yield from _conflict(text, own.seccomp_profile, at.child("securityContext", "seccompProfile"), "seccomp")
    if pod.spec.os is not None and pod.spec.os.name == "windows":
        return
    for container, at in containers_with_paths(pod.spec, path):
        own = container.security_context or SecurityContext()
        profile = own.app_armor_profile or context.app_armor_profile
        text = annotations.get(f"{APPARMOR_ANNOTATION}{container.name}")
        if text is not None and profile is not None:
            yield from _conflict(text, profile, at.child("securityContext", "appArmorProfile"), "apparmor")


def _conflict(text: str, profile: SeccompProfile | AppArmorProfile, path: FieldPath, what: str) -> Errors:
    runtime_default = ("runtime/default", "docker/default") if what == "seccomp" else ("runtime/default",)
    fits = {
        "Unconfined": text == "unconfined",
        "RuntimeDefault": text in runtime_default,
        "Localhost": text.startswith("localhost/"),
    }
    if not fits.get(profile.type, True):
        yield forbidden(path.child("type"), f"{what} type in annotation and field must match")
    elif profile.type == "Localhost" and text.removeprefix("localhost/") != profile.localhost_profile:
        yield forbidden(path.child("localhostProfile"), f"{what} profile in annotation and field must match")


def _ids(context: SecurityContext | PodSecurityContext, path: FieldPath) -> Errors:
    for name, number in (("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group)):
        if number is not None:
            yield from _id(number, path.child(name))


def _id(number: int, path: FieldPath) -> Errors:
    for problem in id_problems(number):
        yield invalid(path, number, problem)


def _seccomp(profile: SeccompProfile | None, path: FieldPath) -> Errors:
    if profile is None:
        return
    local = profile.localhost_profile
    if not profile.type:
        yield required(path.child("type"), "type is required when seccompProfile is set")
    else:
        yield from one_of(profile.type, path.child("type"), _PROFILES)
    here = path.child("localhostProfile")
    if profile.type != "Localhost":
        if local is not None:
            yield invalid(here, profile, "can only be set when seccomp type is Localhost")
    elif local is None:
        yield required(here, "must be set when seccomp type is Localhost")
    else:
        yield from below_folder(local, here)


def _apparmor(profile: AppArmorProfile | None, path: FieldPath) -> Errors:
    if profile is None:
        return
    here, local = path.child("localhostProfile"), profile.localhost_profile
    if profile.type == "Localhost":
        if local is not None and local != local.strip():
            yield invalid(here, local, "must not be padded with whitespace")
        elif not local:
            yield required(here, "must be set when AppArmor type is Localhost")
        if local is not None and len(local) > _MAX_PROFILE:
            yield too_long(here, _MAX_PROFILE)
    elif profile.type in _PROFILES:
        if local is not None:
            yield invalid(here, local, "can only be set when AppArmor type is Localhost")
    elif not profile.type:
        yield required(path.child("type"), "type is required when appArmorProfile is set")
    else:
        yield not_supported(path.child("type"), profile.type, _PROFILES)


def _sysctls(context: PodSecurityContext, spec: PodSpec, path: FieldPath) -> Errors:
    seen: set[str] = set()
    for number, sysctl in enumerate(context.sysctls):
        name, here = sysctl.name, path.at(number).child("name")
        if not name:
            yield required(here)
        elif len(name) > 253 or not re.match(_SYSCTL, name) or name.endswith("\n"):
            yield invalid(here, name, f"must have at most 253 characters and match regex {_SYSCTL}")
        elif name in seen:
            yield duplicate(here, name)
        seen.add(name)
        yield from _host_sysctl(name, spec, here)


def _host_sysctl(name: str, spec: PodSpec, path: FieldPath) -> Errors:
    # Slash and dot are interchangeable separators, but the first one met decides which one separates.
    first = re.search(r"[./]", name)
    dotted = name.translate(str.maketrans("./", "/.")) if first and first[0] == "/" else name
    if spec.host_network and dotted.startswith("net."):
        yield invalid(path, name, "may not be specified when 'hostNetwork' is true")
    elif spec.host_ipc and (dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue.")):
        yield invalid(path, name, "may not be specified when 'hostIPC' is true")
