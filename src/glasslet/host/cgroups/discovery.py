"""Detection of the machine's cgroups, and of amounts that only cgroups hand out."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from glasslet.host.cgroups.tree import UNIFIED, CgroupTree, controller_mounts, hybrid_mount, is_unified
from glasslet.host.cgroups.v1 import CgroupV1
from glasslet.host.cgroups.v2 import CgroupV2
from glasslet.host.kernel_text import contents, count, keyed, number
from glasslet.host.mounts.table import MountTable, read_mount_table

_REQUIRED_V1 = ("cpu", "cpuacct", "cpuset", "memory")


class CgroupsNotUsable(Exception):
    """The machine's cgroups cannot hold pods; the text says what is missing."""


def find_tree(mounts: MountTable | None = None) -> CgroupTree:
    """This machine's cgroups. Raises CgroupsNotUsable."""
    try:
        table = mounts or read_mount_table()
        if is_unified(table):
            return CgroupV2()
    except OSError as error:
        raise CgroupsNotUsable(f"failed to get mounted cgroup subsystems: {error}") from error
    found = controller_mounts(table)
    missing = [name for name in _REQUIRED_V1 if name not in found]
    if missing:
        text = f"system validation failed - Following Cgroup subsystem not mounted: [{' '.join(missing)}]"
        raise CgroupsNotUsable(text)
    return CgroupV1(mounts=found, hybrid=hybrid_mount(table))


def runs_systemd(root: str = "") -> bool:
    """Whether systemd is this machine's service manager (sd_booted(3))."""
    return os.path.isdir(f"{root}/run/systemd/system")


def has_unified(root: str = "") -> bool:
    """Whether version 2 is mounted in the place of version 1."""
    return os.path.exists(f"{root}{UNIFIED}/cgroup.controllers")


def limits_swap(root: str = "", *, unified: bool) -> bool:
    """Whether cgroups of this machine can limit swap."""
    if not unified:
        return os.path.exists(f"{root}{UNIFIED}/memory/memory.memsw.limit_in_bytes")
    # The root cgroup has no swap file of its own: the agent's cgroup has one.
    try:
        own = own_cgroup(f"{root}/proc").get("", "/")
    except OSError:
        own = "/"
    return os.path.exists(f"{root}{UNIFIED}{own}/memory.swap.max")


def usable_cpus(tree: CgroupTree, name: str = "/") -> str:
    """The CPUs that processes below a cgroup can have (`0-3`), "" if it does not say."""
    try:
        return tree.cpus(name)
    except OSError:
        return ""


def max_tasks(root: str = "") -> int:
    """How many tasks the kernel allows at once, 0 if it does not say."""
    limits = [_number(f"{root}/proc/sys/kernel/{name}") for name in ("pid_max", "threads-max")]
    return min((limit for limit in limits if limit), default=0)


def huge_page_bytes(root: str = "") -> dict[int, int]:
    """Bytes in huge pages, by page size in bytes."""
    folder = f"{root}/sys/kernel/mm/hugepages"
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    sizes = {name: int(match[1]) * 1024 for name in names if (match := re.fullmatch(r"hugepages-(\d+)kB", name))}
    return {size: size * _number(f"{folder}/{name}/nr_hugepages") for name, size in sorted(sizes.items())}


def own_cgroup(proc: str = "/proc") -> dict[str, str]:
    """The cgroup of this process by controller; version 2 as ""."""
    found: dict[str, str] = {}
    with open(f"{proc}/self/cgroup", "rb") as file:
        lines = file.read().split(b"\n")
    # Lines end at a newline only: a cgroup's name may hold other line separators.
    for line in filter(None, lines):
        _, controllers, name = os.fsdecode(line).split(":", 2)
        found |= {controller.removeprefix("name="): name for controller in controllers.split(",")}
    return found


def in_hosts_pid_namespace(proc: str = "/proc") -> bool:
    """Whether this process lives where init does. Raises OSError."""
    return os.readlink(f"{proc}/1/ns/pid") == os.readlink(f"{proc}/self/ns/pid")


def is_kernel_thread(pid: int, proc: str = "/proc") -> bool:
    """Whether a process is a kernel thread, which has no program. One that ended counts as one."""
    try:
        os.readlink(f"{proc}/{pid}/exe")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _number(path: str) -> int:
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0


def memory_files(tree: CgroupTree, group: str) -> str:
    """The files of a cgroup from which its working set comes, and its limit."""
    if isinstance(tree, CgroupV1):
        folder = tree.mounts.get("memory", "") + group
        files = ("memory.usage_in_bytes", "memory.stat", *(["memory.limit_in_bytes"] if group else []))
    else:
        folder = UNIFIED + group
        files = ("memory.current", "memory.stat", "memory.max") if group else ("memory.stat",)
    return f"{', '.join(files)} of {folder}"


class FreeMemory(NamedTuple):
    """`node`: what the kernel could give without swapping (MemAvailable); `pods_cache`: active page cache of all pods.
    Bytes; None: unknown."""

    node: int | None
    pods_cache: int | None


def free_memory(tree: CgroupTree, pods: str, *, proc: str = "/proc") -> FreeMemory:
    """Memory that is in use and could be freed at once. `pods`: the cgroup of all pods, "" for none."""
    kilobytes = keyed(contents(f"{proc}/meminfo")).get(b"MemAvailable:", b"").split()
    node = number(kilobytes[0]) if kilobytes else None
    cache = None
    if pods:
        key = b"total_active_file" if tree.version == 1 else b"active_file"
        try:
            cache = count(keyed(tree.read(pods, "memory", "memory.stat").encode()), key)
        except OSError:
            # There are no pods yet.
            cache = None
    return FreeMemory(node=node * 1024 if node is not None else None, pods_cache=cache)
