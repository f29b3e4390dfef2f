"""A node brought up to date: what belongs to the kubelet changes, everything else stays."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from glasslet.api.node import AttachedVolume, Node, NodeCondition, NodeSpec, NodeSystemInfo
from glasslet.node.status.compose import compose, has_changed, is_ready
from glasslet.runtime.model import Image, RuntimeHandler
from glasslet.version import KUBELET_VERSION
from tests.builders.node import NOW, inputs, node, settings

LATER = NOW + timedelta(seconds=10)


def with_status(old: Node, **changes: Any) -> Node:
    return replace(old, status=replace(old.status, **changes))


def test_node_info_names_machine_system_and_versions() -> None:
    # behaviours.md §12: "nodeInfo (machineID, systemUUID, bootID, kernelVersion, osImage, containerRuntimeVersion
    # `<name>://<version>`, kubeletVersion, kubeProxyVersion empty, operatingSystem, architecture, ..."
    assert node().status.node_info == NodeSystemInfo(
        machine_id="0123",
        system_uuid="uuid-1",
        boot_id="boot-1",
        kernel_version="6.1.0",
        os_image="Debian GNU/Linux 12",
        container_runtime_version="containerd://2.1.0",
        kubelet_version=KUBELET_VERSION,
        operating_system="linux",
        architecture="amd64",
    )


def test_swap_is_told_where_there_is_some() -> None:
    # behaviours.md §12: "swap.capacity if > 0"
    swap = node(swap_capacity=1024).status.node_info.swap
    assert swap is not None
    assert swap.capacity == 1024
    assert node(swap_capacity=0).status.node_info.swap is None


def test_a_runtime_that_never_said_its_version_is_unknown() -> None:
    assert node(runtime_version="").status.node_info.container_runtime_version == "containerd://Unknown"


def test_a_machine_without_dmi_table_has_its_machine_id_as_uuid() -> None:
    assert node(system_uuid="").status.node_info.system_uuid == "0123"


def test_the_kubelets_port_is_told() -> None:
    # behaviours.md §12: "daemonEndpoints.kubeletEndpoint.Port"
    assert compose(node(), settings(port=12345), inputs()).node.status.daemon_endpoints.kubelet_endpoint.port == 12345


def test_images_stand_in_the_status() -> None:
    assert node(images=(Image(id="a", tags=("web:1",), size=5),)).status.images[0].names == ("web:1",)


def test_runtime_handlers_tell_what_they_can() -> None:
    # behaviours.md §12: "runtimeHandlers[] (recursiveReadOnlyMounts, userNamespaces)"
    handlers = (RuntimeHandler(name="", user_namespaces=True), RuntimeHandler(name="kata"))
    told = node(handlers=handlers).status.runtime_handlers
    features = [(one.name, one.features) for one in told]
    assert [
        (name, found.recursive_read_only_mounts, found.user_namespaces) for name, found in features if found is not None
    ] == [("", False, True), ("kata", False, False)]


def test_features_are_absent_for_a_runtime_without_any() -> None:
    assert node().status.features is None


def test_a_feature_that_a_runtime_lost_is_told_as_false() -> None:
    # behaviours.md §12: "features.supplementalGroupsPolicy"
    had = node(supplemental_groups_policy=True)
    assert had.status.features is not None
    assert had.status.features.supplemental_groups_policy is True
    now = compose(had, settings(), inputs()).node.status.features
    assert now is not None
    assert now.supplemental_groups_policy is False


def test_features_wait_for_their_gate() -> None:
    gated = compose(node(), settings(features=False), inputs(supplemental_groups_policy=True))
    assert gated.node.status.features is None


def test_volumes_in_use_stay_until_they_are_all_known() -> None:
    # behaviours.md §12: "volumesInUse is written only after volume reconstruction."
    old = with_status(node(), volumes_in_use=("csi^1",))
    assert compose(old, settings(), inputs()).node.status.volumes_in_use == ("csi^1",)
    assert compose(old, settings(), inputs(volumes_in_use=())).node.status.volumes_in_use == ()


def test_attached_volumes_belong_to_the_controller() -> None:
    # behaviours.md §12: "volumesAttached (kept)"
    attached = (AttachedVolume(name="csi^1", device_path="/dev/x"),)
    assert compose(
        with_status(node(), volumes_attached=attached), settings(), inputs()
    ).node.status.volumes_attached == (attached)


def test_the_spec_is_never_touched() -> None:
    old = replace(node(), spec=NodeSpec(unschedulable=True, pod_cidr="10.0.0.0/24"))
    assert compose(old, settings(), inputs()).node.spec is old.spec


def test_os_and_arch_labels_are_repaired() -> None:
    # behaviours.md §12: "os and arch labels are repaired at each status update"
    old = node()
    broken = replace(old, metadata=replace(old.metadata, labels={"kubernetes.io/os": "plan9", "mine": "x"}))
    repaired = compose(broken, settings(), inputs()).node
    assert repaired.metadata.labels == {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "mine": "x"}
    assert has_changed(broken, repaired)


def test_a_reboot_is_told_with_the_new_boot_id() -> None:
    events = compose(node(), settings(), inputs(boot_id="boot-2")).events
    assert [(one.type, one.reason, one.message) for one in events] == [
        ("Warning", "Rebooted", "Node n1 has been rebooted, boot id: boot-2")
    ]


def test_a_first_boot_is_no_reboot() -> None:
    assert "Rebooted" not in [event.reason for event in compose(Node(), settings(), inputs()).events]


def test_missing_capacity_makes_a_node_unready() -> None:
    lacking = node(storage=None, errors=("network state unknown",))
    assert not is_ready(lacking)
    assert lacking.status.conditions[-1].message == (
        "[network state unknown, missing node capacity for resources: ephemeral-storage]"
    )


def test_heartbeats_alone_are_no_change() -> None:
    old = node()
    assert not has_changed(old, compose(old, settings(), inputs(now=LATER)).node)


def test_another_order_of_conditions_is_no_change() -> None:
    old = node()
    assert not has_changed(old, with_status(old, conditions=tuple(reversed(old.status.conditions))))


def test_every_other_difference_is_a_change() -> None:
    old = node()
    for changes in ({"errors": ("a",)}, {"addresses": ("10.9.9.9",)}, {"cpu_count": 5}, {"runtime_version": "3"}):
        assert has_changed(old, compose(old, settings(), inputs(**changes)).node), changes


def test_a_condition_that_came_in_is_a_change() -> None:
    old = node()
    more = (*old.status.conditions, NodeCondition(type="X", status="True"))
    assert has_changed(old, with_status(old, conditions=more))
