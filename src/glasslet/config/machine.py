"""Facts of the machine that a configuration must fit: read once, before a start, without changing anything."""

from __future__ import annotations

import os

from msgspec import Struct, field

KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""The kernel settings that protectKernelDefaults requires."""


class MachineFacts(Struct, frozen=True):
    """The input of the rules in `validation/machine.py`. Unknown facts are None or empty: they break no rule."""

    cgroup_v2: bool = True
    swap: tuple[str, ...] = ()
    """Active swap areas."""
    online_cpus: frozenset[int] = frozenset()
    numa_nodes: frozenset[int] = frozenset()
    memory_bytes: int = 0
    kernel: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    """Path to reason, for the paths that were asked about."""


def read_machine(paths: tuple[str, ...] = (), *, root: str = "/") -> MachineFacts:
    """Reads /proc and /sys below `root`, and whether each of `paths` is a readable file. Never raises for what is not
    there."""
    kernel = {name: _text(root, f"proc/sys/{name}") for name in KERNEL_SETTINGS}
    return MachineFacts(
        cgroup_v2=os.path.exists(os.path.join(root, "sys/fs/cgroup/cgroup.controllers")),
        swap=tuple(line.split()[0] for line in _text(root, "proc/swaps").split("\n")[1:] if line.strip()),
        online_cpus=_list(_text(root, "sys/devices/system/cpu/online")),
        numa_nodes=_list(_text(root, "sys/devices/system/node/online")),
        memory_bytes=_memory(_text(root, "proc/meminfo")),
        kernel={name: int(text) for name, text in kernel.items() if text.strip().lstrip("-").isdigit()},
        unreadable={path: reason for path in paths if (reason := _reason(path))},
    )


def _reason(path: str) -> str:
    from glasslet.config.files import FileProblem, read_regular_file

    try:
        read_regular_file(path)
    except FileProblem as problem:
        return problem.reason
    return ""


def _text(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="ascii", errors="replace") as file:
            return file.read(1_000_000)
    except OSError:
        return ""


def _list(text: str) -> frozenset[int]:
    from glasslet.config.validation.enforcement import parse_cpus

    return parse_cpus(text.strip()) or frozenset()


def _memory(text: str) -> int:
    for line in text.split("\n"):
        name, _, rest = line.partition(":")
        if name == "MemTotal" and rest.split()[:1] and rest.split()[0].isdigit():
            return int(rest.split()[0]) * 1024
    return 0
