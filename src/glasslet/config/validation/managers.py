"""Rules about the CPU, memory and topology managers (upstream checks them while it starts)."""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.api.quantity import Quantity
from glasslet.config.flags.values import parse_bool
from glasslet.config.validation.enforcement import parse_cpus
from glasslet.config.validation.finding import Finding, ValidationInput, refused

_CPU_OPTIONS = {
    "full-pcpus-only": "", "strict-cpu-reservation": "Beta", "distribute-cpus-across-numa": "Beta",
    "prefer-align-cpus-by-uncorecache": "Beta", "align-by-socket": "Alpha", "distribute-cpus-across-cores": "Alpha",
}  # fmt: skip
_EXCLUSIVE = (
    ("full-pcpus-only", "distribute-cpus-across-cores"),
    ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
)
_MAX_NUMA = 8


def check_cpu_manager(subject: ValidationInput) -> Iterator[Finding]:
    """Policy, its options, and the reservation that the static policy needs."""
    configuration = subject.configuration
    policy, options = configuration.cpu_manager_policy, configuration.cpu_manager_policy_options
    if policy not in ("none", "static"):
        yield refused("cpuManagerPolicy", f'unknown policy: "{policy}"', "none, static")
        return
    if policy == "none":
        if options:
            text = "none policy: no option is available, got " + ", ".join(sorted(options))
            yield refused("cpuManagerPolicyOptions", text, "unset")
        return
    if not _reserves_cpu(subject):
        text = "the static policy requires systemReserved.cpu + kubeReserved.cpu to be greater than zero"
        yield refused("cpuManagerPolicy", text, "none, or reserve CPU")
    on = set()
    for name, value in options.items():
        field = f"cpuManagerPolicyOptions.{name}"
        level = _CPU_OPTIONS.get(name)
        if level is None:
            yield refused(field, f'unknown CPU Manager Policy option: "{name}"', ", ".join(_CPU_OPTIONS))
        elif level and not subject.gates.enabled(f"CPUManagerPolicy{level}Options"):
            text = f'CPU manager option "{name}" requires feature gate CPUManagerPolicy{level}Options'
            yield refused(field, text)
        elif (switched := _switch(value)) is None:
            yield refused(field, f'bad value for option "{name}": want true or false', "true, false")
        elif switched:
            on.add(name)
    for one, other in _EXCLUSIVE:
        if {one, other} <= on:
            text = f"static policy options {one} and {other} exclude each other"
            yield refused(f"cpuManagerPolicyOptions.{one}", text, "one of the two")
    if "align-by-socket" in on and configuration.topology_manager_policy == "single-numa-node":
        text = "CPU manager option align-by-socket excludes topology manager policy single-numa-node"
        yield refused("cpuManagerPolicyOptions.align-by-socket", text)


def _reserves_cpu(subject: ValidationInput) -> bool:
    configuration = subject.configuration
    if configuration.reserved_system_cpus:
        return bool(parse_cpus(configuration.reserved_system_cpus))
    total = 0
    for amounts in (configuration.system_reserved, configuration.kube_reserved):
        try:
            total += Quantity.parse(amounts.get("cpu", "0")).nano_value()
        except ValueError:
            # The bad quantity has its own finding.
            return True
    return total > 0


def _switch(value: str) -> bool | None:
    try:
        return parse_bool(value)
    except ValueError:
        return None


def check_topology_manager(subject: ValidationInput) -> Iterator[Finding]:
    """Options of the topology manager; the policy none ignores them."""
    configuration = subject.configuration
    if configuration.topology_manager_policy == "none":
        return
    options = configuration.topology_manager_policy_options
    if options and not subject.gates.enabled("TopologyManagerPolicyOptions"):
        text = "topology manager policy options require feature gate TopologyManagerPolicyOptions"
        yield refused("topologyManagerPolicyOptions", text)
        return
    for name, value in options.items():
        field = f"topologyManagerPolicyOptions.{name}"
        if name == "prefer-closest-numa-nodes":
            if _switch(value) is None:
                yield refused(field, f'bad value for option "{name}": want true or false', "true, false")
        elif name != "max-allowable-numa-nodes":
            allowed = "prefer-closest-numa-nodes, max-allowable-numa-nodes"
            yield refused(field, f'unknown Topology Manager Policy option: "{name}"', allowed)
        elif not subject.gates.enabled("TopologyManagerPolicyBetaOptions"):
            text = f'topology manager option "{name}" requires feature gate TopologyManagerPolicyBetaOptions'
            yield refused(field, text)
        elif not value.isascii() or not value.isdigit() or int(value[:9]) < _MAX_NUMA:
            yield refused(field, f'option "{name}" must be a number of {_MAX_NUMA} or more', f"{_MAX_NUMA} or more")


def check_memory_manager(subject: ValidationInput) -> Iterator[Finding]:
    """Policy, and the reservation that Static needs."""
    configuration = subject.configuration
    policy = configuration.memory_manager_policy
    if policy == "BestEffort":
        yield refused("memoryManagerPolicy", 'policy "BestEffort" is for Windows only', "None, Static")
    elif policy not in ("None", "Static"):
        yield refused("memoryManagerPolicy", f'unknown policy: "{policy}"', "None, Static")
    elif policy == "Static" and not any("memory" in item.limits for item in configuration.reserved_memory):
        text = "the Static policy requires reservedMemory (--reserved-memory) with memory above zero"
        yield refused("memoryManagerPolicy", text, "None, or reserve memory")
