"""Networks, disks, tasks, CPUs, open files: readers over small trees."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from glasslet.host.files.descent import open_directory_below
from glasslet.host.files.removal import remove_own_tree
from glasslet.host.kernel_text import contents
from glasslet.host.machine import boot_time
from glasslet.stats.cgroups import handles
from glasslet.stats.cgroups.handles import UNLIMITED, Handles, count_handles, open_files_limit
from glasslet.stats.disks import disk_usage
from glasslet.stats.disks.disk_counters import NO_COUNTERS, DiskCounters, disk_counters
from glasslet.stats.disks.disk_usage import Taken, files_take, filesystem, folder_takes
from glasslet.stats.network import interfaces
from glasslet.stats.node_figures import BlockDevices, Sockets, accounted_group, cpu_topology, task_limit

NET_DEV = b"""\
Inter-|   Receive                                                |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0
  eth0:123456789 200 3 4 0 0 0 0 987654321 300 5 6 0 0 0 0
vethab12: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0
docker0: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0
"""


def test_interfaces_have_both_directions() -> None:
    (eth0,) = interfaces(NET_DEV)
    assert (eth0.name, eth0.rx_bytes, eth0.rx_packets, eth0.rx_errors, eth0.rx_dropped) == (
        "eth0",
        123456789,
        200,
        3,
        4,
    )
    assert (eth0.tx_bytes, eth0.tx_packets, eth0.tx_errors, eth0.tx_dropped) == (987654321, 300, 5, 6)


def test_a_container_cannot_hide_an_interface_behind_a_line_separator_in_its_name() -> None:
    odd = "a\x1cb\x85c\u2028d"
    figures = b" 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0"
    found = interfaces(odd.encode() + b":" + figures + b"\n  eth0:" + figures + b"\n")
    assert [interface.name for interface in found] == [odd, "eth0"]


def test_a_file_that_is_no_list_of_interfaces_has_none() -> None:
    assert interfaces(b"eth0: 1 2\nnonsense\n") == ()


def test_a_folder_takes_the_blocks_of_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "file").write_bytes(b"x" * 100_000)

    taken = folder_takes(str(tmp_path))

    paths = [tmp_path, tmp_path / "deep", tmp_path / "deep" / "er", tmp_path / "deep" / "er" / "file"]
    assert taken == Taken(sum(path.stat().st_blocks for path in paths) * 512, 4)


def test_hard_links_count_once_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").write_bytes(b"x" * 1_000_000)
    (tmp_path / "in" / "one").write_bytes(b"x" * 50_000)
    os.link(tmp_path / "in" / "one", tmp_path / "in" / "two")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")

    taken = folder_takes(str(tmp_path / "in"))

    assert taken.inodes == 3
    assert taken.bytes < 200_000


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        folder_takes(str(tmp_path / "gone"))


def test_logs_are_the_files_of_a_folder_without_those_below(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(b"x" * 8192)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "1.log").write_bytes(b"x" * 8192)

    assert files_take(str(tmp_path)) == Taken((tmp_path / "0.log").stat().st_blocks * 512, 1)
    assert files_take(str(tmp_path / "gone")) == Taken()


def test_a_file_system_is_as_statvfs_says(tmp_path: Path) -> None:
    found, said = filesystem(str(tmp_path)), os.statvfs(tmp_path)
    assert (found.capacity, found.inodes) == (said.f_blocks * said.f_frsize, said.f_files)
    assert 0 < found.available <= found.capacity
    assert found.device == tmp_path.stat().st_dev


def test_disks_are_counted_by_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "diskstats").write_text(
        "   8       0 sda 1 1 1 1 1 1 1 1 1 1 1\n"
        " 254       0 vda 10 11 12 13 20 21 22 23 30 31 32 0 0 0 0\n 254 16 vdb x\n"
    )
    assert disk_counters("254:0", str(tmp_path)) == DiskCounters(
        reads_merged=11,
        sectors_read=12,
        read_time=13,
        writes_merged=21,
        sectors_written=22,
        write_time=23,
        under_way=30,
        busy=31,
        weighted=32,
    )
    assert disk_counters("254:16", str(tmp_path)) == NO_COUNTERS
    assert disk_counters("0:35", str(tmp_path)) == NO_COUNTERS


def test_a_file_that_comes_in_pages_is_read_to_its_end() -> None:
    # The kernel's own list of symbols comes as lists do: at most 4 kB at a time.
    assert len(contents("/proc/kallsyms")) > 100_000


def test_the_task_limit_is_the_lower_of_two(tmp_path: Path) -> None:
    # behaviours.md §15: "min(kernel.pid_max, kernel.threads-max) - all tasks of the node (from /proc/loadavg)"
    (tmp_path / "sys" / "kernel").mkdir(parents=True)
    (tmp_path / "sys" / "kernel" / "pid_max").write_text("4194304\n")
    (tmp_path / "sys" / "kernel" / "threads-max").write_text("63000\n")
    (tmp_path / "loadavg").write_text("0.5 0.4 0.3 2/1905 14262\n")

    limit = task_limit(str(tmp_path))

    assert (limit.maximum, limit.current) == (63000, 1905)
    assert task_limit(str(tmp_path / "gone")).maximum is None


def test_the_time_of_boot_is_in_the_kernels_counters(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  1 2 3\nbtime 1700000000\nprocesses 5\n")
    assert boot_time(str(tmp_path)) == datetime.fromtimestamp(1700000000, UTC)
    assert boot_time(str(tmp_path / "gone")) is None


def test_cores_of_all_sockets_are_counted() -> None:
    text = "".join(
        f"processor\t: {number}\nphysical id\t: {number // 4}\ncore id\t\t: {number % 2}\n\n" for number in range(8)
    )
    assert cpu_topology(text.encode()) == Sockets(sockets=2, cores=4)
    assert cpu_topology(b"processor : 0\nprocessor : 1\n") == Sockets(sockets=1, cores=2)


def test_a_process_in_two_places_is_in_no_group() -> None:
    assert accounted_group({"cpu": "/", "memory": "/sessions/1"}, unified=False) == ""
    assert accounted_group({"cpu": "/a", "memory": "/a"}, unified=False) == "/a"
    assert accounted_group({"cpu": "/a", "memory": "/a", "systemd": "/a/b.service"}, unified=False) == "/a/b.service"
    assert accounted_group({"": "/a"}, unified=True) == "/a"


def test_block_devices_have_names(tmp_path: Path) -> None:
    (tmp_path / "dev" / "block").mkdir(parents=True)
    (tmp_path / "dev" / "block" / "8:0").symlink_to("../../devices/pci/block/sda")
    devices = BlockDevices(str(tmp_path))
    assert (devices.name("8:0"), devices.name("9:9")) == ("/dev/sda", "")


def test_open_files_and_sockets_of_processes_are_counted(tmp_path: Path) -> None:
    for process, targets in (("10", ("/dev/null", "socket:[77]")), ("11", ("pipe:[1]",))):
        folder = tmp_path / process / "fd"
        folder.mkdir(parents=True)
        for number, target in enumerate(targets):
            (folder / str(number)).symlink_to(target)
    (tmp_path / "10" / "limits").write_text(
        "Limit   Soft Limit  Hard Limit  Units\nMax open files   1024  4096  files\n"
    )

    assert count_handles([b"10", b"11", b"12"], proc=str(tmp_path)) == Handles(files=3, sockets=1, limit=1024)
    assert count_handles([], proc=str(tmp_path)) == Handles()


def test_no_limit_of_open_files_is_minus_one() -> None:
    assert open_files_limit(b"Max open files   unlimited unlimited files\n") == UNLIMITED
    assert open_files_limit(b"Max cpu time   unlimited unlimited seconds\n") is None


def test_of_a_container_with_very_many_open_files_the_first_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handles, "MOST_FILES", 30)
    monkeypatch.setattr(handles, "MOST_LINKS", 10)
    for process in range(5):
        folder = tmp_path / str(process) / "fd"
        folder.mkdir(parents=True)
        for number in range(8):
            (folder / str(number)).symlink_to("socket:[1]")
    found = count_handles([b"%d" % process for process in range(5)], proc=str(tmp_path))
    assert (found.files, found.sockets) == (30, 10)


def test_of_a_container_with_very_many_interfaces_the_first_are_read() -> None:
    figures = b" 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n"
    assert len(interfaces(b"".join(b"eth%d:%b" % (number, figures) for number in range(10_000)))) == 256


def test_no_list_of_the_kernel_is_read_without_end() -> None:
    assert len(contents("/dev/zero")) <= (1 << 22) + (1 << 16)


def deep(folder: Path, levels: int, name: str) -> None:
    """Folders deeper than a path can be long, each beside an empty one, with a file of 4 kB at the end."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        os.mkdir("beside", dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    file = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here)
    os.write(file, b"x" * 4096)
    os.close(file)
    os.close(here)


