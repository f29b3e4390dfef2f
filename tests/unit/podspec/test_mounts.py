from __future__ import annotations

from typing import Any

import pytest

from glasslet.exchange.volume import MountedVolume, SubPath
from glasslet.podspec.errors import ConfigError
from glasslet.podspec.mounts import container_devices, container_mounts, sub_paths
from glasslet.podspec.request import UserNamespace
from glasslet.runtime.spec import Device, IdMapping, MountPropagation
from tests.builders.podspec import container_request, node_facts, pod_of

VOLUMES = {
    "data": MountedVolume(name="data", path="/v/data", selinux_relabel=True),
    "cfg": MountedVolume(name="cfg", path="/v/cfg", read_only=True),
    "img": MountedVolume(name="img", image="sha256:feed"),
}


def request(*mounts: dict[str, Any], container: dict[str, Any] | None = None, **changes: Any) -> Any:
    pod = pod_of({"volumeMounts": list(mounts)} | (container or {}), **changes.pop("spec", {}))
    return container_request(pod, **({"volumes": VOLUMES} | changes))


def only(*mounts: dict[str, Any], **changes: Any) -> Any:
    found = container_mounts(request(*mounts, **changes), {"POD": "web-0", "EMPTY": ""})
    assert len(found) == 1
    return found[0]


def test_volumes_come_first_then_hosts_then_termination_log() -> None:
    # behaviours.md §19: "Mount order over CRI: device plugin mounts, volumeMounts in spec order, /etc/hosts,
    # termination log."
    asked = request(
        {"name": "cfg", "mountPath": "/b"},
        {"name": "data", "mountPath": "/a"},
        container={"terminationMessagePath": "/dev/termination-log"},
        etc_hosts="/pods/u/etc-hosts",
        termination_log="/pods/u/containers/main/0",
    )
    assert [(m.container_path, m.host_path) for m in container_mounts(asked, {})] == [
        ("/b", "/v/cfg"),
        ("/a", "/v/data"),
        ("/etc/hosts", "/pods/u/etc-hosts"),
        ("/dev/termination-log", "/pods/u/containers/main/0"),
    ]


def test_a_container_that_mounts_etc_hosts_itself_gets_no_managed_one() -> None:
    mount = only({"name": "cfg", "mountPath": "/etc/hosts"}, etc_hosts="/pods/u/etc-hosts")
    assert mount.host_path == "/v/cfg"


def test_relative_mount_paths_are_made_absolute() -> None:
    # behaviours.md §19: "Relative mount paths are made absolute."
    assert only({"name": "data", "mountPath": "data"}).container_path == "/data"


@pytest.mark.parametrize(
    ("volume", "mount_says", "result"), [("data", False, False), ("data", True, True), ("cfg", False, True)]
)
def test_a_mount_is_read_only_if_either_says_so(volume: str, mount_says: bool, result: bool) -> None:
    # behaviours.md §19: "Read-only if the mount or the volume says so."
    assert only({"name": volume, "mountPath": "/x", "readOnly": mount_says}).readonly is result


def test_relabelling_happens_on_selinux_nodes_only() -> None:
    # behaviours.md §19: "selinux_relabel only on SELinux nodes: for managed volumes that ask for it, always for hosts
    # and termination log."
    mounts = [{"name": "data", "mountPath": "/a"}, {"name": "cfg", "mountPath": "/b"}]
    plain = container_mounts(request(*mounts, etc_hosts="/h"), {})
    labelled = container_mounts(request(*mounts, etc_hosts="/h", node=node_facts(selinux=True)), {})
    assert [m.selinux_relabel for m in plain] == [False, False, False]
    assert [m.selinux_relabel for m in labelled] == [True, False, True]


def test_a_volume_that_is_not_mounted_is_named_with_its_container() -> None:
    # behaviours.md §19: "A volumeMount without a mounted volume: `cannot find volume "<v>" to mount into container
    # "<c>"` (CreateContainerConfigError)"
    with pytest.raises(ConfigError) as caught:
        only({"name": "gone", "mountPath": "/x"})
    assert caught.value.message == 'cannot find volume "gone" to mount into container "main"'
    assert caught.value.reason == "CreateContainerConfigError"


def test_a_block_device_without_volume_is_named() -> None:
    asked = request(container={"volumeDevices": [{"name": "disk", "devicePath": "/dev/xvda"}]})
    with pytest.raises(ConfigError, match='cannot find volume "disk" to pass into container "main"'):
        container_devices(asked)


@pytest.mark.parametrize(("read_only", "permissions"), [(False, "mrw"), (True, "r")])
def test_a_disk_is_given_with_its_permissions(read_only: bool, permissions: str) -> None:
    # behaviours.md §22: "Raw block devices are given with permissions mrw, or r when read-only."
    asked = request(
        container={"volumeDevices": [{"name": "disk", "devicePath": "/dev/xvda"}]},
        volumes={"disk": MountedVolume(name="disk", device="/dev/sdb", read_only=read_only)},
    )
    wanted = Device(container_path="/dev/xvda", host_path="/dev/sdb", permissions=permissions)
    assert container_devices(asked) == (wanted,)


