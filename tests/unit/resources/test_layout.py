"""Names in the tree of pod cgroups."""

from __future__ import annotations

import pytest

from glasslet.resources.layout import (
    CgroupLayout,
    CgroupNameInvalid,
    cgroupfs_path,
    in_brackets,
    parse_name,
    systemd_path,
)

UID = "1234-abcd-5678-efgh"


@pytest.mark.parametrize(
    ("qos", "path"),
    [
        ("Guaranteed", f"/kubepods/pod{UID}"),
        ("Burstable", f"/kubepods/burstable/pod{UID}"),
        ("BestEffort", f"/kubepods/besteffort/pod{UID}"),
    ],
)
def test_each_class_has_its_place_in_the_tree(qos: str, path: str) -> None:
    # behaviours.md §16: "Guaranteed pods sit directly under kubepods."
    # behaviours.md §16: "Cgroup tree (cgroupfs): /kubepods/pod<uid>, /kubepods/burstable/pod<uid>,
    # /kubepods/besteffort/pod<uid>."
    assert CgroupLayout().pod(qos, UID) == path


def test_slices_of_systemd_carry_the_names_of_those_around_them() -> None:
    # behaviours.md §16: "systemd: kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _ for
    # ->.slice."
    # behaviours.md §16: "cgroup_parent given to the runtime with systemd is the full slice path in cgroupfs form"
    layout = CgroupLayout(systemd=True)
    expected = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_abcd_5678_efgh.slice"
    assert layout.pod("Burstable", UID) == expected


def test_the_root_comes_before_kubepods() -> None:
    # behaviours.md §16: "cgroupRoot is put before kubepods."
    root = parse_name("/a/b/")
    assert CgroupLayout(root=root).pod("BestEffort", "u") == "/a/b/kubepods/besteffort/podu"
    assert CgroupLayout(root=root, systemd=True).path((*root, "kubepods")) == "/a.slice/a-b.slice/a-b-kubepods.slice"


def test_the_root_itself_is_a_slash_in_both_forms() -> None:
    assert (cgroupfs_path(()), systemd_path(())) == ("/", "/")


@pytest.mark.parametrize("systemd", [False, True])
@pytest.mark.parametrize("uid", [UID, "0f1e2d3c4b5a69788796a5b4c3d2e1f0"])
def test_the_pod_is_read_back_from_its_cgroup(systemd: bool, uid: str) -> None:
    layout = CgroupLayout(systemd=systemd)
    assert layout.uid_of(layout.pod("Burstable", uid).rpartition("/")[2]) == uid


@pytest.mark.parametrize("element", ["burstable", "besteffort", "pod", "podXpodY", "crio-1.scope"])
def test_what_is_no_pods_cgroup_is_left_alone(element: str) -> None:
    assert CgroupLayout().uid_of(element) is None


@pytest.mark.parametrize("element", ["kubepods-burstable.slice", "podX", "kubepods-pod.slice"])
def test_what_is_no_pods_slice_is_left_alone(element: str) -> None:
    assert CgroupLayout(systemd=True).uid_of(element) is None


@pytest.mark.parametrize("uid", ["", "a/b", "/../../cpu", "a\0b", "x" * 300])
def test_a_uid_cannot_lead_out_of_the_tree(uid: str) -> None:
    with pytest.raises(CgroupNameInvalid, match="cannot name a cgroup"):
        CgroupLayout().pod("Burstable", uid)


def test_names_are_shown_as_the_kubelet_shows_them() -> None:
    assert in_brackets(("a", "kubepods")) == '["a" "kubepods"]'
