"""A plan in the making."""

from __future__ import annotations

from datetime import datetime

from glasslet.exchange.facts import Waiting
from glasslet.pods.planner.actions import Action, CreateSandbox, KillContainer, PreparePod, StartContainer
from glasslet.pods.planner.reasons import Reason, Reasons, tipped
from glasslet.pods.planner.shapes import POD_LEVEL, Plan, PlanInput, PlannedWait
from glasslet.record.stations import WaitKind

_Chosen = tuple[Action, Reasons]


class Draft:
    """Collects the actions and waits of the planner's stages. Kills come before everything else."""

    def __init__(self, given: PlanInput) -> None:
        self._given = given
        self._kills: list[_Chosen] = []
        self._first: list[_Chosen] = []
        self._actions: list[_Chosen] = []
        self._waiting: dict[str, Waiting] = {}
        self._waits: list[PlannedWait] = []
        self._next_at: datetime | None = None

    def do(self, action: Action, *reasons: Reason) -> None:
        """Adds an action, with the reasons for it."""
        (self._kills if isinstance(action, KillContainer) else self._actions).append((action, reasons))

    def do_first(self, action: Action, *reasons: Reason) -> None:
        """Adds an action that comes before all others but kills."""
        self._first.append((action, reasons))

    def wait(self, wait: PlannedWait, reason: Waiting | None = None) -> None:
        """Notes a wait; if it has an end, the plan may change then."""
        self._waits.append(wait)
        if wait.until is not None:
            self.may_change_at(wait.until)
        if reason is not None:
            self._waiting[wait.container] = reason

    def may_change_at(self, moment: datetime) -> None:
        """The plan could change at this time."""
        if self._next_at is None or moment < self._next_at:
            self._next_at = moment

    def held(self, key: str) -> bool:
        """Whether an earlier failure holds this step back; then the wait is noted."""
        hold = self._given.holds.get(key)
        if hold is None or hold.over(self._given.now):
            return False
        self.wait(PlannedWait(kind=WaitKind.BACK_OFF, on=hold.why, container=key, until=hold.until))
        return True

    def plan(self) -> Plan:
        """The plan. Preparation is put before the first action that needs it, or all of those wait for it."""
        actions = self._actions
        first = next((i for i, (a, _) in enumerate(actions) if isinstance(a, CreateSandbox | StartContainer)), None)
        if first is not None and (self._given.cgroup_lost or not self._given.prepared):
            why = tipped("cgroup", "is gone") if self._given.prepared else tipped("prepared", "not yet by this agent")
            rest = [] if self.held(POD_LEVEL) else [(PreparePod(), (why,)), *actions[first:]]
            actions = [*actions[:first], *rest]
        chosen = (*self._kills, *self._first, *actions)
        return Plan(
            actions=tuple([action for action, _ in chosen]),
            reasons=tuple([reasons for _, reasons in chosen]),
            waiting=self._waiting,
            waits=tuple(self._waits),
            next_at=self._next_at,
        )
