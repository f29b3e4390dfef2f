"""Sysctls that a pod may set: those that are known to be safe, and those that the configuration allows.

Kernel versions from which on a sysctl belongs to a namespace are upstream's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from glasslet.admission.candidate import Candidate, Rule
from glasslet.exchange.admission import Rejected

REASON = "SysctlForbidden"
SAFE: dict[str, tuple[int, int]] = {
    "kernel.shm_rmid_forced": (0, 0),
    "net.ipv4.ip_local_port_range": (0, 0),
    "net.ipv4.tcp_syncookies": (0, 0),
    "net.ipv4.ping_group_range": (0, 0),
    "net.ipv4.ip_unprivileged_port_start": (0, 0),
    "net.ipv4.ip_local_reserved_ports": (3, 16),
    "net.ipv4.tcp_keepalive_time": (4, 5),
    "net.ipv4.tcp_fin_timeout": (4, 6),
    "net.ipv4.tcp_keepalive_intvl": (4, 5),
    "net.ipv4.tcp_keepalive_probes": (4, 5),
    "net.ipv4.tcp_rmem": (4, 15),
    "net.ipv4.tcp_wmem": (4, 15),
}
"""Safe sysctls, each with the kernel that has it per namespace (0.0: any)."""
_IPC_PREFIXES = ("kernel.shm", "kernel.msg", "fs.mqueue.")


def safe_sysctls(kernel_version: str) -> tuple[str, ...]:
    """The safe ones on this kernel (`6.1.0-28-amd64`). Of an unreadable version only those that any kernel has."""
    match = re.match(r"(\d+)\.(\d+)", kernel_version)
    kernel = (int(match[1]), int(match[2])) if match else (0, 0)
    return tuple(name for name, since in SAFE.items() if kernel >= since)


def sysctl_rule(allowed: Iterable[str]) -> Rule:
    """Refuses sysctls that are not in `allowed`: names, or prefixes that end in `*`."""
    patterns = [normalized(pattern) for pattern in allowed]
    names = frozenset(pattern for pattern in patterns if not pattern.endswith("*"))
    prefixes = tuple(pattern.removesuffix("*") for pattern in patterns if pattern.endswith("*"))

    def rule(candidate: Candidate) -> Rejected | None:
        spec = candidate.pod.spec
        context = spec.security_context
        for sysctl in context.sysctls if context is not None else ():
            name = normalized(sysctl.name)
            if name not in names and not name.startswith(prefixes):
                return _forbidden(name, "not allowlisted")
            namespace = namespace_of(name)
            if (namespace == "IPC" and spec.host_ipc) or (namespace == "Net" and spec.host_network):
                return _forbidden(name, f"not allowed with host {namespace} enabled")
        return None

    return rule


def namespace_of(name: str) -> str:
    """`IPC` or `Net`, "" for a sysctl of the whole machine."""
    if name.startswith("net."):
        return "Net"
    return "IPC" if name == "kernel.sem" or name.startswith(_IPC_PREFIXES) else ""


def normalized(name: str) -> str:
    """The name with dots: where the first separator is a slash, slashes and dots change places."""
    first = re.search(r"[./]", name)
    return name.translate(str.maketrans("./", "/.")) if first is not None and first[0] == "/" else name


def _forbidden(name: str, why: str) -> Rejected:
    return Rejected(reason=REASON, message=f'forbidden sysctl: "{name}" {why}')
