"""The sandbox stage: is a new sandbox needed, and may the pod have one?"""

from __future__ import annotations

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.api.restarts import policy_of
from glasslet.pods.planner.actions import CreateSandbox, RemoveContainer, StopOldSandbox
from glasslet.pods.planner.draft import Draft
from glasslet.pods.planner.instances import newest
from glasslet.pods.planner.reasons import beside, tipped
from glasslet.pods.planner.shapes import POD_LEVEL, PlanInput
from glasslet.pods.verbs.grace import restart_grace
from glasslet.runtime.model import ContainerPhase, ObservedContainer

_MADE = (ContainerPhase.CREATED, ContainerPhase.RUNNING, ContainerPhase.EXITED)


class SandboxNeed(Struct, frozen=True, kw_only=True):
    """A new sandbox is needed. `because`: in words, for the record."""

    attempt: int
    because: str


def sandbox_need(given: PlanInput) -> SandboxNeed | None:
    """None when the newest sandbox is fine."""
    sandboxes = given.observed.sandboxes if given.observed else ()
    if not sandboxes:
        return SandboxNeed(attempt=given.sandbox_attempt_from, because="there is none")
    last = sandboxes[0]
    because = ""
    if sum(sandbox.ready for sandbox in sandboxes) > 1:
        because = "more than one is ready"
    elif not last.ready:
        because = "it is not ready"
    elif last.host_network != given.pod.spec.host_network:
        because = "its network namespace is of the other kind"
    elif not last.host_network and not last.ips:
        because = "it has no IP address"
    elif given.cgroup_lost and given.observed is not None and given.observed.running():
        because = "its pod's cgroup is gone: nothing holds the containers to their limits"
    if not because:
        return None
    return SandboxNeed(attempt=max(last.attempt + 1, given.sandbox_attempt_from), because=because)


def may_have_new_sandbox(given: PlanInput) -> bool:
    """False for pods that ran and whose policy does not let them run again."""
    observed = given.observed
    policy = given.pod.spec.restart_policy
    if observed is None or not observed.sandboxes:
        return True
    if policy == "Never" and observed.containers:
        return False
    regular = [(container, newest(given, container.name)) for container in given.pod.spec.containers]
    made = any(instance is not None and instance.phase in _MADE for _, instance in regular)
    return not (made and all(_is_done(container, given.pod, instance) for container, instance in regular))


def plan_sandbox(given: PlanInput, need: SandboxNeed, draft: Draft) -> None:
    """Stops what is left of the old sandbox and creates the new one. Init containers start over: theirs are removed."""
    held = draft.held(POD_LEVEL)
    if given.observed is not None and (given.observed.sandboxes or given.observed.containers):
        lives = given.observed.running() or any(sandbox.ready for sandbox in given.observed.sandboxes)
        # One that is dead is stopped, too: only that gives back its address and host ports.
        if lives or not held:
            draft.do(
                StopOldSandbox(grace=restart_grace(given.pod)),
                tipped("sandbox", need.because),
                beside("running containers", len(given.observed.running())),
            )
        init = {container.name for container in given.pod.spec.init_containers}
        for instance in given.observed.containers:
            if instance.name in init:
                draft.do(
                    RemoveContainer(name=instance.name, id=instance.id),
                    tipped("sandbox", f"{need.because}: init containers start over in the new one"),
                )
    if not held:
        draft.do(
            CreateSandbox(attempt=need.attempt),
            tipped("sandbox", need.because),
            beside("attempts that are taken", f"below {need.attempt}"),
        )


def _is_done(container: Container, pod: Pod, instance: ObservedContainer | None) -> bool:
    return policy_of(container, pod.spec) == "OnFailure" and _succeeded(instance)


def _succeeded(instance: ObservedContainer | None) -> bool:
    return instance is not None and instance.phase is ContainerPhase.EXITED and instance.exit_code == 0
