"""The agent itself: its version, node, feature gates, process figures, and the registry's own counts."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from functools import cache

from msgspec import Struct
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from glasslet.telemetry.metrics.registry import MetricRegistry
from glasslet.version import KUBELET_VERSION, KUBERNETES_VERSION

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}


class FeatureGateState(Struct, frozen=True):
    """One feature gate. `stage`: ALPHA, BETA, DEPRECATED, or "" for GA."""

    stage: str
    enabled: bool


def declare_agent_metrics(registry: MetricRegistry, *, node_name: str, gates: Mapping[str, FeatureGateState]) -> None:
    """Declares everything in this file but the process figures. Call it last: it counts what was declared before."""
    _declare_build_info(registry)
    registry.gauge("kubelet_node_name", "The name of this node; always 1.", ("node",)).labels(node_name).set(1)
    feature = registry.gauge(
        "kubernetes_feature_enabled", "1 for a feature gate that is on, else 0.", ("name", "stage"), stability="BETA"
    )
    for name, gate in gates.items():
        feature.labels(name, gate.stage).set(1 if gate.enabled else 0)
    for name, text in (
        ("disabled_metrics_total", "Metrics that the configuration switched off."),
        ("hidden_metrics_total", "Metrics that are hidden because they are deprecated."),
    ):
        registry.counter(name, text, stability="BETA")
    registered = registry.counter(
        "registered_metrics_total",
        "Declared metrics by stability.",
        ("stability_level", "deprecated_version"),
        stability="BETA",
    )
    for level, number in registry.tally().items():
        registered.labels(level, "").inc(number)


def _declare_build_info(registry: MetricRegistry) -> None:
    major, minor = KUBERNETES_VERSION.removeprefix("v").split(".")[:2]
    machine = platform.machine()
    info = {
        "build_date": "",
        "compiler": platform.python_implementation(),
        "git_commit": "",
        "git_tree_state": "",
        "git_version": KUBELET_VERSION,
        "go_version": "",
        "major": major,
        "minor": minor,
        "platform": f"linux/{_MACHINES.get(machine, machine)}",
    }
    build = registry.gauge("kubernetes_build_info", "The version that runs here; always 1.", tuple(info))
    build.labels(*info.values()).set(1)


class ProcessCollector:
    """`process_*`, read from /proc at each scrape; names and types as in all Prometheus client libraries."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._ticks = float(os.sysconf("SC_CLK_TCK"))
        self._page = os.sysconf("SC_PAGE_SIZE")

    def collect(self) -> Iterable[Metric]:
        """The metric families; one whose file cannot be read is left out."""
        try:
            yield from self._from_stat()
            yield _plain("process_open_fds", "Open file descriptors.", len(os.listdir(f"{self._proc}/self/fd")))
            yield from self._from_limits()
            yield from self._from_network()
        except OSError:
            return

    def _from_stat(self) -> Iterable[Metric]:
        # Fields are counted from behind the command name, which may hold anything.
        fields = self._read("self/stat").rpartition(")")[2].split()
        cpu = (int(fields[11]) + int(fields[12])) / self._ticks
        yield _plain("process_cpu_seconds_total", "CPU seconds used, user and system.", cpu, "counter")
        start = boot_time(self._proc) + int(fields[19]) / self._ticks
        yield _plain("process_start_time_seconds", "Unix time of the start of this process.", start)
        yield _plain("process_virtual_memory_bytes", "Virtual memory.", int(fields[20]))
        yield _plain("process_resident_memory_bytes", "Resident memory.", int(fields[21]) * self._page)

    def _from_limits(self) -> Iterable[Metric]:
        for line in self._read("self/limits").split("\n"):
            for title, name, text in (
                ("Max open files", "process_max_fds", "Most file descriptors allowed."),
                ("Max address space", "process_virtual_memory_max_bytes", "Most virtual memory allowed."),
            ):
                if line.startswith(title):
                    limit = line[len(title) :].split()[0]
                    # Unlimited is the largest unsigned number, as other client libraries show it.
                    yield _plain(name, text, float(2**64 - 1) if limit == "unlimited" else float(limit))

    def _from_network(self) -> Iterable[Metric]:
        received = sent = 0
        names: list[str] = []
        for line in self._read("self/net/netstat").split("\n"):
            if line.startswith("IpExt: ") and line.split()[1].isdigit():
                values = dict(zip(names, map(int, line.split()[1:]), strict=False))
                received, sent = values.get("InOctets", 0), values.get("OutOctets", 0)
            elif line.startswith("IpExt: "):
                names = line.split()[1:]
        yield _plain("process_network_receive_bytes_total", "Bytes received over the network.", received, "counter")
        yield _plain("process_network_transmit_bytes_total", "Bytes sent over the network.", sent, "counter")

    def _read(self, path: str) -> str:
        with open(f"{self._proc}/{path}", encoding="utf-8", errors="replace") as file:
            return file.read()


@cache
def boot_time(proc: str = "/proc") -> float:
    """Unix time at which the machine was booted. Raises OSError."""
    with open(f"{proc}/stat", encoding="ascii") as file:
        return float(next(line.split()[1] for line in file if line.startswith("btime ")))


def process_start_time(proc: str = "/proc") -> float:
    """Unix time at which this process was started. Raises OSError."""
    with open(f"{proc}/self/stat", encoding="utf-8", errors="replace") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    return boot_time(proc) + ticks / float(os.sysconf("SC_CLK_TCK"))


class StartTimeCollector:
    """`process_start_time_seconds` alone, as the smaller endpoints show it."""

    def __init__(self, started: float) -> None:
        self._started = started

    def collect(self) -> Iterable[Metric]:
        """The one family."""
        yield GaugeMetricFamily(
            "process_start_time_seconds", "[ALPHA] Unix time of the start of this process.", value=self._started
        )


def _plain(name: str, text: str, value: float, kind: str = "gauge") -> Metric:
    family = Metric(name, text, kind)
    family.add_sample(name, {}, value)
    return family
