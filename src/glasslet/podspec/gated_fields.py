"""Fields that a gate switches on: while it is off a pod is run as if it did not have them, as upstream does.

Done once where pods come in, so that nothing behind has to ask for gates.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from glasslet.api.container import Container
from glasslet.api.env import EnvVar
from glasslet.api.pod import Pod

HOSTNAME_OVERRIDE = "HostnameOverride"
RESTART_RULES = "ContainerRestartRules"
STOP_SIGNALS = "ContainerStopSignals"
ENV_FILES = "EnvFiles"
RESOURCE_CLAIMS = "DynamicResourceAllocation"


def effective_pod(pod: Pod, enabled: Callable[[str], bool]) -> Pod:
    """The pod without what is switched off; the same object if there is nothing of that in it."""
    spec = pod.spec
    changes: dict[str, object] = {}
    if spec.hostname_override is not None and not enabled(HOSTNAME_OVERRIDE):
        changes["hostname_override"] = None
    if spec.resource_claims and not enabled(RESOURCE_CLAIMS):
        changes["resource_claims"] = ()
    regular = tuple(_container(one, enabled, init=False) for one in spec.containers)
    init = tuple(_container(one, enabled, init=True) for one in spec.init_containers)
    if any(new is not old for new, old in zip(regular, spec.containers, strict=True)):
        changes["containers"] = regular
    if any(new is not old for new, old in zip(init, spec.init_containers, strict=True)):
        changes["init_containers"] = init
    return replace(pod, spec=replace(spec, **changes)) if changes else pod


def _container(container: Container, enabled: Callable[[str], bool], *, init: bool) -> Container:
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
