from __future__ import annotations

import pytest

from glasslet.api.object import PodUID
from glasslet.api.pod_ref import PodRef
from glasslet.host.files.layout import LogLayout, RootLayout, UnsafePath, component, container_log

ROOT = RootLayout("/var/lib/kubelet")
REF = PodRef("default", "web", PodUID("uid-1"))


def test_paths_are_those_of_the_go_kubelet() -> None:
    # behaviours.md §29: the table of the root directory
    assert ROOT.volume("u", "kubernetes.io/empty-dir", "data") == (
        "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/data"
    )
    assert ROOT.volume_notes("u", "kubernetes.io/empty-dir", "data") == (
        "/var/lib/kubelet/pods/u/plugins/kubernetes.io~empty-dir/data"
    )
    assert ROOT.sub_path("u", "data", "main", 2) == "/var/lib/kubelet/pods/u/volume-subpaths/data/main/2"
    assert ROOT.container("u", "main") == "/var/lib/kubelet/pods/u/containers/main"
    assert ROOT.etc_hosts("u") == "/var/lib/kubelet/pods/u/etc-hosts"


def test_log_paths_are_those_of_the_go_kubelet() -> None:
    # behaviours.md §18: "/var/log/pods/<namespace>_<pod>_<uid>/<container>/<restart count>.log; link
    # /var/log/containers/<pod>_<namespace>_<container>-<container id>.log"
    logs = LogLayout()
    assert f"{logs.pod(REF)}/{container_log('main', 3)}" == "/var/log/pods/default_web_uid-1/main/3.log"
    assert logs.link(REF, "main", "abc") == "/var/log/containers/web_default_main-abc.log"


def test_a_long_link_is_cut_but_keeps_id_and_suffix() -> None:
    # behaviours.md §18: "cut so that the name has at most 255 characters, id and suffix kept"
    name = LogLayout().link(PodRef("n" * 63, "p" * 253, PodUID("u")), "c" * 63, "f" * 64).rsplit("/", 1)[1]
    assert len(name) == 255
    assert name.startswith("p" * 186)
    assert name.endswith(f"-{'f' * 64}.log")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "a\0b", "x" * 256, "é" * 128])
def test_what_is_no_single_path_element_is_refused(name: str) -> None:
    with pytest.raises(UnsafePath, match="cannot be a file name"):
        component(name, "thing")


@pytest.mark.parametrize("name", ["a", "...", "..data", "x" * 255, "with space", "é" * 127])
def test_odd_but_harmless_names_are_taken(name: str) -> None:
    assert component(name, "thing") == name


def test_a_uid_cannot_climb_out_of_the_pods_directory() -> None:
    with pytest.raises(UnsafePath, match=r"pod uid '\.\./\.\./etc'"):
        ROOT.volumes("../../etc")
