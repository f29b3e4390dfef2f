"""The limits of the cgroups of QoS classes, from all pods together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from glasslet.config.feature_gates import FeatureGates
from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.host.cgroups.kernel_amounts import MIN_SHARES, UNLIMITED_BYTES, cpu_shares
from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.resources.layout import BEST_EFFORT, BURSTABLE, GUARANTEED
from glasslet.resources.pod_limits import PodDemand


class QoSRules(Struct, frozen=True, kw_only=True):
    """The settings that count for the classes. `page_sizes`: those of the node, bytes. `memory_reserve`: percent of the
    memory requested by a class that those below it may not use (qosReserved, gate QOSReserved), None for off;
    `allocatable_memory` in bytes goes with it. `memory_qos`: gate MemoryQoS on cgroup v2."""

    page_sizes: tuple[int, ...] = ()
    memory_reserve: int | None = None
    allocatable_memory: int = 0
    memory_qos: bool = False


def qos_rules(
    configuration: KubeletConfiguration,
    gates: FeatureGates,
    page_sizes: tuple[int, ...],
    *,
    memory_for_pods: int,
    memory_qos: bool,
) -> QoSRules:
    """The rules that the configuration sets. `memory_for_pods`: bytes of the machine less reservations."""
    percent = configuration.qos_reserved.get("memory") if gates.enabled("QOSReserved") else None
    return QoSRules(
        page_sizes=page_sizes,
        memory_reserve=int(percent.removesuffix("%")) if percent else None,
        allocatable_memory=memory_for_pods,
        memory_qos=memory_qos,
    )


def limits_of_classes(pods: Iterable[PodDemand], rules: QoSRules) -> dict[str, CgroupLimits]:
    """Limits by class. Guaranteed pods are directly below kubepods: its entry holds only what depends on pods."""
    pods = tuple(pods)
    memory = {qos: sum(pod.memory_request for pod in pods if pod.qos == qos) for qos in (GUARANTEED, BURSTABLE)}
    burstable_cpu = sum(pod.cpu_request for pod in pods if pod.qos == BURSTABLE)
    unlimited = dict.fromkeys(rules.page_sizes, UNLIMITED_BYTES)
    found = {
        GUARANTEED: CgroupLimits(),
        BURSTABLE: CgroupLimits(cpu_shares=cpu_shares(burstable_cpu), huge_pages=unlimited),
        BEST_EFFORT: CgroupLimits(cpu_shares=MIN_SHARES, huge_pages=unlimited),
    }
    if rules.memory_qos:
        _protect(found, memory)
    if rules.memory_reserve is not None and rules.allocatable_memory > 0:
        burstable = rules.allocatable_memory - memory[GUARANTEED] * rules.memory_reserve // 100
        best_effort = burstable - memory[BURSTABLE] * rules.memory_reserve // 100
        found[BURSTABLE] = replace(found[BURSTABLE], memory=max(burstable, 1))
        found[BEST_EFFORT] = replace(found[BEST_EFFORT], memory=max(best_effort, 1))
    return found


def raised_to_use(limits: Mapping[str, CgroupLimits], usage: Mapping[str, int]) -> dict[str, CgroupLimits]:
    """Limits with memory raised to the class's present use where that is larger: its use cannot grow. `usage` in bytes,
    by class."""
    return {
        qos: replace(one, memory=usage[qos]) if one.memory is not None and usage.get(qos, 0) > one.memory else one
        for qos, one in limits.items()
    }


def _protect(found: dict[str, CgroupLimits], memory: Mapping[str, int]) -> None:
    found[BURSTABLE] = replace(found[BURSTABLE], memory_min=memory[BURSTABLE])
    found[GUARANTEED] = replace(found[GUARANTEED], memory_min=memory[GUARANTEED] + memory[BURSTABLE])
