"""Our specifications as protobuf: nothing is lost, nothing is invented."""

from __future__ import annotations

import pytest

from glasslet.runtime.cri._generated import container_pb2, linux_pb2, pod_sandbox_pb2
from glasslet.runtime.cri.calls import refusing_unencodable
from glasslet.runtime.cri.encode_container import encode_container
from glasslet.runtime.cri.encode_linux import encode_resources
from glasslet.runtime.cri.encode_sandbox import encode_sandbox
from glasslet.runtime.cri.verbs import Verb
from glasslet.runtime.errors import RuntimeRejected
from glasslet.runtime.spec import (
    ContainerSecurity,
    ContainerSpec,
    Device,
    DNSConfig,
    IdMapping,
    Mount,
    MountPropagation,
    NamespaceMode,
    Namespaces,
    PortMapping,
    Resources,
    SandboxSecurity,
    SandboxSpec,
    SecurityProfile,
    SELinux,
)

MAPPING = IdMapping(host_id=65536, container_id=0, length=65536)
RESOURCES = Resources(
    cpu_period=100_000,
    cpu_quota=50_000,
    cpu_shares=512,
    memory_limit_in_bytes=1 << 30,
    oom_score_adj=-997,
    cpuset_cpus="0-1",
    cpuset_mems="0",
    hugepage_limits=(("2MB", 4 << 20),),
    unified={"memory.oom.group": "1"},
    memory_swap_limit_in_bytes=2 << 30,
)
PROFILE = SecurityProfile(kind="Localhost", localhost_ref="profiles/a.json")
SELINUX = SELinux(user="u", role="r", type="t", level="s0:c1")
NAMESPACES = Namespaces(
    network=NamespaceMode.NODE,
    pid=NamespaceMode.TARGET,
    ipc=NamespaceMode.NODE,
    target_id="t1",
    user_mode=NamespaceMode.POD,
    uids=(MAPPING,),
    gids=(MAPPING,),
)


def full_sandbox() -> SandboxSpec:
    return SandboxSpec(
        name="p",
        namespace="d",
        uid="u",
        attempt=3,
        hostname="h",
        log_directory="/var/log/pods/x",
        dns=DNSConfig(servers=("10.0.0.10",), searches=("svc",), options=("ndots:5",)),
        port_mappings=(PortMapping(protocol="UDP", container_port=53, host_port=5353, host_ip="127.0.0.1"),),
        labels={"l": "1"},
        annotations={"a": "2"},
        cgroup_parent="/kubepods/podu",
        sysctls={"net.core.somaxconn": "1024"},
        security=SandboxSecurity(
            namespaces=NAMESPACES,
            selinux=SELINUX,
            run_as_user=0,
            run_as_group=7,
            readonly_rootfs=True,
            supplemental_groups=(1, 2),
            supplemental_groups_policy="Strict",
            privileged=True,
            seccomp=PROFILE,
        ),
        overhead=RESOURCES,
        resources=RESOURCES,
        runtime_handler="kata",
    )


def full_container() -> ContainerSpec:
    return ContainerSpec(
        name="c",
        attempt=2,
        image="sha256:1",
        user_specified_image="busybox",
        runtime_handler="kata",
        command=("a",),
        args=("b", "c"),
        working_dir="/w",
        envs=(("A", "1"), ("A", "2")),
        mounts=(
            Mount(
                container_path="/c",
                host_path="/h",
                readonly=True,
                selinux_relabel=True,
                propagation=MountPropagation.BIDIRECTIONAL,
                recursive_read_only=True,
                uid_mappings=(MAPPING,),
                gid_mappings=(MAPPING,),
            ),
            Mount(container_path="/i", image="data:1", image_sub_path="sub"),
        ),
        devices=(Device(container_path="/dev/x", host_path="/dev/y", permissions="rw"),),
        cdi_devices=("vendor.com/gpu=0",),
        labels={"l": "1"},
        annotations={"a": "2"},
        log_path="c/2.log",
        stdin=True,
        stdin_once=True,
        tty=True,
        resources=RESOURCES,
        security=ContainerSecurity(
            add_capabilities=("NET_ADMIN",),
            drop_capabilities=("ALL",),
            privileged=True,
            namespaces=NAMESPACES,
            selinux=SELINUX,
            run_as_user=0,
            run_as_group=5,
            run_as_username="nobody",
            readonly_rootfs=True,
            supplemental_groups=(3,),
            supplemental_groups_policy="Strict",
            no_new_privs=True,
            masked_paths=("/proc/kcore",),
            readonly_paths=("/proc/sys",),
            seccomp=PROFILE,
            apparmor=PROFILE,
        ),
        stop_signal="SIGUSR1",
    )


