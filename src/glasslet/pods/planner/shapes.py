"""The planner's input and its result."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from glasslet.api.container import ResourceRequirements
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.exchange.facts import ProbeOutcome, Waiting
from glasslet.pods.backoff import BackOffLimits, BackOffs
from glasslet.pods.planner.actions import Action
from glasslet.pods.planner.reasons import Reasons
from glasslet.record.stations import WaitKind
from glasslet.runtime.model import ObservedPod

POD_LEVEL = ""
"""The key of holds that concern the pod itself: volumes, cgroup, sandbox."""


RESIZE = "resize of the pod"
"""The key by which a failed resize is held back."""


class HoldBack(Struct, frozen=True, kw_only=True):
    """A step that failed is not tried again before `until`; `why` in words. `since`: when it failed, if known."""

    until: datetime
    why: str
    since: datetime | None = None

    def over(self, now: datetime) -> bool:
        """Whether it may be tried again. So it may where the clock was set back, instead of hours later."""
        return self.until <= now or (self.since is not None and now < self.since)


class PlanInput(Struct, frozen=True, kw_only=True):
    """`now` is wall time, aware. `holds` by container name or POD_LEVEL. `unstartable`: created instances that this
    agent failed to start. `prepared`: volumes, directories and cgroup are there. `sandbox_attempt_from`: attempts below
    are known to be taken. `started_at`: status.startTime. `cgroup_lost`: the pod's cgroup is not there. `actuated`:
    what running containers were last given, by name."""

    pod: Pod
    now: datetime
    observed: ObservedPod | None = None
    probes: Mapping[ContainerID, ProbeOutcome] = {}
    back_offs: BackOffs = {}
    limits: BackOffLimits = BackOffLimits()
    holds: Mapping[str, HoldBack] = {}
    unstartable: frozenset[ContainerID] = frozenset()
    prepared: bool = False
    sandbox_attempt_from: int = 0
    started_at: datetime | None = None
    cgroup_lost: bool = False
    actuated: Mapping[str, ResourceRequirements] = {}


class PlannedWait(Struct, frozen=True, kw_only=True):
    """A wait of the pod once the actions are done."""

    kind: WaitKind
    on: str
    container: str = ""
    until: datetime | None = None


class Plan(Struct, frozen=True, kw_only=True):
    """`waiting`: reasons by container name that the planner itself knows (CrashLoopBackOff). `next_at`: the earliest
    time at which the plan could change by itself. `ended`: nothing runs that would have to, and nothing will be started
    again. `past_deadline`: activeDeadlineSeconds passed. `reasons`: of each action, in the same order."""

    actions: tuple[Action, ...] = ()
    reasons: tuple[Reasons, ...] = ()
    waiting: Mapping[str, Waiting] = {}
    waits: tuple[PlannedWait, ...] = ()
    next_at: datetime | None = None
    ended: bool = False
    past_deadline: bool = False
