from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.object import ContainerID
from glasslet.exchange.volume import MountedVolume
from glasslet.podspec.errors import ConfigError
from glasslet.podspec.request import UserNamespace
from glasslet.podspec.security import container_security, sandbox_security
from glasslet.runtime.model import Image
from glasslet.runtime.spec import ContainerSecurity, IdMapping, NamespaceMode, SecurityProfile, SELinux
from tests.builders.podspec import container_request, node_facts, pod_of, sandbox_request


def secured(
    container: dict[str, Any] | None = None, pod: dict[str, Any] | None = None, **changes: Any
) -> ContainerSecurity:
    """The container's context; `container` and `pod` are securityContext fields."""
    own: dict[str, Any] = {"securityContext": container} if container is not None else {}
    spec = changes.pop("spec", {}) | ({"securityContext": pod} if pod is not None else {})
    built = pod_of(own | changes.pop("extra", {}), meta=changes.pop("meta", None), **spec)
    return container_security(container_request(built, **changes))


@pytest.mark.parametrize(
    ("container", "pod", "image", "user", "username"),
    [
        # behaviours.md §30: "User: runAsUser, else the image's uid, else the image's user name; an image without user
        # is 0."
        ({"runAsUser": 5}, {"runAsUser": 7}, Image(id="i", uid=9), 5, ""),
        ({}, {"runAsUser": 7}, Image(id="i", uid=9), 7, ""),
        (None, {"runAsUser": 0}, Image(id="i", username="app"), 0, ""),
        (None, None, Image(id="i", uid=9), 9, ""),
        (None, None, Image(id="i", username="app"), None, "app"),
        (None, None, Image(id="i"), 0, ""),
    ],
)
def test_the_user_is_the_containers_then_the_pods_then_the_images(
    container: dict[str, Any] | None, pod: dict[str, Any] | None, image: Image, user: int | None, username: str
) -> None:
    found = secured(container, pod, image=image)
    assert (found.run_as_user, found.run_as_username) == (user, username)


POD = '(pod: "web_default(uid-1)", container: main)'


