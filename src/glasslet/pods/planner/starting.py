"""Starting one container: at once, or why not yet."""

from __future__ import annotations

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.exchange.facts import Waiting
from glasslet.pods.backoff import back_off_key, held_until
from glasslet.pods.planner.actions import Role, StartContainer
from glasslet.pods.planner.draft import Draft
from glasslet.pods.planner.instances import is_changed, newest, newest_ended
from glasslet.pods.planner.reasons import Reason, Reasons, beside, instance_reason, policy_reason
from glasslet.pods.planner.shapes import PlanInput, PlannedWait
from glasslet.record.stations import WaitKind
from glasslet.runtime.model import ContainerPhase, ObservedContainer
from glasslet.runtime.observed.durations import go_duration


def start(given: PlanInput, draft: Draft, container: Container, role: Role) -> bool:
    """Starts the container, unless a failure or the restart back-off holds it back. True when it starts now."""
    if draft.held(container.name):
        return False
    last = newest(given, container.name)
    if last is not None and _can_be_adopted(given, container, last):
        draft.do(
            StartContainer(container=container, role=role, attempt=last.attempt, adopt=last.id), instance_reason(last)
        )
        return True
    ended = newest_ended(given, container.name)
    after = ended.finished_at if ended is not None else None
    if after is not None and (held := held_until(given.back_offs, back_off_key(container), after, given.limits)):
        until, delay = held
        # An end that is yet to come: the clock was set back. Better one early restart than a wait of hours.
        if after <= given.now < until:
            message = _back_off_message(given.pod, container.name, delay)
            draft.wait(
                PlannedWait(
                    kind=WaitKind.BACK_OFF, on=f"restart of {container.name}", container=container.name, until=until
                ),
                Waiting(reason="CrashLoopBackOff", message=message),
            )
            return False
    attempt = last.attempt + 1 if last is not None else None
    draft.do(
        StartContainer(container=container, role=role, attempt=attempt, after=after),
        instance_reason(last),
        policy_reason(container, given.pod, last),
        *_pauses(given, container),
    )
    return True


def _pauses(given: PlanInput, container: Container) -> Reasons:
    """Pauses that are over."""
    found: list[Reason] = []
    if (entry := given.back_offs.get(back_off_key(container)) if given.back_offs else None) is not None:
        found.append(beside("restart back-off", f"{go_duration(entry.delay)}, over"))
    if (hold := given.holds.get(container.name)) is not None:
        found.append(beside("last try", hold.why))
    return tuple(found)


def _can_be_adopted(given: PlanInput, container: Container, instance: ObservedContainer) -> bool:
    """Created but never started, by an agent that died in between: nothing is wrong with it."""
    sandbox = given.observed.ready_sandbox() if given.observed else None
    return (
        instance.phase is ContainerPhase.CREATED
        and instance.id not in given.unstartable
        and sandbox is not None
        and instance.sandbox_id == sandbox.id
        and not is_changed(container, instance)
    )


def _back_off_message(pod: Pod, container: str, delay: float) -> str:
    meta = pod.metadata
    return (
        f"back-off {go_duration(delay)} restarting failed container={container} "
        f"pod={meta.name}_{meta.namespace}({meta.uid})"
    )
