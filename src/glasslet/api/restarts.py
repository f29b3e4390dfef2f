"""Whether a container that ended is started again: its own rules by exit code (KEP-5307), its own policy, the pod's.

An init container whose own policy is Always is a sidecar (KEP-753): it runs beside the regular ones.
"""

from __future__ import annotations

from glasslet.api.container import Container, ContainerRestartRule, EphemeralContainer
from glasslet.api.pod import PodSpec


def is_sidecar(container: Container | EphemeralContainer) -> bool:
    """Whether an init container is a sidecar. Of a regular container the field means its own restart policy only."""
    return isinstance(container, Container) and container.restart_policy == "Always"


def policy_of(container: Container, spec: PodSpec) -> str:
    """The container's own policy, or else the pod's."""
    return container.restart_policy or spec.restart_policy


def restarts_after(container: Container, spec: PodSpec, exit_code: int) -> bool:
    """Whether a container that ended with this code is started again. Rules need a policy of the container's own."""
    if container.restart_policy and any(_restarts(rule, exit_code) for rule in container.restart_policy_rules):
        return True
    policy = policy_of(container, spec)
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def may_restart(container: Container, spec: PodSpec) -> bool:
    """Whether there is any end after which the container is started again."""
    rules = container.restart_policy_rules if container.restart_policy else ()
    return policy_of(container, spec) != "Never" or any(rule.action == "Restart" for rule in rules)


def _restarts(rule: ContainerRestartRule, exit_code: int) -> bool:
    codes = rule.exit_codes
    if rule.action != "Restart" or codes is None:
        return False
    return (exit_code in codes.values and codes.operator == "In") or (
        exit_code not in codes.values and codes.operator == "NotIn"
    )