@pytest.mark.parametrize(
    ("container", "pod", "image", "message"),
    [
        # behaviours.md §30: "runAsNonRoot violations are CreateContainerConfigError: ..."
        ({"runAsNonRoot": True}, None, Image(id="i"), f"container has runAsNonRoot and image will run as root {POD}"),
        (
            None,
            {"runAsNonRoot": True},
            Image(id="i", uid=0),
            f"container has runAsNonRoot and image will run as root {POD}",
        ),
        (
            {"runAsNonRoot": True},
            None,
            Image(id="i", username="app"),
            f"container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root {POD}",
        ),
        (
            {"runAsNonRoot": True, "runAsUser": 0},
            None,
            Image(id="i", uid=5),
            f"container's runAsUser breaks non-root policy {POD}",
        ),
        (
            {"runAsNonRoot": True},
            {"runAsUser": 0},
            Image(id="i", uid=5),
            f"container's runAsUser breaks non-root policy {POD}",
        ),
        (
            {"runAsNonRoot": True},
            None,
            Image(id="i", uid=2**31),
            (
                "container has runAsNonRoot and image has an invalid user id (2147483648). (Must be 1-(2147483647)): "
                f"must be between 0 and 2147483647, inclusive {POD}"
            ),
        ),
    ],
)
def test_a_container_that_may_not_be_root_but_would_is_refused(
    container: dict[str, Any], pod: dict[str, Any], image: Image, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        secured(container, pod, image=image)
    assert (caught.value.reason, caught.value.message) == ("CreateContainerConfigError", message)


@pytest.mark.parametrize(
    ("container", "image"),
    [
        ({"runAsNonRoot": True, "runAsUser": 7}, Image(id="i", username="root")),
        ({"runAsNonRoot": True}, Image(id="i", uid=7)),
        ({"runAsNonRoot": False}, Image(id="i")),
    ],
)
def test_a_container_that_is_not_root_passes(container: dict[str, Any], image: Image) -> None:
    assert secured(container, {"runAsNonRoot": True}, image=image).run_as_user in (0, 7)


def test_a_containers_field_replaces_the_pods_field_by_field() -> None:
    # behaviours.md §30: "Container fields override pod fields one by one"
    pod = {"runAsUser": 1, "runAsGroup": 2, "seLinuxOptions": {"level": "s0", "type": "t"}}
    found = secured({"runAsGroup": 3, "seLinuxOptions": {"role": "r"}}, pod)
    assert (found.run_as_user, found.run_as_group, found.selinux) == (1, 3, SELinux(role="r"))


def test_container_only_fields_are_passed_on() -> None:
    found = secured(
        {
            "privileged": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        }
    )
    assert (found.privileged, found.readonly_rootfs, found.no_new_privs) == (True, True, True)
    assert (found.add_capabilities, found.drop_capabilities) == (("NET_ADMIN",), ("ALL",))


@pytest.mark.parametrize(("allow", "no_new_privs"), [(None, False), (True, False), (False, True)])
def test_no_new_privs_only_if_escalation_is_forbidden(allow: bool | None, no_new_privs: bool) -> None:
    # behaviours.md §30: "no_new_privs = allowPrivilegeEscalation is false."
    assert secured({"allowPrivilegeEscalation": allow}).no_new_privs is no_new_privs


def test_default_proc_mount_hides_paths_of_kernel_and_machine() -> None:
    # behaviours.md §30: "Default procMount masks /proc/asound, /proc/acpi, /proc/interrupts, ... and existing
    # /sys/devices/system/cpu/cpu<n>/thermal_throttle; read-only: /proc/bus, /proc/fs, /proc/irq, /proc/sys,
    # /proc/sysrq-trigger."
    throttle = "/sys/devices/system/cpu/cpu0/thermal_throttle"
    found = secured({}, node=node_facts(masked_paths=(throttle,)))
    of_proc = "acpi asound interrupts kcore keys latency_stats sched_debug scsi timer_list timer_stats"
    of_sys = ["/sys/devices/virtual/powercap", "/sys/firmware"]
    assert sorted(found.masked_paths) == sorted([*(f"/proc/{name}" for name in of_proc.split()), *of_sys, throttle])
    assert found.readonly_paths == ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def test_unmasked_proc_mount_hides_nothing() -> None:
    # behaviours.md §30: "Unmasked: both empty."
    found = secured({"procMount": "Unmasked"})
    assert (found.masked_paths, found.readonly_paths) == ((), ())


@pytest.mark.parametrize(
    ("container", "pod", "default", "kind", "ref"),
    [
        # behaviours.md §30: "seccomp: container, else pod, else Unconfined (RuntimeDefault with seccompDefault)"
        (None, None, False, "Unconfined", ""),
        (None, None, True, "RuntimeDefault", ""),
        (None, {"type": "RuntimeDefault"}, False, "RuntimeDefault", ""),
        ({"type": "Unconfined"}, {"type": "RuntimeDefault"}, True, "Unconfined", ""),
        ({"type": "Localhost", "localhostProfile": "a/b.json"}, None, False, "Localhost", "/root-dir/seccomp/a/b.json"),
    ],
)
def test_seccomp_is_the_containers_then_the_pods_then_the_default(
    container: dict[str, Any] | None, pod: dict[str, Any] | None, default: bool, kind: str, ref: str
) -> None:
    found = secured(
        {"seccompProfile": container} if container else {},
        {"seccompProfile": pod} if pod else {},
        node=node_facts(seccomp_default=default, root_dir="/root-dir"),
    )
    assert found.seccomp == SecurityProfile(kind=kind, localhost_ref=ref)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"type": "Localhost"}, "localhostProfile must be set if seccompProfile type is Localhost"),
        ({"type": "Localhost", "localhostProfile": "../../etc/passwd"}, "must not contain '..'"),
    ],
)
def test_a_local_seccomp_profile_needs_a_name_inside_its_folder(profile: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        secured({"seccompProfile": profile})


@pytest.mark.parametrize(
    ("container", "pod", "annotation", "expected"),
    [
        (None, None, None, None),
        ({"type": "RuntimeDefault"}, {"type": "Unconfined"}, "localhost/x", SecurityProfile(kind="RuntimeDefault")),
        (None, {"type": "Unconfined"}, "localhost/x", SecurityProfile(kind="Localhost", localhost_ref="x")),
        (None, {"type": "Unconfined"}, None, SecurityProfile(kind="Unconfined")),
        (
            None,
            {"type": "Localhost", "localhostProfile": "p"},
            None,
            SecurityProfile(kind="Localhost", localhost_ref="p"),
        ),
        (None, None, "runtime/default", SecurityProfile(kind="RuntimeDefault")),
        (None, None, "unconfined", SecurityProfile(kind="Unconfined")),
        (None, None, "nonsense", None),
    ],
)
def test_apparmor_is_the_containers_then_the_annotation_then_the_pods(
    container: dict[str, Any] | None,
    pod: dict[str, Any] | None,
    annotation: str | None,
    expected: SecurityProfile | None,
) -> None:
    notes = {"container.apparmor.security.beta.kubernetes.io/main": annotation} if annotation else {}
    found = secured(
        {"appArmorProfile": container} if container else {},
        {"appArmorProfile": pod} if pod else {},
        meta={"annotations": notes},
    )
    assert found.apparmor == expected


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"type": "Localhost"}, "missing localhost apparmor profile name"),
        ({"type": "Odd"}, 'unknown apparmor profile type: "Odd"'),
    ],
)
def test_an_apparmor_profile_that_says_too_little_is_refused(profile: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        secured({"appArmorProfile": profile})


def test_groups_are_fs_group_then_supplemental_then_those_of_volumes() -> None:
    # behaviours.md §30: "Groups: fsGroup, supplementalGroups, PV group annotations."
    found = secured(
        pod={"fsGroup": 100, "supplementalGroups": [7, 8], "supplementalGroupsPolicy": "Strict"},
        extra={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        volumes={"v": MountedVolume(name="v", path="/v", supplemental_group=55)},
    )
    assert found.supplemental_groups == (100, 7, 8, 55)
    assert found.supplemental_groups_policy == "Strict"


def test_sandbox_groups_have_those_of_volumes_before_supplemental() -> None:
    # behaviours.md §30: "supplemental groups = fsGroup, group annotations of PVs, supplementalGroups"
    pod = pod_of(securityContext={"fsGroup": 100, "supplementalGroups": [7]})
    assert sandbox_security(sandbox_request(pod, supplemental_groups=(55,))).supplemental_groups == (100, 55, 7)


def test_an_unknown_groups_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match="unsupported supplementalGroupsPolicy: Loose"):
        secured(pod={"supplementalGroupsPolicy": "Loose"})


@pytest.mark.parametrize("group", ["containers", "initContainers", "ephemeralContainers"])
def test_a_sandbox_is_privileged_if_any_container_is(group: str) -> None:
    # behaviours.md §30: "privileged if any container (init, ephemeral too) is"
    wild = {"name": "wild", "image": "busybox", "securityContext": {"privileged": True}}
    spec: dict[str, Any] = {} if group == "containers" else {group: [wild]}
    pod = pod_of(*([wild] if group == "containers" else []), **spec)
    assert sandbox_security(sandbox_request(pod)).privileged is True


def test_a_sandbox_has_the_default_profile_whatever_the_pod_says() -> None:
    # behaviours.md §30: "seccomp RuntimeDefault; selinux, runAsUser, runAsGroup, supplementalGroupsPolicy from the pod"
    pod = pod_of(securityContext={"seccompProfile": {"type": "Unconfined"}, "runAsUser": 1, "runAsGroup": 2})
    found = sandbox_security(sandbox_request(pod))
    assert found.seccomp == SecurityProfile(kind="RuntimeDefault")
    assert (found.privileged, found.run_as_user, found.run_as_group) == (False, 1, 2)


@pytest.mark.parametrize(
    ("spec", "field", "mode"),
    [
        ({}, "network", NamespaceMode.POD),
        ({"hostNetwork": True}, "network", NamespaceMode.NODE),
        ({}, "ipc", NamespaceMode.POD),
        ({"hostIPC": True}, "ipc", NamespaceMode.NODE),
        ({}, "pid", NamespaceMode.CONTAINER),
        ({"shareProcessNamespace": True}, "pid", NamespaceMode.POD),
        ({"hostPID": True}, "pid", NamespaceMode.NODE),
        ({}, "user_mode", NamespaceMode.NODE),
        ({"hostUsers": True}, "user_mode", NamespaceMode.NODE),
    ],
)
def test_namespaces_follow_the_spec_in_sandbox_and_container(
    spec: dict[str, Any], field: str, mode: NamespaceMode
) -> None:
    # behaviours.md §30: "Namespaces: network POD or NODE (hostNetwork); ipc POD or NODE; pid CONTAINER, POD
    # (shareProcessNamespace), NODE (hostPID)"
    assert getattr(sandbox_security(sandbox_request(pod_of(**spec))).namespaces, field) is mode
    assert getattr(secured(spec=spec).namespaces, field) is mode


def test_a_target_is_joined_only_where_processes_are_not_shared_anyway() -> None:
    # behaviours.md §30: "TARGET with target id (ephemeral container with targetContainerName)"
    joined = secured(target_id=ContainerID("abc")).namespaces
    shared = secured(target_id=ContainerID("abc"), spec={"shareProcessNamespace": True}).namespaces
    assert (joined.pid, joined.target_id) == (NamespaceMode.TARGET, "abc")
    assert (shared.pid, shared.target_id) == (NamespaceMode.POD, "")


def test_users_of_a_pod_are_mapped_when_it_asks_for_it() -> None:
    ids = (IdMapping(host_id=65536, container_id=0, length=65536),)
    found = sandbox_security(sandbox_request(pod_of(hostUsers=False), user_namespace=UserNamespace(uids=ids, gids=ids)))
    assert found.namespaces.user_mode is NamespaceMode.POD
    assert found.namespaces.uids == found.namespaces.gids == ids


@pytest.mark.parametrize(("handler", "subject"), [("", "runtime"), ("kata", 'RuntimeClass handler "kata"')])
def test_users_that_cannot_be_mapped_are_refused(handler: str, subject: str) -> None:
    with pytest.raises(ConfigError) as caught:
        sandbox_security(sandbox_request(pod_of(hostUsers=False), runtime_handler=handler))
    assert caught.value.message == f"can't set `spec.hostUsers: false`, {subject} does not support user namespaces"
