"""Both versions of cgroups, on plain folders that behave as the kernel's do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from glasslet.host.cgroups.discovery import (
    CgroupsNotUsable,
    find_tree,
    huge_page_bytes,
    max_tasks,
    own_cgroup,
    runs_systemd,
    usable_cpus,
)
from glasslet.host.cgroups.tree import (
    KernelFiles,
    Setting,
    controller_mounts,
    processes_in,
    remove_directory,
    tree_of,
    write_file,
    write_settings,
)
from glasslet.host.cgroups.v1 import CgroupV1
from glasslet.host.mounts.table import MountTable
from tests.fakes.cgroups import FoldersV1, FoldersV2

POD = "/kubepods/burstable/podX"
V1_MOUNTS = """\
30 20 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
34 30 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
35 30 0:29 / /var/lib/somebody/memory rw - cgroup cgroup rw,memory
36 30 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""


def test_a_cgroup_is_made_with_its_parents_in_every_needed_tree_of_version_1(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path)
    assert machine.tree.missing(POD)
    machine.tree.create(POD)
    assert machine.tree.missing(POD) == ()
    assert machine.tree.exists(POD)


def test_a_new_cpuset_has_the_cpus_and_memory_nodes_of_its_parent(tmp_path: Path) -> None:
    """Version 1 puts no process into a cpuset without them."""
    machine = FoldersV1(tmp_path)
    machine.tree.create(POD)
    assert machine.get("cpuset", POD, "cpuset.cpus") == "0-3"
    assert machine.get("cpuset", POD, "cpuset.mems") == "0"


def test_a_cpuset_that_was_left_half_made_is_completed(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path)
    machine.tree.create(POD)
    machine.set("cpuset", POD, "cpuset.mems", "")
    machine.tree.create(POD)
    assert machine.get("cpuset", POD, "cpuset.mems") == "0"


def test_a_cgroup_that_is_gone_from_one_tree_does_not_exist(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path)
    machine.tree.create(POD)
    machine.remove(str(tmp_path / f"memory{POD}"))
    assert not machine.tree.exists(POD)
    assert machine.tree.missing(POD) == (str(tmp_path / f"memory{POD}"),)


def test_removal_takes_what_the_runtime_made_in_other_trees_and_below(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path)
    machine.tree.create(POD)
    for part in ("", "/kubepods", "/kubepods/burstable", POD, f"{POD}/container"):
        if part:
            machine.make(str(tmp_path / f"devices{part}"))
    machine.make(str(tmp_path / f"cpu{POD}/container"))
    assert machine.tree.remove(POD)
    assert not list(tmp_path.glob("*/kubepods/burstable/podX"))
    assert machine.tree.remove(POD)


def test_what_still_has_processes_is_not_removed(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path)
    machine.tree.create(POD)
    machine.make(str(tmp_path / f"pids{POD}/container"))
    machine.set("pids", f"{POD}/container", "cgroup.procs", "4711\n4712\n")
    assert not machine.tree.remove(POD)
    assert machine.tree.processes(POD) == {4711, 4712}
    assert machine.tree.children("/kubepods/burstable") == {"podX"}


def test_a_controller_that_is_not_mounted_is_named(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path, controllers=("cpu", "memory"))
    machine.tree.create(POD)
    with pytest.raises(OSError, match="cgroup controller pids is not mounted"):
        machine.tree.write(POD, [Setting("pids", "pids.max", "5")])


def test_the_error_of_a_refused_value_names_value_and_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_file(str(tmp_path / "memory.max"), "12")
    assert caught.value.filename == str(tmp_path / "memory.max")


def test_a_file_that_the_kernel_does_not_have_may_be_optional(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path)
    machine.tree.create(POD)
    machine.tree.write(POD, [Setting("hugetlb", "hugetlb.2MB.rsvd.limit_in_bytes", "0", optional=True)])
    with pytest.raises(FileNotFoundError):
        machine.tree.write(POD, [Setting("hugetlb", "hugetlb.2MB.rsvd.limit_in_bytes", "0")])


def test_frozen_processes_are_thawed(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path)
    for part in ("/kubepods", "/kubepods/burstable", POD, f"{POD}/container"):
        machine.make(str(tmp_path / f"freezer{part}"))
    machine.set("freezer", f"{POD}/container", "freezer.state", "FROZEN")
    machine.tree.thaw(POD)
    assert machine.get("freezer", f"{POD}/container", "freezer.state") == "THAWED"


def test_a_process_is_moved_in_every_tree(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path)
    machine.tree.move(4711, "/kubelet")
    assert {Path(path).read_text() for path in tmp_path.glob("*/kubelet/cgroup.procs")} == {"4711"}
    assert machine.tree.own_processes("/kubelet") == {4711}


def test_parents_hand_their_controllers_down_in_version_2(tmp_path: Path) -> None:
    # behaviours.md §16: "on v2 the controllers cpu, cpuset, memory, hugetlb, pids that the root has are switched on."
    machine = FoldersV2(tmp_path / "cg")
    machine.tree.create("/kubepods")
    machine.tree.create("/kubepods/burstable")
    machine.tree.create(POD)
    for parent in ("/", "/kubepods", "/kubepods/burstable"):
        switched = set(machine.get(parent, "cgroup.subtree_control").split())
        assert switched >= {"cpu", "cpuset", "memory", "hugetlb", "pids"}
    assert machine.get(POD, "cgroup.subtree_control") == ""
    assert machine.tree.exists(POD)


