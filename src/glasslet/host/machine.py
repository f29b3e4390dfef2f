"""Facts of the machine that do not change while the agent runs."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from glasslet.host.addresses import (
    NodeAddressInputs,
    choose_node_ips,
    default_routes,
    interface_addresses,
)
from glasslet.host.cgroups.discovery import has_unified, limits_swap


class Machine(Struct, frozen=True, kw_only=True):
    """Facts of the node. Capacities in bytes; unknown texts are ""."""

    memory_capacity: int = 0
    swap_capacity: int = 0
    cpu_count: int = 1
    boot_id: str = ""
    machine_id: str = ""
    system_uuid: str = ""
    kernel_version: str = ""
    os_image: str = ""
    hugepage_sizes: tuple[str, ...] = ()
    """As the kernel's cgroup files name them, smallest first (`2MB`, `1GB`)."""
    cgroup_v2: bool = False
    swap_controller: bool = False
    selinux: bool = False
    selinux_file_label: str = ""
    """That of containers' files, "" where SELinux is off or says nothing of containers."""
    masked_paths: tuple[str, ...] = ()
    """Existing CPU thermal throttle directories, to be hidden from containers."""


def read_machine(root: str = "") -> Machine:
    """Reads the machine below `root` ("" for the real one). A fact that cannot be read is left at its default."""
    memory = _memory_info(_text(f"{root}/proc/meminfo"))
    cgroup_v2 = has_unified(root)
    return Machine(
        memory_capacity=memory.get("MemTotal", 0),
        swap_capacity=memory.get("SwapTotal", 0),
        cpu_count=_count_cpus(_text(f"{root}/sys/devices/system/cpu/online")) or os.cpu_count() or 1,
        boot_id=_text(f"{root}/proc/sys/kernel/random/boot_id"),
        machine_id=_text(f"{root}/etc/machine-id"),
        system_uuid=_text(f"{root}/sys/class/dmi/id/product_uuid"),
        kernel_version=_text(f"{root}/proc/sys/kernel/osrelease"),
        os_image=_os_image(_text(f"{root}/etc/os-release")),
        hugepage_sizes=_hugepage_sizes(_names(f"{root}/sys/kernel/mm/hugepages")),
        cgroup_v2=cgroup_v2,
        swap_controller=limits_swap(root, unified=cgroup_v2),
        selinux=os.path.exists(f"{root}/sys/fs/selinux/enforce"),
        selinux_file_label=_selinux_file_label(root),
        masked_paths=_thermal_throttles(root),
    )


def _selinux_file_label(root: str) -> str:
    """From the policy's `lxc_contexts`, as container runtimes find it."""
    if not os.path.exists(f"{root}/sys/fs/selinux/enforce"):
        return ""
    policy = re.search(r"^SELINUXTYPE=(\w+)", _text(f"{root}/etc/selinux/config"), re.MULTILINE)
    name = policy[1] if policy is not None else "targeted"
    contexts = _text(f"{root}/etc/selinux/{name}/contexts/lxc_contexts")
    found = re.search(r'^file\s*=\s*"([^"]+)"', contexts, re.MULTILINE)
    return found[1] if found is not None else ""


def app_armor_enabled(root: str = "") -> bool:
    """As container runtimes decide it: the module is on, its interface is mounted, and this is not itself a container
    of a container manager that says so. `root`: where the machine's files are found ("" for the real one)."""
    if os.environ.get("container") or not os.path.isdir(f"{root}/sys/kernel/security/apparmor"):  # noqa: SIM112
        return False
    try:
        with open(f"{root}/sys/module/apparmor/parameters/enabled", encoding="ascii") as file:
            return file.read(1) == "Y"
    except (OSError, ValueError):
        return False


def node_name(override: str, hostname: str | None = None) -> str:
    """The node's name: --hostname-override or the machine's name, trimmed and in lower case. Raises ValueError if
    nothing is left."""
    name = (override or (socket.gethostname() if hostname is None else hostname)).strip().lower()
    if not name:
        raise ValueError("the node has no name: the host name is empty; set --hostname-override")
    return name


def look_up_node_ips(name: str, requested: Sequence[str], resolve: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    """The node's addresses as this machine is now. `resolve` may hang: call this from `HostThreads`. Raises
    NodeAddressUnknown."""
    inputs = NodeAddressInputs(
        node_name=name,
        requested=tuple(requested),
        looked_up=() if any(ip not in ("0.0.0.0", "::") for ip in requested) else resolve(name),
        interfaces=interface_addresses(),
        default_routes=default_routes(_text("/proc/net/route"), _text("/proc/net/ipv6_route")),
    )
    return choose_node_ips(inputs)


def resolve_name(name: str) -> tuple[str, ...]:
    """Addresses of a name by the system's resolver; none if it knows none."""
    try:
        answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple(dict.fromkeys(str(answer[4][0]) for answer in answers))


def capacity_of(path: str) -> int:
    """Bytes of the file system that holds `path`. Raises OSError."""
    stat = os.statvfs(path)
    return stat.f_blocks * stat.f_frsize


def out_of_inodes(path: str) -> str:
    """The folder at or above `path` that exists, if its file system has bytes but no inode left; else "". What has no
    inodes at all (btrfs) never has none left."""
    place = path
    while place != "/" and not os.path.exists(place):
        place = os.path.dirname(place)
    try:
        found = os.statvfs(place)
    except OSError:
        return ""
    return place if found.f_files and not found.f_favail and found.f_bavail else ""


def _memory_info(text: str) -> dict[str, int]:
    found = {}
    for line in text.split("\n"):
        match = re.fullmatch(r"(\w+):\s+(\d{1,19}) kB", line.strip())
        if match:
            found[match[1]] = int(match[2]) * 1024
    return found


_CPU = re.compile("[0-9]{1,9}")


def _count_cpus(ranges: str) -> int:
    """CPUs of a list as in `0-3,8`."""
    count = 0
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        if not _CPU.fullmatch(first) or (last and not _CPU.fullmatch(last)):
            return 0
        count += int(last or first) - int(first) + 1
    return count


def _os_image(release: str) -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', release, re.MULTILINE)
    return match[1] if match else ""


def _hugepage_sizes(names: Sequence[str]) -> tuple[str, ...]:
    kilobytes = sorted(int(m[1]) for name in names if (m := re.fullmatch(r"hugepages-(\d+)kB", name)))
    return tuple(_size_name(size) for size in kilobytes)


def _size_name(kilobytes: int) -> str:
    units = ["KB", "MB", "GB"]
    while kilobytes % 1024 == 0 and len(units) > 1:
        kilobytes //= 1024
        units.pop(0)
    return f"{kilobytes}{units[0]}"


def _thermal_throttles(root: str) -> tuple[str, ...]:
    cpus = "/sys/devices/system/cpu"
    numbers = sorted(int(m[1]) for name in _names(f"{root}{cpus}") if (m := re.fullmatch(r"cpu(\d+)", name)))
    paths = (f"{cpus}/cpu{number}/thermal_throttle" for number in numbers)
    return tuple(path for path in paths if os.path.exists(f"{root}{path}"))


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            return file.read().strip()
    except OSError:
        return ""


def boot_time(proc: str = "/proc") -> datetime | None:
    """When the machine was started. None: not known."""
    for line in _text(f"{proc}/stat").splitlines():
        if line.startswith("btime ") and (seconds := line[6:].strip()).isdecimal():
            return datetime.fromtimestamp(int(seconds), UTC)
    return None
