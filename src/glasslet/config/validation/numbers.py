"""Rules about single numbers and durations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from glasslet.config.flags.table import FLAGS
from glasslet.config.validation.finding import Finding, ValidationInput, invalid, refused

_FLAG_OF = {flag.field: flag.name for flag in FLAGS.values() if flag.field} | {
    "iptablesMasqueradeBit": "iptables-masquerade-bit",
    "iptablesDropBit": "iptables-drop-bit",
}
_NOT_NEGATIVE = (
    ("eventBurst", "event_burst"), ("eventRecordQPS", "event_record_qps"), ("kubeAPIBurst", "kube_api_burst"),
    ("kubeAPIQPS", "kube_api_qps"), ("maxOpenFiles", "max_open_files"), ("maxPods", "max_pods"),
    ("podsPerCore", "pods_per_core"), ("registryBurst", "registry_burst"), ("registryPullQPS", "registry_pull_qps"),
)  # fmt: skip
_RANGES = (
    ("port", "port", 1, 65535), ("imageGCHighThresholdPercent", "image_gc_high_threshold_percent", 0, 100),
    ("imageGCLowThresholdPercent", "image_gc_low_threshold_percent", 0, 100),
    ("iptablesDropBit", "iptables_drop_bit", 0, 31), ("iptablesMasqueradeBit", "iptables_masquerade_bit", 0, 31),
    ("oomScoreAdj", "oom_score_adj", -1000, 1000),
)  # fmt: skip


def named(field: str) -> str:
    """`maxPods (--max-pods)`; the flag only where there is one."""
    flag = _FLAG_OF.get(field)
    return f"{field} (--{flag})" if flag else field


def _between(field: str, value: Any, low: Any, high: Any) -> Finding:
    text = f"{named(field)} {value} must be between {low} and {high}, inclusive"
    return invalid(field, text, f"{low} to {high}")


def check_numbers(subject: ValidationInput) -> Iterator[Finding]:
    """Signs and ranges."""
    configuration = subject.configuration
    for field, attribute in _NOT_NEGATIVE:
        value = getattr(configuration, attribute)
        if value < 0:
            yield invalid(field, f"{named(field)} {value} must not be a negative number", "0 or more")
    for field, attribute, low, high in _RANGES:
        value = getattr(configuration, attribute)
        if not low <= value <= high:
            yield _between(field, value, low, high)
    if configuration.healthz_port and not 1 <= configuration.healthz_port <= 65535:
        yield _between("healthzPort", configuration.healthz_port, 1, 65535)
    if configuration.read_only_port and not 1 <= configuration.read_only_port <= 65535:
        yield _between("readOnlyPort", configuration.read_only_port, 0, 65535)
    if configuration.image_gc_low_threshold_percent >= configuration.image_gc_high_threshold_percent:
        low, high = configuration.image_gc_low_threshold_percent, configuration.image_gc_high_threshold_percent
        text = (
            f"{named('imageGCLowThresholdPercent')} {low} must be less than "
            f"{named('imageGCHighThresholdPercent')} {high}"
        )
        yield invalid("imageGCLowThresholdPercent", text, f"less than {high}")
    yield from _check_others(subject)


def _check_others(subject: ValidationInput) -> Iterator[Finding]:
    configuration = subject.configuration
    if configuration.node_lease_duration_seconds <= 0:
        yield invalid("nodeLeaseDurationSeconds", "nodeLeaseDurationSeconds must be greater than 0", "1 or more")
    if configuration.node_status_max_images < -1:
        text = f"{named('nodeStatusMaxImages')} {configuration.node_status_max_images} must be -1 or greater"
        yield invalid("nodeStatusMaxImages", text, "-1 or more")
    if not 0 < configuration.memory_throttling_factor <= 1:
        text = f"memoryThrottlingFactor {configuration.memory_throttling_factor} must be above 0 and at most 1.0"
        yield invalid("memoryThrottlingFactor", text, "above 0 to 1.0")
    if configuration.container_log_max_files <= 1:
        yield invalid("containerLogMaxFiles", "containerLogMaxFiles must be greater than 1", "2 or more")
    if configuration.container_log_max_workers < 1:
        yield invalid("containerLogMaxWorkers", "containerLogMaxWorkers must be 1 or greater", "1 or more")
    if configuration.container_log_monitor_interval < 3:
        yield invalid("containerLogMonitorInterval", "containerLogMonitorInterval must be 3s or longer", "3s or longer")
    if configuration.sync_frequency <= 0:
        text = f"invalid sync frequency {configuration.sync_frequency.nanoseconds}"
        yield refused("syncFrequency", text, "longer than 0s")
    if configuration.kube_api_burst == 0 and configuration.kube_api_qps > 0:
        text = f"{named('kubeAPIBurst')} must be greater than 0 while {named('kubeAPIQPS')} is above 0"
        yield refused("kubeAPIBurst", text, "1 or more")


def check_cfs_period(subject: ValidationInput) -> Iterator[Finding]:
    """cpuCFSQuotaPeriod: free only with its gate, and then within bounds."""
    period = subject.configuration.cpu_cfs_quota_period
    if subject.gates.enabled("CustomCPUCFSQuotaPeriod"):
        if not 10**6 <= period.nanoseconds <= 10**9:
            yield _between("cpuCFSQuotaPeriod", period, "1ms", "1sec")
    elif period.nanoseconds != 10**8:
        text = f"{named('cpuCFSQuotaPeriod')} {period} requires feature gate CustomCPUCFSQuotaPeriod"
        yield invalid("cpuCFSQuotaPeriod", text, "100ms")