def unset_fields(message: object, *, but: set[str] = frozenset()) -> set[str]:  # type: ignore[assignment]
    """Fields of a message (not of those inside it) that hold nothing."""
    said = {field.name for field, _ in message.ListFields()}  # type: ignore[attr-defined]
    return {f.name for f in message.DESCRIPTOR.fields} - said - but  # type: ignore[attr-defined]


def test_a_full_sandbox_fills_every_field() -> None:
    config = encode_sandbox(full_sandbox())

    assert unset_fields(config) == set()
    assert unset_fields(config.linux) == set()
    assert unset_fields(config.linux.security_context) == {"apparmor"}
    assert unset_fields(config.linux.resources) == set()
    assert unset_fields(config.linux.security_context.namespace_options) == set()


def test_a_full_container_fills_every_field() -> None:
    # behaviours.md §30: "Container: metadata (name, attempt), image, command, args, working_dir, envs, mounts, devices,
    # CDI devices, labels, annotations, log_path ..., stdin, stdin_once, tty, linux (resources, security_context)."
    config = encode_container(full_container())

    assert unset_fields(config) == set()
    assert unset_fields(config.linux.security_context) == set()
    assert unset_fields(config.linux.security_context.capabilities) == {"add_ambient_capabilities"}
    assert unset_fields(config.mounts[0]) == {"image", "image_sub_path"}
    assert unset_fields(config.image) == {"annotations"}


def test_values_arrive_as_they_are() -> None:
    sandbox, container = encode_sandbox(full_sandbox()), encode_container(full_container())

    assert sandbox.metadata == pod_sandbox_pb2.PodSandboxMetadata(name="p", uid="u", namespace="d", attempt=3)
    assert sandbox.port_mappings[0].protocol == pod_sandbox_pb2.UDP
    assert sandbox.linux.overhead.oom_score_adj == -997
    assert [(e.key, e.value) for e in container.envs] == [("A", b"1"), ("A", b"2")]
    assert container.mounts[0].propagation == container_pb2.PROPAGATION_BIDIRECTIONAL
    assert container.mounts[1].image.image == "data:1"
    assert container.linux.security_context.namespace_options.pid == linux_pb2.TARGET
    assert container.stop_signal == container_pb2.SIGUSR1


def test_user_zero_is_said_and_no_user_is_not() -> None:
    root = encode_container(ContainerSpec(name="c", security=ContainerSecurity(run_as_user=0)))
    nobody = encode_container(ContainerSpec(name="c"))

    assert root.linux.security_context.HasField("run_as_user")
    assert not nobody.linux.security_context.HasField("run_as_user")


def test_empty_dns_is_said_and_no_dns_is_not() -> None:
    empty = encode_sandbox(SandboxSpec(name="p", namespace="d", uid="u", dns=DNSConfig()))
    absent = encode_sandbox(SandboxSpec(name="p", namespace="d", uid="u"))

    assert empty.HasField("dns_config")
    assert not absent.HasField("dns_config")


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        (SecurityProfile(kind="RuntimeDefault"), "runtime/default"),
        (SecurityProfile(kind="Unconfined"), "unconfined"),
        (SecurityProfile(kind="Localhost", localhost_ref="mine"), "localhost/mine"),
        (None, ""),
    ],
)
def test_apparmor_is_said_in_the_old_field_too(profile: SecurityProfile | None, text: str) -> None:
    """behaviours.md §30: "AppArmor is sent in the profile field and in the old string (runtime/default,
    localhost/<name>, unconfined)"."""
    config = encode_container(ContainerSpec(name="c", security=ContainerSecurity(apparmor=profile)))

    assert config.linux.security_context.apparmor_profile == text
    assert config.linux.security_context.HasField("apparmor") == (profile is not None)


def test_an_environment_value_may_hold_any_bytes() -> None:
    config = encode_container(ContainerSpec(name="c", envs=(("RAW", b"\xff\xfe".decode(errors="surrogateescape")),)))

    assert config.envs[0].value == b"\xff\xfe"


@pytest.mark.parametrize(
    "spec",
    [
        SandboxSpec(name="p", namespace="d", uid="u", attempt=-1),
        SandboxSpec(name="p", namespace="d", uid="u", hostname="\udcff"),
        SandboxSpec(name="p", namespace="d", uid="u", port_mappings=(PortMapping(protocol="ICMP", container_port=1),)),
        SandboxSpec(name="p", namespace="d", uid="u", resources=Resources(cpu_quota=1 << 63)),
    ],
)
def test_what_the_protocol_cannot_carry_is_a_refusal(spec: SandboxSpec) -> None:
    with (
        pytest.raises(RuntimeRejected, match="the CRI cannot carry a value"),
        refusing_unencodable(Verb.RUN_POD_SANDBOX),
    ):
        encode_sandbox(spec)


def test_resources_left_at_zero_are_not_said() -> None:
    assert encode_resources(Resources()).ByteSize() == 0
