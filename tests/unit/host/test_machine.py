from __future__ import annotations

from pathlib import Path

import pytest

from glasslet.host.machine import Machine, node_name, read_machine

FILES = {
    "proc/meminfo": "MemTotal:       8000000 kB\nMemFree: 1 kB\nSwapTotal:      1024 kB\nHugePages_Total:       0\n",
    "proc/sys/kernel/random/boot_id": "1234-boot\n",
    "proc/sys/kernel/osrelease": "6.1.0-test\n",
    "etc/machine-id": "abcdef\n",
    "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "sys/class/dmi/id/product_uuid": "uuid-1\n",
    "sys/devices/system/cpu/online": "0-2,5\n",
    "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0",
    "sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages": "0",
    "sys/devices/system/cpu/cpu10/thermal_throttle/count": "0",
    "sys/devices/system/cpu/cpu2/thermal_throttle/count": "0",
    "sys/devices/system/cpu/cpu3/online": "1",
}


def machine(root: Path, **more: str) -> Machine:
    for name, text in (FILES | {k.replace("__", "/"): v for k, v in more.items()}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return read_machine(str(root))


def test_a_machine_is_read_from_its_kernel(tmp_path: Path) -> None:
    assert machine(tmp_path) == Machine(
        memory_capacity=8_000_000 * 1024,
        swap_capacity=1024 * 1024,
        cpu_count=4,
        boot_id="1234-boot",
        machine_id="abcdef",
        system_uuid="uuid-1",
        kernel_version="6.1.0-test",
        os_image="Debian GNU/Linux 12 (bookworm)",
        hugepage_sizes=("64KB", "2MB", "1GB"),
        # behaviours.md §30: "existing /sys/devices/system/cpu/cpu<n>/thermal_throttle"
        masked_paths=(
            "/sys/devices/system/cpu/cpu2/thermal_throttle",
            "/sys/devices/system/cpu/cpu10/thermal_throttle",
        ),
    )


def test_a_machine_that_says_nothing_is_still_a_machine(tmp_path: Path) -> None:
    found = read_machine(str(tmp_path))
    assert (found.memory_capacity, found.boot_id, found.cgroup_v2) == (0, "", False)
    assert found.cpu_count >= 1


def test_swap_of_v1_is_limited_by_memsw(tmp_path: Path) -> None:
    assert machine(tmp_path).swap_controller is False
    (tmp_path / "sys/fs/cgroup/memory").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes").write_text("1")
    assert read_machine(str(tmp_path)).swap_controller is True


def test_swap_of_v2_is_limited_where_the_agents_cgroup_has_the_file(tmp_path: Path) -> None:
    (tmp_path / "sys/fs/cgroup/system.slice/kubelet.service").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").write_text("cpu memory")
    (tmp_path / "sys/fs/cgroup/system.slice/kubelet.service/memory.swap.max").write_text("max")
    found = machine(tmp_path, proc__self__cgroup="0::/system.slice/kubelet.service\n")
    assert (found.cgroup_v2, found.swap_controller) == (True, True)


def test_selinux_is_seen(tmp_path: Path) -> None:
    assert machine(tmp_path).selinux is False
    assert machine(tmp_path, sys__fs__selinux__enforce="1").selinux is True


@pytest.mark.parametrize(
    ("override", "hostname", "name"),
    [("", "Box.Example.org\n", "box.example.org"), (" My-Node ", "box", "my-node")],
)
def test_the_nodes_name_is_trimmed_and_in_lower_case(override: str, hostname: str, name: str) -> None:
    # behaviours.md §12: "Node name: --hostname-override or the host name, trimmed and lower-cased; an empty one is an
    # error."
    assert node_name(override, hostname) == name


def test_a_node_without_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="hostname-override"):
        node_name("  ", " ")
