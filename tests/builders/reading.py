"""Readings of a node with quiet defaults: one pod `default/web` with one container `main`."""

from __future__ import annotations

from typing import Any

from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.host.cgroups.figures import CgroupFigures, Details, MemoryFigures, Part, Pressure, Stall
from glasslet.runtime.model import ObservedContainer
from glasslet.stats.network import Interface
from glasslet.stats.readings import ContainerReading, NodeReading, PodReading
from glasslet.stats.targets import PodTarget
from tests.builders.observed import observed_container, observed_sandbox
from tests.builders.pod import pod

AT = 1_767_225_600_123_456_789
"""2026-01-01T00:00:00.123456789Z."""
POD_GROUP = "/kubepods/burstable/pod0f1e2d3c"
PRESSURE = Pressure(some=Stall(3.0, 2.0, 1.0, 30), full=Stall(0.3, 0.2, 0.1, 3))


def memory(**changes: Any) -> MemoryFigures:
    """100 in use, 80 of it the working set, under a limit of 200."""
    facts = {"usage": 100, "working_set": 80, "rss": 60, "cache": 40, "mapped_file": 7, "swap": 5}
    files = {"active_file": 11, "inactive_file": 20, "faults": 9, "major_faults": 2, "limit": 200, "swap_limit": 50}
    return MemoryFigures(**(facts | files | changes))


def figures(cpu: int | None = 1000, *, details: Details | None = None, **changes: Any) -> CgroupFigures:
    """One group."""
    facts: dict[str, Any] = {
        "taken_at": AT,
        "cpu": cpu,
        "memory": memory(),
        "cpu_pressure": PRESSURE,
        "memory_pressure": PRESSURE,
        "io_pressure": PRESSURE,
        "details": details,
    }
    return CgroupFigures(**(facts | changes))


def container_reading(
    container: ObservedContainer | None = None, found: CgroupFigures | None = None, **changes: Any
) -> ContainerReading:
    """A container in its pod's group, with one process."""
    container = container or observed_container()
    return ContainerReading(container, f"{POD_GROUP}/{container.id}", found or figures(pids=(b"4242",)), **changes)


def pod_reading(*containers: ContainerReading, of: Pod | None = None, **changes: Any) -> PodReading:
    """A pod with a group of its own, which used twice what its containers did."""
    of = of or pod()
    facts: dict[str, Any] = {
        "target": PodTarget(
            ref=PodRef(*pod_ref(of)),
            sandbox=observed_sandbox(),
            containers=tuple(one.container for one in containers),
            pod=of,
            cgroup=POD_GROUP,
        ),
        "figures": figures(2000),
        "containers": containers,
        "sandbox_group": f"{POD_GROUP}/sandbox-0",
        "interfaces": (eth0(),),
    }
    return PodReading(**(facts | changes))


def eth0(**changes: Any) -> Interface:
    """An interface."""
    facts = {"rx_bytes": 10, "rx_packets": 1, "rx_errors": 2, "tx_bytes": 20, "tx_packets": 3, "tx_errors": 4}
    return Interface(**({"name": "eth0"} | facts | changes))


def reading(*pods: PodReading, **changes: Any) -> NodeReading:
    """A node with these pods, a group above them, and one interface that is not eth0."""
    facts: dict[str, Any] = {
        "parts": Part.PRESSURE | Part.PROCESSES | Part.NETWORK | Part.DETAILS,
        "groups": {"/": figures(90_000), "/kubepods": figures(50_000)},
        "made_at": {"/kubepods": 1_767_200_000.5},
        "pods": pods,
        "interfaces": (eth0(name="ens3"),),
    }
    return NodeReading(**(facts | changes))
