"""Which label a volume is mounted with, on nodes with SELinux."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.codec import convert
from glasslet.api.pod import Pod
from glasslet.api.security import SELinuxOptions
from glasslet.api.storage import CSIDriver
from glasslet.host.machine import read_machine
from glasslet.volumes.csi.errors import NotTried
from glasslet.volumes.csi.selinux import LabelledMounts, file_label, mount_option

FILE = "system_u:object_r:container_file_t:s0"
ON = LabelledMounts(file=FILE, one_pod=True, by_policy=True)
DRIVER = convert({"metadata": {"name": "d.example"}, "spec": {"seLinuxMount": True}}, CSIDriver)
ONE_POD = ("ReadWriteOncePod",)


def pod(*levels: str, **context: Any) -> Pod:
    """A pod with a container for each level, "" for none of its own, that mounts `data`."""

    def container(number: int, level: str) -> dict[str, Any]:
        own = {"securityContext": {"seLinuxOptions": {"level": level}}} if level else {}
        return {"name": f"c{number}", "volumeMounts": [{"name": "data", "mountPath": "/d"}], **own}

    containers = [container(number, level) for number, level in enumerate(levels)]
    return convert({"spec": {"containers": containers, "securityContext": context}}, Pod)


def label(one: Pod, mounts: LabelledMounts = ON, modes: tuple[str, ...] = ONE_POD, driver: Any = DRIVER) -> str:
    return mounts.label(one, "data", modes, driver)


def test_a_volume_has_the_level_of_its_containers() -> None:
    assert label(pod("s0:c1,c2")) == f"{FILE}:c1,c2"
    assert label(pod("", seLinuxOptions={"level": "s0:c3,c4"})) == f"{FILE}:c3,c4"
    assert label(pod("s0:c1,c2", seLinuxOptions={"level": "s0:c3,c4"})) == f"{FILE}:c1,c2"


def test_the_type_of_a_process_is_not_that_of_files() -> None:
    assert file_label(SELinuxOptions(type="spc_t", user="u"), FILE) == "u:object_r:container_file_t:s0"
    assert mount_option("a:b:c:s0:c1,c2") == 'context="a:b:c:s0:c1,c2"'


@pytest.mark.parametrize(
    ("mounts", "modes", "driver"),
    [
        (replace(ON, file=""), ONE_POD, DRIVER),
        (replace(ON, one_pod=False), ONE_POD, DRIVER),
        (ON, ("ReadWriteOnce",), DRIVER),
        (ON, ("ReadWriteOncePod", "ReadWriteOnce"), DRIVER),
        (ON, ONE_POD, None),
        (ON, ONE_POD, convert({"spec": {"seLinuxMount": False}}, CSIDriver)),
    ],
)
def test_without_selinux_gate_mode_or_driver_the_runtime_labels(
    mounts: LabelledMounts, modes: tuple[str, ...], driver: Any
) -> None:
    assert label(pod("s0:c1,c2"), mounts, modes, driver) == ""


def test_with_the_gate_for_all_modes_any_volume_has_a_label() -> None:
    assert label(pod("s0:c1,c2"), replace(ON, all_modes=True), ("ReadWriteMany",)) == f"{FILE}:c1,c2"


def test_a_pod_may_have_its_files_labelled_one_by_one() -> None:
    one = pod("s0:c1,c2", seLinuxChangePolicy="Recursive")
    assert label(one) == ""
    assert label(one, replace(ON, by_policy=False)) == f"{FILE}:c1,c2"


def test_a_pod_that_says_nothing_gets_no_label() -> None:
    assert label(pod("")) == ""


def test_containers_that_do_not_agree_are_told() -> None:
    with pytest.raises(NotTried, match="multiple SELinux labels found: "):
        label(pod("s0:c1,c2", "s0:c3,c4"))


def test_the_label_of_files_is_that_of_the_policy(tmp_path: Any) -> None:
    assert read_machine(str(tmp_path)).selinux_file_label == ""
    (tmp_path / "sys/fs/selinux").mkdir(parents=True)
    (tmp_path / "sys/fs/selinux/enforce").write_text("1")
    contexts = tmp_path / "etc/selinux/strict/contexts"
    contexts.mkdir(parents=True)
    (contexts / "lxc_contexts").write_text(f'process = "a:b:c:s0"\nfile = "{FILE}"\n')
    (tmp_path / "etc/selinux/config").write_text("# comment\nSELINUXTYPE=strict\n")
    assert read_machine(str(tmp_path)).selinux_file_label == FILE
