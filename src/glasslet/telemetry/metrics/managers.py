"""Metrics of the CPU, memory and topology manager."""

from __future__ import annotations

from collections.abc import Mapping

from glasslet.telemetry.metrics.registry import MetricRegistry

_ALIGNED = "kubelet_container_aligned_compute_resources_"
_BUCKETS = tuple(0.05 * 2**power for power in range(15))


class ManagerFamilies:
    """`kubelet_cpu_manager_*`, `kubelet_memory_manager_*`, `kubelet_topology_manager_*` and those of alignment."""

    def __init__(self, registry: MetricRegistry) -> None:
        cpu, memory, topology = (f"kubelet_{name}_manager_" for name in ("cpu", "memory", "topology"))
        self._pinnings = {
            "cpu": registry.counter(f"{cpu}pinning_requests_total", "Containers that asked for CPUs of their own."),
            "memory": registry.counter(f"{memory}pinning_requests_total", "Containers that asked for pinned memory."),
        }
        self._failures = {
            "cpu": registry.counter(f"{cpu}pinning_errors_total", "Containers that did not get their CPUs."),
            "memory": registry.counter(f"{memory}pinning_errors_total", "Containers that did not get their memory."),
        }
        self._shared = registry.gauge(f"{cpu}shared_pool_size_millicores", "Shared CPUs, without reserved ones.")
        self._exclusive = registry.gauge(f"{cpu}exclusive_cpu_allocation_count", "CPUs that containers have alone.")
        self._per_node = registry.gauge(f"{cpu}allocation_per_numa", "CPUs given out, by NUMA node.", ("numa_node",))
        labels = ("scope", "boundary")
        self._aligned = registry.counter(f"{_ALIGNED}count", "Containers or pods with aligned resources.", labels)
        self._unaligned = registry.counter(f"{_ALIGNED}failure_count", "Alignments that were not possible.", labels)
        self._admissions = registry.counter(f"{topology}admission_requests_total", "Pods that came to admission.")
        self._refusals = registry.counter(f"{topology}admission_errors_total", "Pods that could not be aligned.")
        self._milliseconds = registry.histogram(
            f"{topology}admission_duration_ms", "Milliseconds of the decision.", buckets=_BUCKETS
        )

    def pinning(self, kind: str) -> None:
        """A container asks for `cpu` or `memory` of its own."""
        self._pinnings[kind].inc()

    def pinning_failed(self, kind: str) -> None:
        """It does not get it."""
        self._failures[kind].inc()

    def cpus(self, *, shared: int, by_node: Mapping[int, int]) -> None:
        """How many CPUs are shared, and how many given out of each NUMA node."""
        self._shared.set(shared * 1000)
        self._exclusive.set(sum(by_node.values()))
        for node, count in by_node.items():
            self._per_node.labels(str(node)).set(count)

    def known(self, scope: str, boundary: str) -> None:
        """The series exists from now on."""
        self._aligned.labels(scope, boundary)
        if boundary != "uncore_cache":
            self._unaligned.labels(scope, boundary)

    def aligned(self, scope: str, boundary: str) -> None:
        """A `container` or `pod` has all of one `numa_node`, `physical_cpu` or `uncore_cache`."""
        self._aligned.labels(scope, boundary).inc()

    def unaligned(self, scope: str, boundary: str) -> None:
        """It could not."""
        self._unaligned.labels(scope, boundary).inc()

    def admission(self, seconds: float) -> None:
        """A pod was decided about."""
        self._admissions.inc()
        self._milliseconds.observe(int(seconds * 1000))

    def admission_refused(self) -> None:
        """It was refused."""
        self._refusals.inc()
