"""Decides whether a running pod may have what its spec now requests. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.quantity import Quantity
from glasslet.exchange.admission import Admitted, Rejected
from glasslet.pods.resize.requirements import CPU, MEMORY, amounts, resizable
from glasslet.podspec.pod_level import pod_requests
from glasslet.podspec.qos import GUARANTEED, qos_class


class Granted(Struct, frozen=True, kw_only=True):
    """Now."""


class Deferred(Struct, frozen=True, kw_only=True):
    """There is no room now; it is tried again when something ends or shrinks."""

    message: str


class Infeasible(Struct, frozen=True, kw_only=True):
    """Never on this node. `detail`: label of the metric that counts these."""

    message: str
    detail: str


Decision = Granted | Deferred | Infeasible


class ResizeRules(Struct, frozen=True, kw_only=True):
    """The rules from configuration and node. `swaps(pod, container name)`: whether that container may use swap."""

    enabled: bool = True
    static_cpus: bool = False
    static_memory: bool = False
    swaps: Callable[[Pod, str], bool] = lambda pod, container: False


def decide(
    wanted: Pod,
    allocated: Pod,
    rules: ResizeRules,
    allocatable: Mapping[str, Quantity],
    admit: Callable[[Pod], Admitted | Rejected],
) -> Decision:
    """`allocated`: the pod as it was granted last; `allocatable`: what pods may have of the node; `admit`: admission
    beside all other pods. A pod that could only be admitted by preempting others has to wait."""
    if (refusal := _not_allowed(wanted, allocated, rules)) is not None:
        return refusal
    if (refusal := _too_large(wanted, allocatable)) is not None:
        return refusal
    verdict = admit(wanted)
    if isinstance(verdict, Rejected):
        return Deferred(message=verdict.message)
    if verdict.victims:
        return Deferred(message=f"Node didn't have enough resource: {verdict.shortage}")
    return Granted()


def grows(wanted: Pod, allocated: Pod) -> bool:
    """Whether any request becomes larger."""
    before = {container.name: amounts(container.resources) for container in resizable(allocated)}
    return any(
        new.cpu_request > before[c.name].cpu_request or new.memory_request > before[c.name].memory_request
        for c in resizable(wanted)
        if c.name in before and (new := amounts(c.resources))
    )


def _not_allowed(wanted: Pod, allocated: Pod, rules: ResizeRules) -> Infeasible | None:
    if not rules.enabled:
        return Infeasible(message="InPlacePodVerticalScaling is disabled", detail="feature_gate_off")
    if is_static(wanted):
        return Infeasible(message="In-place resize of static-pods is not supported", detail="static_pod")
    if any(rules.swaps(allocated, name) for name in _changed(wanted, allocated, MEMORY)):
        return Infeasible(message="In-place resize of containers with swap is not supported.", detail="swap_limitation")
    if qos_class(wanted) != GUARANTEED:
        return None
    text = 'Resize is infeasible for Guaranteed Pods alongside {} Manager policy "{}"'
    if rules.static_cpus and _changed(wanted, allocated, CPU):
        return Infeasible(message=text.format("CPU", "static"), detail="guaranteed_pod_cpu_manager_static_policy")
    if rules.static_memory and _changed(wanted, allocated, MEMORY):
        detail = "guaranteed_pod_memory_manager_static_policy"
        return Infeasible(message=text.format("Memory", "Static"), detail=detail)
    return None


def _changed(wanted: Pod, allocated: Pod, resource: str) -> list[str]:
    before = {container.name: amounts(container.resources).of(resource) for container in resizable(allocated)}
    return [c.name for c in resizable(wanted) if amounts(c.resources).of(resource) != before.get(c.name)]


def _too_large(wanted: Pod, allocatable: Mapping[str, Quantity]) -> Infeasible | None:
    nothing = Quantity(0)
    requests = pod_requests(wanted)
    memory, cpu = requests.get(MEMORY, nothing).value(), requests.get(CPU, nothing).milli_value()
    all_memory = allocatable.get(MEMORY, nothing).value()
    all_cpu = allocatable.get(CPU, nothing).milli_value()
    if memory > all_memory:
        amounts_text = f"memory, requested: {memory}, capacity: {all_memory}"
    elif cpu > all_cpu:
        amounts_text = f"cpu, requested: {cpu}, capacity: {all_cpu}"
    else:
        return None
    text = f"Node didn't have enough capacity: {amounts_text}"
    return Infeasible(message=text, detail="insufficient_node_allocatable")
