"""Figures of the whole machine: limits of tasks, time of boot, CPUs, block devices."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.host.cgroups.discovery import own_cgroup
from glasslet.host.kernel_text import contents, number
from glasslet.stats.targets import SystemGroups


class TaskLimit(Struct, frozen=True, kw_only=True):
    """`maximum`: the lower of kernel.pid_max and kernel.threads-max; `current`: all tasks of the node. None: unknown.
    Source: behaviours.md §15."""

    maximum: int | None = None
    current: int | None = None


class Sockets(Struct, frozen=True, kw_only=True):
    """How the CPUs are built; at least 1 of each where the machine does not say."""

    sockets: int = 1
    cores: int = 1


def task_limit(proc: str = "/proc") -> TaskLimit:
    """Tasks that there are and may be."""
    limits = [number(contents(f"{proc}/sys/kernel/{name}")) for name in ("pid_max", "threads-max")]
    known = [limit for limit in limits if limit is not None]
    words = contents(f"{proc}/loadavg").split()
    current = number(words[3].partition(b"/")[2]) if len(words) > 3 else None
    return TaskLimit(maximum=min(known, default=None), current=current)


def cpu_topology(cpuinfo: bytes) -> Sockets:
    """Sockets and physical cores of a /proc/cpuinfo."""
    cores: set[tuple[bytes, bytes]] = set()
    socket, processors = b"0", 0
    for line in cpuinfo.split(b"\n"):
        key, _, value = (part.strip() for part in line.partition(b":"))
        if key == b"processor":
            processors += 1
        elif key == b"physical id":
            socket = value
        elif key == b"core id":
            cores.add((socket, value))
    if not cores:
        return Sockets(cores=max(processors, 1))
    return Sockets(sockets=len({socket for socket, _ in cores}), cores=len(cores))


def accounted_group(places: Mapping[str, str], *, unified: bool) -> str:
    """The group whose figures are those of a process, from the groups it is in by controller ("" for version 2). ""
    where CPU and memory are accounted in different ones: then there is no such group."""
    if unified:
        return places.get("", "")
    cpu, memory = places.get("cpu", ""), places.get("memory", "")
    if not cpu or cpu != memory:
        return ""
    return places.get("systemd") or cpu


def system_groups(configuration: KubeletConfiguration, *, runtime: str, pods: str, unified: bool) -> SystemGroups:
    """The groups of the node as configured; the agent's is looked up where the configuration names none. `runtime`:
    --runtime-cgroups, `pods`: the group above all pods."""
    try:
        found = accounted_group(own_cgroup(), unified=unified)
    except OSError:
        found = ""
    return SystemGroups(
        kubelet=configuration.kubelet_cgroups or found,
        runtime=runtime,
        misc=configuration.system_cgroups,
        pods=pods,
    )


class BlockDevices:
    """Names of block devices, looked up once each."""

    def __init__(self, sys: str = "/sys") -> None:
        self._folder = f"{sys}/dev/block"
        self._known: dict[str, str] = {}

    def name(self, numbers: str) -> str:
        """`/dev/sda` for `8:0`; "" if the machine does not know it."""
        if numbers not in self._known:
            try:
                target = os.path.basename(os.readlink(f"{self._folder}/{numbers}"))
            except OSError:
                target = ""
            self._known[numbers] = f"/dev/{target}" if target else ""
        return self._known[numbers]
