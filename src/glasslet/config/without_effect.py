"""Settings that are accepted and do nothing: each one that a command line or a file sets is a notice at the start.

An entry goes when the agent acts upon the setting; a test compares the tables with what the code reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from glasslet.config.gate_table import GATES

_UPSTREAM = "the Go kubelet does nothing with it either"
_GO = "it is about the Go runtime"
_LOGS = "log lines are written at once to standard error"

SAME_UPSTREAM = (_UPSTREAM, _GO)
"""Reasons that make no difference to the Go kubelet, or none that a node could notice."""

FIELDS: Mapping[str, str] = {
    "enableContentionProfiling": _GO,
    "hairpinMode": _UPSTREAM,
    "iptablesDropBit": _UPSTREAM,
    "iptablesMasqueradeBit": _UPSTREAM,
    "logging.flushFrequency": _LOGS,
    "logging.options.json.infoBufferSize": _LOGS,
    "logging.options.json.splitStream": _LOGS,
    "logging.options.text.infoBufferSize": _LOGS,
    "logging.options.text.splitStream": _LOGS,
    "showHiddenMetricsForVersion": "no metric is hidden",
    "streamingConnectionIdleTimeout": _UPSTREAM,
    "volumePluginDir": "FlexVolume plugins are not supported; volumes of that type are refused",
}
"""KubeletConfiguration by path, and why a value other than the default changes nothing."""

OPTIONS: Mapping[str, str] = {
    "--experimental-mounter-path": _UPSTREAM,
    "--housekeeping-interval": "it belongs to cAdvisor, which is not part of this agent",
    "--version": "the agent reports its own version",
}
"""Flags that are no configuration fields."""

KUBELET_GATES: Mapping[str, str] = {
    "DisableNodeKubeProxyVersion": "kubeProxyVersion stays empty, whatever the gate says",
    "EventedPLEG": "events of the runtime are hints, and lists are read as well, whatever the gate says",
    "KubeletInUserNamespace": "the agent needs the machine's own root",
    "MutableCSINodeAllocatableCount": "there is no CSI yet",
    "PodAndContainerStatsFromCRI": "figures come from cgroups",
    "PodCertificateRequest": "pod certificates are not projected yet",
    "PodObservedGenerationTracking": "the generation is reported, whatever the gate says",
    "PodReadyToStartContainersCondition": "the condition is reported, whatever the gate says",
    "ReloadKubeletServerCertificateFile": "certificate files are read again when they change, whatever the gate says",
    "ResourceHealthStatus": "health of devices is not part of a pod's status yet",
}
"""Feature gates that the Go kubelet acts upon; those of other components change nothing in either."""


def _is_zero(value: Any) -> bool:
    """Whether a plain value asks for nothing."""
    if isinstance(value, dict):
        return all(_is_zero(entry) for entry in value.values())
    return value in (None, "", [], False, 0, "0", "0s", "0%")


def fields_without_effect(tree: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and text for each value of the configuration that asks for something in vain."""
    for path, why in FIELDS.items():
        value, default = _at(tree, path), _at(defaults, path)
        if value != default and not _is_zero(value):
            yield path, f"{path} has no effect: {why}"


def options_without_effect(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Flag and text for each flag of OPTIONS in `given`, which is keyed by flag name without dashes."""
    for flag, why in OPTIONS.items():
        value = given.get(flag[2:])
        if not _is_zero(value) and (flag != "--version" or str(value).startswith("v")):
            yield flag, f"{flag} has no effect: {why}"


def gates_without_effect(settings: Mapping[str, bool]) -> Iterator[tuple[str, str]]:
    """Gate and text for each gate of KUBELET_GATES that is set to something else than its default."""
    for name, why in KUBELET_GATES.items():
        if settings.get(name, GATES[name].default) != GATES[name].default:
            yield name, f"feature gate {name} has no effect: {why}"


def _at(tree: Any, path: str) -> Any:
    for part in path.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree
