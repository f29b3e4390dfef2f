"""Rules that need the machine. Upstream stops at the first of them while it starts; `glasslet check` reports all."""

from __future__ import annotations

from collections.abc import Iterator

from glasslet.answers.words import size_words
from glasslet.api.quantity import Quantity
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.config.machine import KERNEL_SETTINGS, MachineFacts
from glasslet.config.validation.enforcement import parse_cpus
from glasslet.config.validation.finding import Finding, refused

_MAX_NUMA = 8


def validate_on(machine: MachineFacts, configuration: KubeletConfiguration) -> list[Finding]:
    """Every rule that the configuration breaks on this machine. Pure."""
    return [
        finding
        for rule in (_swap, _kernel, _files, _cpus, _numa, _capacity)
        for finding in rule(machine, configuration)
    ]


def _swap(machine: MachineFacts, configuration: KubeletConfiguration) -> Iterator[Finding]:
    if configuration.fail_swap_on and machine.swap:
        text = (
            "running with swap on is not supported, please disable swap or set failSwapOn (--fail-swap-on) to false; "
            f"swap areas: {', '.join(machine.swap)}"
        )
        yield refused("failSwapOn", text, "false, or swapoff")


def _kernel(machine: MachineFacts, configuration: KubeletConfiguration) -> Iterator[Finding]:
    if not configuration.protect_kernel_defaults:
        return
    for name, wanted in KERNEL_SETTINGS.items():
        found = machine.kernel.get(name)
        if found is not None and found != wanted:
            text = f"invalid kernel flag: {name}, expected value: {wanted}, actual value: {found}"
            yield refused("protectKernelDefaults", text, f"sysctl -w {name.replace('/', '.')}={wanted}, or false")


def _files(machine: MachineFacts, configuration: KubeletConfiguration) -> Iterator[Finding]:
    path = configuration.authentication.x509.client_ca_file
    if path and path in machine.unreadable:
        text = f"unable to load client CA file {path}: {machine.unreadable[path]}"
        yield refused("authentication.x509.clientCAFile", text, "a readable PEM file")
    cert, key = configuration.tls_cert_file, configuration.tls_private_key_file
    for field, path in (("tlsCertFile", cert), ("tlsPrivateKeyFile", key)):
        if path and path in machine.unreadable:
            yield refused(field, f"unable to load {field} {path}: {machine.unreadable[path]}", "a readable PEM file")


def _cpus(machine: MachineFacts, configuration: KubeletConfiguration) -> Iterator[Finding]:
    reserved = parse_cpus(configuration.reserved_system_cpus) or frozenset()
    if machine.online_cpus and not reserved <= machine.online_cpus:
        online = _as_list(machine.online_cpus)
        text = f"reserved-cpus: {_as_list(reserved)} is not a subset of online-cpus: {online}"
        yield refused("reservedSystemCPUs", text, f"some of {online}")


def _as_list(cpus: frozenset[int]) -> str:
    return ",".join(str(cpu) for cpu in sorted(cpus))


def _numa(machine: MachineFacts, configuration: KubeletConfiguration) -> Iterator[Finding]:
    if configuration.topology_manager_policy != "none":
        text = configuration.topology_manager_policy_options.get("max-allowable-numa-nodes", "")
        limit = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else _MAX_NUMA
        if len(machine.numa_nodes) > limit:
            text = f"unsupported on machines with more than {limit} NUMA nodes, this one has {len(machine.numa_nodes)}"
            yield refused("topologyManagerPolicy", text, "none")
    if configuration.memory_manager_policy == "Static" and machine.numa_nodes:
        for index, reservation in enumerate(configuration.reserved_memory):
            if reservation.numa_node not in machine.numa_nodes:
                text = f"NUMA node {reservation.numa_node} does not exist on this machine"
                yield refused(f"reservedMemory[{index}]", text, f"some of {_as_list(machine.numa_nodes)}")


def _amount(resource: str, number: float) -> str:
    return size_words(number) if resource == "memory" else f"{number:g}"


def _capacity(machine: MachineFacts, configuration: KubeletConfiguration) -> Iterator[Finding]:
    for resource, capacity in (("cpu", len(machine.online_cpus)), ("memory", machine.memory_bytes)):
        total = _reserved(configuration, resource)
        if capacity and total > capacity * 10**9:
            text = f"{resource}: {_amount(resource, total / 10**9)} reserved, more than the capacity of "
            text += _amount(resource, capacity)
            field = next((name for name, amounts in _reservations(configuration) if resource in amounts), "")
            yield refused(
                f"{field}.{resource}", f"invalid Node Allocatable configuration. {text}", f"at most {capacity}"
            )


def _reservations(configuration: KubeletConfiguration) -> tuple[tuple[str, dict[str, str]], ...]:
    return (("systemReserved", configuration.system_reserved), ("kubeReserved", configuration.kube_reserved))


def _reserved(configuration: KubeletConfiguration, resource: str) -> int:
    total = 0
    for _, amounts in _reservations(configuration):
        try:
            total += max(0, Quantity.parse(amounts.get(resource, "0")).nano_value())
        except ValueError:
            # The bad quantity has its own finding.
            continue
    return total