def test_folders_deeper_than_a_walk_remembers_are_not_entered_and_the_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_usage, "MOST_DEEP", 3)
    monkeypatch.setattr(disk_usage, "MOST_WAITING", 3)
    (tmp_path / "v/a/b/c/d/e/f").mkdir(parents=True)
    (tmp_path / "v/x/y/z").mkdir(parents=True)
    # v, a, b, c, d and x, y, z: what lies below d is left out.
    assert folder_takes(str(tmp_path / "v")).inodes == 8


def test_a_pod_cannot_hide_what_it_takes_in_a_tree_deeper_than_a_path_is_long(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    deep(tmp_path / "v", 600, "d" * 60)
    open_files = len(os.listdir("/proc/self/fd"))
    taken = folder_takes(str(tmp_path / "v"))
    assert taken.inodes == 1 + 2 * 600 + 1
    assert taken.bytes >= 4096
    assert len(os.listdir("/proc/self/fd")) == open_files
    remove_own_tree(str(tmp_path / "v"))


def test_a_folder_swapped_for_a_link_does_not_add_what_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "away" / "sub").mkdir(parents=True)
    (tmp_path / "away" / "sub" / "large").write_bytes(b"x" * 1_000_000)
    (tmp_path / "v" / "dir" / "sub").mkdir(parents=True)
    real = open_directory_below

    def swap_first(parent: int, name: str) -> int:
        if name == "dir":
            os.rename(tmp_path / "v" / "dir", tmp_path / "was")
            os.symlink(tmp_path / "away", tmp_path / "v" / "dir")
        return real(parent, name)

    monkeypatch.setattr(disk_usage, "open_directory_below", swap_first)
    assert folder_takes(str(tmp_path / "v")).bytes < 1_000_000


def test_a_folder_that_is_moved_while_it_is_walked_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "v" / "a" / "b" / "c" / "d").mkdir(parents=True)
    (tmp_path / "v" / "z").mkdir()
    real = open_directory_below

    def move_last(parent: int, name: str) -> int:
        found = real(parent, name)
        if name == "c":
            os.rename(tmp_path / "v" / "a" / "b" / "c", tmp_path / "away" / "c")
        return found

    monkeypatch.setattr(disk_usage, "open_directory_below", move_last)
    open_files = len(os.listdir("/proc/self/fd"))
    assert folder_takes(str(tmp_path / "v")).inodes == 6
    assert len(os.listdir("/proc/self/fd")) == open_files
