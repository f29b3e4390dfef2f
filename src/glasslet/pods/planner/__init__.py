"""Plans the next actions for a pod that is to run: pure, from frozen values to idempotent actions.

    plan(PlanInput) -> Plan

One plan is one stage: a sandbox, or an init step, or the regular containers. After its actions the worker reads the
runtime again and makes the next plan, until there is nothing to do; then it rests until `next_at` or news.
"""

from glasslet.pods.planner.actions import (
    Action,
    CreateSandbox,
    KillContainer,
    PreparePod,
    RemoveContainer,
    ResizePod,
    Role,
    StartContainer,
    StopOldSandbox,
)
from glasslet.pods.planner.planner import plan
from glasslet.pods.planner.shapes import POD_LEVEL, HoldBack, Plan, PlanInput, PlannedWait

__all__ = [
    "POD_LEVEL",
    "Action",
    "CreateSandbox",
    "HoldBack",
    "KillContainer",
    "Plan",
    "PlanInput",
    "PlannedWait",
    "PreparePod",
    "RemoveContainer",
    "ResizePod",
    "Role",
    "StartContainer",
    "StopOldSandbox",
    "plan",
]
