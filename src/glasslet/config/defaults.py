"""Defaulting, as upstream does it: on plain trees, after the file is read and again after drop-ins are merged."""

from __future__ import annotations

from typing import Any, Final

from glasslet.config.duration import Duration
from glasslet.config.feature_gates import FeatureGates
from glasslet.config.kubelet_configuration import KubeletConfiguration, to_plain
from glasslet.config.schema import Tree

EVICTION_HARD: Final = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
"""Hard eviction thresholds on Linux, filled in only while a --config file is read."""

LEGACY: Final[Tree] = {
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "readOnlyPort": 10255,
}
"""Defaults that a start without --config keeps for old command lines."""

KEEPS_ZERO: Final = frozenset(
    {
        "registryPullQPS", "eventRecordQPS", "kubeAPIQPS", "healthzPort", "oomScoreAdj", "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent", "iptablesMasqueradeBit", "iptablesDropBit", "podPidsLimit", "nodeStatusMaxImages",
        "maxParallelImagePulls", "resolvConf", "cpuCFSQuotaPeriod", "containerLogMaxFiles", "containerLogMaxWorkers",
        "containerLogMonitorInterval", "memoryThrottlingFactor",
    }
)  # fmt: skip
"""Fields whose explicit zero counts. Everywhere else zero means unset, except for true and false."""

_DEFAULTS: Final[Tree] = to_plain(KubeletConfiguration())
RESOLVED_PATHS: Final = (
    ("staticPodPath",), ("authentication", "x509", "clientCAFile"), ("tlsCertFile",), ("tlsPrivateKeyFile",),
    ("resolvConf",), ("volumePluginDir",), ("podLogsDir",),
)  # fmt: skip
"""Relative paths that stand in the --config file count from its directory, for exactly these fields."""


def with_defaults(tree: Tree, gates: FeatureGates) -> Tree:
    """The full tree: every field present, unset ones with their defaults."""
    given = drop_zeros(tree, _DEFAULTS)
    full = overlay(_DEFAULTS, given)
    if "nodeStatusReportFrequency" not in given and "nodeStatusUpdateFrequency" in given:
        full["nodeStatusReportFrequency"] = given["nodeStatusUpdateFrequency"]
    if "serializeImagePulls" not in given:
        full["serializeImagePulls"] = given.get("maxParallelImagePulls", 0) < 2
    full["podPidsLimit"] = max(full["podPidsLimit"], -1)
    if gates.enabled("KubeletCrashLoopBackOffMax") and not given.get("crashLoopBackOff", {}).get(
        "maxContainerRestartPeriod"
    ):
        full["crashLoopBackOff"] = {"maxContainerRestartPeriod": "5m0s"}
    if gates.enabled("KubeletEnsureSecretPulledImages") and not full["imagePullCredentialsVerificationPolicy"]:
        full["imagePullCredentialsVerificationPolicy"] = "NeverVerifyPreloadedImages"
    return full


def with_eviction_defaults(tree: Tree) -> Tree:
    """The tree of a --config file with the hard thresholds that upstream fills in while it reads that file."""
    hard = tree.get("evictionHard")
    if hard is None:
        return {**tree, "evictionHard": dict(EVICTION_HARD)}
    return {**tree, "evictionHard": {**EVICTION_HARD, **hard}} if tree.get("mergeDefaultEvictionSettings") else tree


def thresholds_left_out(tree: Tree) -> str:
    """What a full tree should be warned of: hard thresholds that were given stand for all of them. "" if nothing.
    Thresholds of 0 % alone mean that nothing is to be evicted."""
    hard = tree.get("evictionHard") or {}
    missing = [signal for signal in EVICTION_HARD if signal not in hard]
    if not missing or tree.get("mergeDefaultEvictionSettings") or all(text in ("0%", "100%") for text in hard.values()):
        return ""
    without = f"{', '.join(missing)} {'has' if len(missing) == 1 else 'have'} none"
    return (
        f"evictionHard replaces all hard thresholds, so {without}: "
        'mergeDefaultEvictionSettings: true adds the defaults, "0%" says that it is meant'
    )


def overlay(base: Tree, top: Tree) -> Tree:
    """`top` laid over `base`: maps merge by key, everything else is replaced. Neither is changed."""
    made = dict(base)
    for name, value in top.items():
        below = base.get(name)
        made[name] = overlay(below, value) if isinstance(value, dict) and isinstance(below, dict) else value
    return made


def drop_zeros(tree: Tree, defaults: Tree) -> Tree:
    """The tree without the zeros that count as unset."""
    made: Tree = {}
    for name, value in tree.items():
        default = defaults.get(name)
        if isinstance(value, dict) and isinstance(default, dict):
            made[name] = drop_zeros(value, default)
        elif name in KEEPS_ZERO or default is None or not _counts_as_unset(value, default):
            made[name] = value
    return made


def _counts_as_unset(value: Any, default: Any) -> bool:
    if isinstance(default, bool | list | dict):
        return False
    if isinstance(default, str) and (nanoseconds := _nanoseconds(default)) is not None:
        return nanoseconds != 0 and _nanoseconds(value) == 0
    return value in ("", 0) and default not in ("", 0)


def _nanoseconds(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return None if value else 0
    if not isinstance(value, str) or not value:
        return None
    try:
        return Duration.parse(value).nanoseconds
    except ValueError:
        return None
