"""Namespaces, resources and security profiles as protobuf."""

from __future__ import annotations

from collections.abc import Iterable

from glasslet.runtime.cri._generated import linux_pb2
from glasslet.runtime.spec import IdMapping, Namespaces, Resources, SecurityProfile, SELinux


def encode_namespaces(namespaces: Namespaces) -> linux_pb2.NamespaceOption:
    """NamespaceOption; the user namespace is always said, as the kubelet does."""
    return linux_pb2.NamespaceOption(
        network=_mode(namespaces.network),
        pid=_mode(namespaces.pid),
        ipc=_mode(namespaces.ipc),
        target_id=namespaces.target_id,
        userns_options=linux_pb2.UserNamespace(
            mode=_mode(namespaces.user_mode),
            uids=encode_id_mappings(namespaces.uids),
            gids=encode_id_mappings(namespaces.gids),
        ),
    )


def encode_id_mappings(mappings: Iterable[IdMapping]) -> list[linux_pb2.IDMapping]:
    """IDMapping, in the given order."""
    return [linux_pb2.IDMapping(host_id=m.host_id, container_id=m.container_id, length=m.length) for m in mappings]


def encode_resources(resources: Resources) -> linux_pb2.LinuxContainerResources:
    """LinuxContainerResources."""
    return linux_pb2.LinuxContainerResources(
        cpu_period=resources.cpu_period,
        cpu_quota=resources.cpu_quota,
        cpu_shares=resources.cpu_shares,
        memory_limit_in_bytes=resources.memory_limit_in_bytes,
        oom_score_adj=resources.oom_score_adj,
        cpuset_cpus=resources.cpuset_cpus,
        cpuset_mems=resources.cpuset_mems,
        hugepage_limits=[
            linux_pb2.HugepageLimit(page_size=size, limit=limit) for size, limit in resources.hugepage_limits
        ],
        unified=resources.unified,
        memory_swap_limit_in_bytes=resources.memory_swap_limit_in_bytes,
    )


def encode_optional_resources(resources: Resources | None) -> linux_pb2.LinuxContainerResources | None:
    """LinuxContainerResources, left out where nothing is said."""
    return encode_resources(resources) if resources is not None else None


def encode_selinux(selinux: SELinux | None) -> linux_pb2.SELinuxOption | None:
    """SELinuxOption."""
    if selinux is None:
        return None
    return linux_pb2.SELinuxOption(user=selinux.user, role=selinux.role, type=selinux.type, level=selinux.level)


def encode_profile(profile: SecurityProfile | None) -> linux_pb2.SecurityProfile | None:
    """SecurityProfile."""
    if profile is None:
        return None
    kind = linux_pb2.SecurityProfile.ProfileType.Value(profile.kind)
    return linux_pb2.SecurityProfile(profile_type=kind, localhost_ref=profile.localhost_ref)


def encode_groups_policy(policy: str) -> linux_pb2.SupplementalGroupsPolicy.ValueType:
    """SupplementalGroupsPolicy; "" is Merge."""
    return linux_pb2.SupplementalGroupsPolicy.Value(policy or "Merge")


def encode_id(value: int | None) -> linux_pb2.Int64Value | None:
    """Int64Value: an id of 0 is said, None is left out."""
    return linux_pb2.Int64Value(value=value) if value is not None else None


def _mode(mode: int) -> linux_pb2.NamespaceMode.ValueType:
    return linux_pb2.NamespaceMode.ValueType(mode)
