"""Rules about cgroups and enforceNodeAllocatable."""

from __future__ import annotations

import re
from collections.abc import Iterator

from glasslet.config.validation.finding import Finding, ValidationInput, invalid, quoted, refused

_FIELD = "enforceNodeAllocatable"
_NAME = "enforceNodeAllocatable (--enforce-node-allocatable)"
_OPTIONS = (
    "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible", "none",
)  # fmt: skip
_MAX_CPU = 8192


def check_cgroups(subject: ValidationInput) -> Iterator[Finding]:
    """systemCgroups needs a root to hang below."""
    configuration = subject.configuration
    if configuration.system_cgroups and not configuration.cgroup_root:
        text = "systemCgroups (--system-cgroups) is set and cgroupRoot (--cgroup-root) is not"
        yield invalid("systemCgroups", text, "set cgroupRoot as well")
    if configuration.system_cgroups == "/":
        yield refused("systemCgroups", "system container cannot be root (/)", "a cgroup below /")


def check_enforcement(subject: ValidationInput) -> Iterator[Finding]:
    """enforceNodeAllocatable: known, unique, compatible entries whose cgroups are named."""
    entries = subject.configuration.enforce_node_allocatable
    for side in ("system-reserved", "kube-reserved"):
        if side in entries and f"{side}-compressible" in entries:
            text = f'both "{side}" and "{side}-compressible" are given in {_NAME}'
            yield invalid(_FIELD, text, "one of the two")
    seen = set()
    for entry in entries:
        if entry in seen:
            yield invalid(_FIELD, f'duplicate entry "{entry}" in {_NAME}', "each entry once")
            continue
        seen.add(entry)
        yield from _check_entry(entry, subject)


def _check_entry(entry: str, subject: ValidationInput) -> Iterator[Finding]:
    configuration = subject.configuration
    if entry not in _OPTIONS:
        yield invalid(_FIELD, f'option "{entry}" of {_NAME} is unknown. Valid options are {quoted(_OPTIONS)}')
        return
    if entry == "none":
        if len(configuration.enforce_node_allocatable) > 1:
            yield invalid(_FIELD, f'"none" must stand alone in {_NAME}', "none alone, or the others")
        return
    side = entry.removesuffix("-compressible")
    cgroup = {
        "system-reserved": ("systemReservedCgroup", configuration.system_reserved_cgroup),
        "kube-reserved": ("kubeReservedCgroup", configuration.kube_reserved_cgroup),
    }.get(side)
    if cgroup and not cgroup[1]:
        text = f'{cgroup[0]} (--{side}-cgroup) must be set while "{entry}" is in {_NAME}'
        yield invalid(cgroup[0], text, "the path of a cgroup")
    if not configuration.cgroups_per_qos:
        text = f'cgroupsPerQOS (--cgroups-per-qos) must be true while "{entry}" is in {_NAME}'
        yield invalid("cgroupsPerQOS", text, "true")


def check_reserved_cpus(subject: ValidationInput) -> Iterator[Finding]:
    """reservedSystemCPUs: a CPU list, and not together with reserved cgroups."""
    configuration = subject.configuration
    text = configuration.reserved_system_cpus
    if not text:
        return
    if configuration.system_reserved_cgroup or configuration.kube_reserved_cgroup:
        message = (
            "reservedSystemCPUs (--reserved-cpus) cannot be combined with systemReservedCgroup "
            "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"
        )
        yield invalid("reservedSystemCPUs", message)
    if parse_cpus(text) is None:
        message = f"unable to parse reservedSystemCPUs (--reserved-cpus) {text}, want a list such as 0-3,8"
        yield invalid("reservedSystemCPUs", message, "a list such as 0-3,8")


def parse_cpus(text: str) -> frozenset[int] | None:
    """The CPUs of a list such as `0-3,8`; None if it is no such list."""
    cpus: set[int] = set()
    for part in text.split(",") if text else []:
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part, re.ASCII)
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last or last > _MAX_CPU:
            return None
        cpus.update(range(first, last + 1))
    return frozenset(cpus)
