"""A plan as plain data: its actions, each with the reasons for it. Pure."""

from __future__ import annotations

from typing import Any

from glasslet.glass.inspection.plain import camel, plain
from glasslet.pods.memory import Planned
from glasslet.pods.planner import Action, StartContainer


def plan_tree(planned: Planned | None) -> dict[str, Any]:
    """The plan; empty before the first one."""
    if planned is None:
        return {}
    plan = planned.plan
    return {
        "madeAt": plain(planned.at),
        "actions": [
            {**_action(action), "because": [plain(reason) for reason in reasons]}
            for action, reasons in zip(plan.actions, plan.reasons, strict=True)
        ],
        "waits": plain(plan.waits),
        "nextAt": plain(plan.next_at),
        "ended": plan.ended,
        "pastDeadline": plan.past_deadline,
    }


def _action(action: Action) -> dict[str, Any]:
    fields = {camel(name): getattr(action, name) for name in action.__struct_fields__}
    if isinstance(action, StartContainer):
        fields["container"] = action.name
    elif "name" in fields:
        fields["container"] = fields.pop("name")
    return {"action": type(action).__name__, **{name: plain(value) for name, value in fields.items()}}
