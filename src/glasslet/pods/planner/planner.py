"""From a pod and what is known about it to a plan: deadline, sandbox, init containers, regular containers."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.concurrency.clock import moment_after
from glasslet.pods.planner.draft import Draft
from glasslet.pods.planner.init_containers import Progress, plan_init
from glasslet.pods.planner.regular import plan_ephemeral, plan_regular
from glasslet.pods.planner.resizing import plan_resize
from glasslet.pods.planner.sandbox import may_have_new_sandbox, plan_sandbox, sandbox_need
from glasslet.pods.planner.shapes import Plan, PlanInput


def plan(given: PlanInput) -> Plan:
    """The plan for a pod that is to run. Equal inputs give equal plans."""
    deadline = given.pod.spec.active_deadline_seconds
    due = moment_after(given.started_at, deadline) if deadline is not None and given.started_at else None
    if due is not None and due <= given.now:
        return Plan(past_deadline=True)
    found = _plan_stage(given)
    if due is not None and not found.ended and (found.next_at is None or due < found.next_at):
        found = replace(found, next_at=due)
    return found


def _plan_stage(given: PlanInput) -> Plan:
    draft = Draft(given)
    if (need := sandbox_need(given)) is not None:
        if not may_have_new_sandbox(given):
            return Plan(ended=True)
        plan_sandbox(given, need, draft)
        return draft.plan()
    plan_ephemeral(given, draft)
    progress = plan_init(given, draft)
    if given.actuated:
        plan_resize(given, draft)
    if progress is Progress.FAILED:
        return Plan(ended=True)
    if progress is Progress.DONE and not plan_regular(given, draft):
        return Plan(ended=True)
    return draft.plan()
