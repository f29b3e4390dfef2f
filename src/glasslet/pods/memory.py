"""The memory of one pod between the steps of its worker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct, field

from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef, pod_ref
from glasslet.exchange.facts import Waiting
from glasslet.exchange.volume import MountedVolume
from glasslet.pods.backoff import BackOffs
from glasslet.pods.planner import POD_LEVEL, HoldBack, Plan
from glasslet.record.standing import StandingFinding
from glasslet.runtime.spec import SandboxSpec


class Planned(NamedTuple):
    """A plan, and when it was made."""

    plan: Plan
    at: datetime


class PodMemory(Struct):
    """What the agent knows of a pod beyond the runtime. All of it may be lost: a restarted agent begins without."""

    pod: Pod
    planned: Planned | None = None
    """The last plan."""
    known: bool = False
    """The pod was read from the runtime since this worker began."""
    volumes: Mapping[str, MountedVolume] | None = None
    """None: not prepared."""
    refreshed_at: float | None = None
    """Monotonic time at which the volumes were last made or brought up to date by this agent."""
    refreshed_for: Pod | None = None
    """The pod as it was then."""
    stale: bool = False
    """Something that the volumes were made from has changed since."""
    cgroup_parent: str = ""
    start_failures: dict[str, Waiting] = field(default_factory=dict)
    holds: dict[str, HoldBack] = field(default_factory=dict)
    unstartable: frozenset[ContainerID] = frozenset()
    back_offs: BackOffs = field(default_factory=dict)
    sandbox_attempt_from: int = 0
    sandbox: tuple[Pod, SandboxSpec] | None = None
    """The last specification and the pod it was made from."""
    pod_failures: int = 0
    """Failures of pod-level steps in a row."""
    images: list[tuple[float, float]] | None = field(default_factory=list)
    """When images were fetched or found, in monotonic seconds; None once the pod's start is counted."""
    stalled: str = ""
    """The finding that acting changed nothing, while it stands."""
    left_out_of_dns: tuple[str, ...] = ()
    """The findings about the DNS configuration of its sandbox."""
    resize_error: str = ""
    """Why the last try to resize failed."""
    termination_messages: dict[ContainerID, str] = field(default_factory=dict)
    unread: dict[ContainerID, StandingFinding] = field(default_factory=dict)
    """Findings that an ended container's message could not be read."""
    unlinked: dict[str, StandingFinding] = field(default_factory=dict)
    """Findings that the log of a container's newest instance has no link."""

    @property
    def ref(self) -> PodRef:
        """The pod's identity."""
        return pod_ref(self.pod)

    def went_well(self, key: str) -> None:
        """A step of this container (or POD_LEVEL) succeeded: earlier failures are forgotten."""
        self.holds.pop(key, None)
        self.start_failures.pop(key, None)
        if key == POD_LEVEL:
            self.pod_failures = 0