@pytest.mark.parametrize(
    ("mode", "propagation"),
    [
        (None, MountPropagation.PRIVATE),
        ("None", MountPropagation.PRIVATE),
        ("HostToContainer", MountPropagation.HOST_TO_CONTAINER),
        ("Bidirectional", MountPropagation.BIDIRECTIONAL),
    ],
)
def test_propagation_modes_are_passed_on(mode: str | None, propagation: MountPropagation) -> None:
    # behaviours.md §22: "Mount propagation None (default, private)/HostToContainer/Bidirectional"
    assert only({"name": "data", "mountPath": "/x", "mountPropagation": mode}).propagation is propagation


def test_an_unknown_propagation_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match='invalid MountPropagation mode: "Sideways"'):
        only({"name": "data", "mountPath": "/x", "mountPropagation": "Sideways"})


@pytest.mark.parametrize(
    ("mode", "supported", "result"),
    [
        (None, True, False),
        ("Disabled", True, False),
        ("IfPossible", True, True),
        ("IfPossible", False, False),
        ("Enabled", True, True),
    ],
)
def test_recursive_read_only_follows_mode_and_runtime(mode: str | None, supported: bool, result: bool) -> None:
    mount = {"name": "data", "mountPath": "/x", "readOnly": True, "recursiveReadOnly": mode}
    node = node_facts(recursive_read_only_handlers=frozenset({"kata"} if supported else {""}))
    assert only(mount, node=node, runtime_handler="kata").recursive_read_only is result


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"readOnly": False}, 'volume "data" requested recursive read-only mode, but it is not read-only'),
        ({"mountPropagation": "HostToContainer"}, 'not compatible with propagation "HostToContainer"'),
        ({"recursiveReadOnly": "Maybe"}, 'unknown recursive read-only mode "Maybe"'),
        # behaviours.md §22: "Enabled fails on a runtime without it."
        ({}, 'volume "data" requested recursive read-only mode, but it is not supported by the runtime'),
    ],
)
def test_recursive_read_only_that_cannot_be_had_is_refused(change: dict[str, Any], message: str) -> None:
    mount = {"name": "data", "mountPath": "/x", "readOnly": True, "recursiveReadOnly": "Enabled"} | change
    with pytest.raises(ConfigError, match=message):
        only(mount)


def test_a_sub_path_is_mounted_from_where_it_was_bound() -> None:
    assert (
        only({"name": "data", "mountPath": "/x", "subPath": "a/b"}, sub_paths={0: "/bound/0"}).host_path == "/bound/0"
    )


def test_a_sub_path_that_was_not_bound_says_nothing_about_the_host() -> None:
    # behaviours.md §19: "subPath failures tell no host details"
    with pytest.raises(ConfigError) as caught:
        only({"name": "data", "mountPath": "/x", "subPath": "a/b"})
    assert caught.value.message == 'failed to prepare subPath for volumeMount "data" of container "main"'


@pytest.mark.parametrize(
    ("mount", "message"),
    [
        ({"subPath": "/abs"}, "error SubPath `/abs` must not be an absolute path"),
        ({"subPath": "a/../../etc"}, r"unable to provision SubPath `a/../../etc`: must not contain '\.\.'"),
        ({"subPathExpr": "$(NONE)"}, "missing value for NONE"),
        ({"subPathExpr": "$(EMPTY)"}, "missing value for EMPTY"),
    ],
)
def test_a_sub_path_that_could_leave_its_volume_is_refused(mount: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        only({"name": "data", "mountPath": "/x"} | mount, sub_paths={0: "/bound"})


def test_wanted_sub_paths_are_expanded_with_the_environment() -> None:
    asked = request(
        {"name": "data", "mountPath": "/all"},
        {"name": "data", "mountPath": "/own", "subPathExpr": "logs/$(POD_NAME)"},
        {"name": "cfg", "mountPath": "/f", "subPath": "f.conf"},
        {"name": "img", "mountPath": "/i", "subPath": "inner"},
        container={"env": [{"name": "POD_NAME", "value": "web-0"}]},
    )
    assert sub_paths(asked) == (
        SubPath(index=1, volume="data", path="logs/web-0"),
        SubPath(index=2, volume="cfg", path="f.conf", read_only=True),
    )


def test_no_environment_is_needed_without_sub_path_expressions() -> None:
    asked = request({"name": "data", "mountPath": "/x"}, container={"envFrom": [{"secretRef": {"name": "s"}}]})
    assert sub_paths(asked) == ()


def test_an_image_volume_is_mounted_by_image() -> None:
    mount = only({"name": "img", "mountPath": "/x", "subPath": "inner"})
    assert (mount.image, mount.image_sub_path, mount.host_path) == ("sha256:feed", "inner", "")


def test_mounts_of_user_namespace_pods_carry_the_mappings() -> None:
    # behaviours.md §30: "Volume mounts of user namespace pods carry uid and gid mappings."
    ids = (IdMapping(host_id=65536, container_id=0, length=65536),)
    mapped = UserNamespace(uids=ids, gids=ids)
    mount = only({"name": "data", "mountPath": "/x"}, spec={"hostUsers": False}, user_namespace=mapped)
    assert (mount.uid_mappings, mount.gid_mappings) == (ids, ids)
