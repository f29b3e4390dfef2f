"""Fields behind feature gates: while a gate is off, pods run as if they did not have the field, as upstream.

Applied once where pods come in: the code behind it needs no gates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from glasslet.api.container import Container, EphemeralContainer
from glasslet.api.env import EnvVar
from glasslet.api.pod import Pod

Contained = TypeVar("Contained", Container, EphemeralContainer)

HOSTNAME_OVERRIDE = "HostnameOverride"
RESTART_RULES = "ContainerRestartRules"
STOP_SIGNALS = "ContainerStopSignals"
ENV_FILES = "EnvFiles"
RESOURCE_CLAIMS = "DynamicResourceAllocation"


def effective_pod(pod: Pod, enabled: Callable[[str], bool]) -> Pod:
    """The pod without fields that are switched off; the same object if it has none."""
    spec = pod.spec
    changes: dict[str, object] = {}
    if spec.hostname_override is not None and not enabled(HOSTNAME_OVERRIDE):
        changes["hostname_override"] = None
    if spec.resource_claims and not enabled(RESOURCE_CLAIMS):
        changes["resource_claims"] = ()
    for field in ("containers", "init_containers", "ephemeral_containers"):
        before = getattr(spec, field)
        after = tuple(_container(one, enabled, init=field == "init_containers") for one in before)
        if any(new is not old for new, old in zip(after, before, strict=True)):
            changes[field] = after
    return replace(pod, spec=replace(spec, **changes)) if changes else pod


def _container(container: Contained, enabled: Callable[[str], bool], *, init: bool) -> Contained:
    changes: dict[str, object] = {}
    if not enabled(RESTART_RULES):
        # Sidecars are older than the gate.
        if container.restart_policy is not None and not (init and container.restart_policy == "Always"):
            changes["restart_policy"] = None
        if container.restart_policy_rules:
            changes["restart_policy_rules"] = ()
    lifecycle = container.lifecycle
    if lifecycle is not None and lifecycle.stop_signal is not None and not enabled(STOP_SIGNALS):
        changes["lifecycle"] = replace(lifecycle, stop_signal=None)
    if any(_is_file_key(entry) for entry in container.env) and not enabled(ENV_FILES):
        changes["env"] = tuple(replace(e, value_from=None) if _is_file_key(e) else e for e in container.env)
    return replace(container, **changes) if changes else container


def _is_file_key(entry: EnvVar) -> bool:
    return entry.value_from is not None and entry.value_from.file_key_ref is not None
