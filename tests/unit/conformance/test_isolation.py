"""Which trees of cgroups a node of its own needs."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.isolation import Hierarchy, hierarchies, outermost


def test_every_v1_hierarchy_is_mounted_with_its_controllers() -> None:
    mounts = """\
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,nodev,noexec,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,xattr,release_agent=/lib/agent,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
"""
    assert hierarchies(mounts) == (
        Hierarchy("cpu,cpuacct", "cgroup", "cpu,cpuacct"),
        Hierarchy("memory", "cgroup", "memory"),
        Hierarchy("systemd", "cgroup", "none,xattr,name=systemd"),
    )


def test_the_unified_hierarchy_is_one_mount() -> None:
    assert hierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nsdelegate 0 0\n") == (Hierarchy("", "cgroup2", ""),)


def test_cgroups_of_others_places_are_not_ours() -> None:
    assert hierarchies("cgroup /mnt/box/cgroup/memory cgroup rw,memory 0 0\n/dev/vda / ext4 rw 0 0\n") == ()


def test_a_folder_that_is_inside_of_another_is_kept_with_it() -> None:
    paths = [Path("/tmp/wt/x/.venv"), Path("/tmp/out"), Path("/tmp/wt/x"), Path("/tmp/out")]
    assert outermost(paths) == [Path("/tmp/out"), Path("/tmp/wt/x")]