def test_a_controller_that_the_root_lacks_is_not_missed(tmp_path: Path) -> None:
    machine = FoldersV2(tmp_path / "cg", controllers=("cpu", "memory", "pids"))
    machine.tree.create("/kubepods")
    assert machine.tree.exists("/kubepods")


def test_a_cgroup_without_a_controller_that_pods_need_does_not_count(tmp_path: Path) -> None:
    machine = FoldersV2(tmp_path / "cg")
    machine.tree.create("/kubepods")
    machine.set("/kubepods", "cgroup.controllers", "cpu io\n")
    assert machine.tree.missing("/kubepods") == ("cpuset", "hugetlb", "memory", "pids")
    assert machine.tree.missing("/elsewhere") == (str(tmp_path / "cg/elsewhere"),)


def test_values_replace_those_before_altogether(tmp_path: Path) -> None:
    machine = FoldersV2(tmp_path / "cg")
    machine.tree.create("/kubepods")
    machine.tree.write("/kubepods", [Setting("memory", "memory.max", "1000000")])
    machine.tree.write("/kubepods", [Setting("memory", "memory.max", "5")])
    assert machine.tree.read("/kubepods", "memory", "memory.max") == "5"


def test_version_2_is_removed_with_all_below(tmp_path: Path) -> None:
    machine = FoldersV2(tmp_path / "cg")
    machine.tree.create(POD)
    machine.make(str(tmp_path / f"cg{POD}/container"))
    machine.set(f"{POD}/container", "cgroup.procs", "4711\n")
    assert not machine.tree.remove(POD)
    machine.set(f"{POD}/container", "cgroup.procs", "")
    assert machine.tree.remove(POD)
    assert machine.tree.children("/kubepods/burstable") == set()


def test_the_mounts_of_version_1_are_found_by_controller() -> None:
    found = controller_mounts(MountTable(V1_MOUNTS.encode()))
    assert found == {
        "systemd": "/sys/fs/cgroup/systemd",
        "cpu": "/sys/fs/cgroup/cpu,cpuacct",
        "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
        "memory": "/sys/fs/cgroup/memory",
        "cpuset": "/sys/fs/cgroup/cpuset",
    }
    tree = find_tree(MountTable(V1_MOUNTS.encode()))
    assert isinstance(tree, CgroupV1)
    assert tree.version == 1


def test_controllers_that_are_not_mounted_stop_the_start() -> None:
    # behaviours.md §16: "v1 needs cpu, cpuacct, cpuset, memory"
    table = MountTable("\n".join(line for line in V1_MOUNTS.splitlines() if "cpu" not in line).encode())
    with pytest.raises(CgroupsNotUsable, match=r"Cgroup subsystem not mounted: \[cpu cpuacct cpuset\]"):
        find_tree(table)


def test_a_machine_says_what_only_cgroups_hand_out(tmp_path: Path) -> None:
    for name, text in {
        "proc/sys/kernel/pid_max": "32768\n",
        "proc/sys/kernel/threads-max": "30000\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "3\n",
        "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    root = str(tmp_path)
    assert max_tasks(root) == 30_000
    assert huge_page_bytes(root) == {2 << 20: 6 << 20, 1 << 30: 0}
    assert not runs_systemd(root)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    assert runs_systemd(root)
    assert (max_tasks(f"{root}/none"), huge_page_bytes(f"{root}/none")) == (0, {})


def test_the_usable_cpus_are_those_of_the_cgroup_above(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    assert usable_cpus(FoldersV1(tmp_path / "1").tree) == "0-3"
    assert usable_cpus(FoldersV2(tmp_path / "2").tree) == "0-3"
    assert usable_cpus(FoldersV2(tmp_path / "2").tree, "/not/there") == ""


def test_a_process_tells_its_cgroups(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_bytes(b"4:cpu,cpuacct:/a\n1:name=systemd:/b\rc\n0::/c:d\n")
    assert own_cgroup(str(tmp_path)) == {"cpu": "/a", "cpuacct": "/a", "systemd": "/b\rc", "": "/c:d"}


def test_a_period_that_does_not_fit_yet_is_written_again(tmp_path: Path) -> None:
    """As the kernel has it: no shorter period while the old quota is too large for it."""
    machine = FoldersV1(tmp_path)
    machine.tree.create(POD)
    written: list[str] = []

    def write(path: str, value: str) -> None:
        if path.endswith("period_us") and not written:
            written.append("refused")
            raise OSError(errno.EINVAL, "Invalid argument", path)
        written.append(value)

    settings = [
        Setting("cpu", "cpu.cfs_period_us", "20000", later=True),
        Setting("cpu", "cpu.cfs_quota_us", "10000"),
    ]
    write_settings(settings, lambda setting: setting.file, KernelFiles(write=write))
    assert written == ["refused", "10000", "20000"]


def test_a_value_that_does_not_fit_at_all_is_an_error(tmp_path: Path) -> None:
    machine = FoldersV1(tmp_path)
    machine.tree.create(POD)
    machine.refused["period_us"] = errno.EINVAL
    with pytest.raises(OSError, match="Invalid argument"):
        machine.tree.write(POD, [Setting("cpu", "cpu.cfs_period_us", "20000", later=True)])


def test_cgroups_nested_deeper_than_any_recursion_are_read_and_removed(tmp_path: Path) -> None:
    path = str(tmp_path)
    for _ in range(1500):
        path += "/a"
        os.mkdir(path)
    kernel = KernelFiles()
    assert len(tree_of(str(tmp_path))) == 1501
    assert processes_in(str(tmp_path), below=True) == set()
    assert remove_directory(f"{tmp_path}/a", kernel)
    assert os.listdir(tmp_path) == []
