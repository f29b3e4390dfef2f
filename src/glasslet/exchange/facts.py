"""The facts of a pod's status: gathered by the pod's worker, turned into a PodStatus by `status.builder`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from glasslet.api.container import ResourceRequirements
from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.pod_status import PodStatus
from glasslet.runtime.model import ObservedPod

EVICTED: Final = "Evicted"
"""The reason of a pod that was evicted, or refused because the node is under pressure."""


class Waiting(Struct, frozen=True, kw_only=True):
    """Why a container does not run: the CamelCase reason and the message that the API shows."""

    reason: str
    message: str = ""


class StatusOverride(Struct, frozen=True, kw_only=True):
    """A decision about the whole pod that overrides what containers say (DeadlineExceeded, Evicted, a rejection)."""

    phase: str
    reason: str
    message: str = ""
    rejected: bool = False
    """The pod never was admitted: its status says nothing but that."""
    disruption: str = ""
    """Message of the condition DisruptionTarget, for a pod that the agent ends for the sake of others."""


class ProbeOutcome(Struct, frozen=True, kw_only=True):
    """The probe results of one container instance; None for a probe that does not exist or has no result yet."""

    started: bool | None = None
    ready: bool | None = None
    alive: bool | None = None


class Resizing(Struct, frozen=True, kw_only=True):
    """How far a pod is from what its spec wants. `actuated`: what instances were last given, by container; `pending`:
    Deferred or Infeasible, with the generation that was checked; `accepted_generation` is None unless a resize is
    being carried out, `error` why the last try of that failed."""

    actuated: Mapping[str, ResourceRequirements] = {}
    pending: str = ""
    pending_message: str = ""
    pending_generation: int = 0
    accepted_generation: int | None = None
    error: str = ""


class StatusFacts(Struct, frozen=True, kw_only=True):
    """`waiting` is by container name and holds the last start failure or back-off; `probes` by container instance.
    `observed` is None before the runtime knew the pod. `termination_messages` holds what containers left in their
    termination message file (or log), by instance. `finished`: all containers have ended for good."""

    pod: Pod
    now: datetime
    observed: ObservedPod | None = None
    previous: PodStatus = PodStatus()
    waiting: Mapping[str, Waiting] = {}
    probes: Mapping[ContainerID, ProbeOutcome] = {}
    termination_messages: Mapping[ContainerID, str] = {}
    verdict: StatusOverride | None = None
    terminating: bool = False
    finished: bool = False
    host_ips: tuple[str, ...] = ()
    resizing: Resizing = Resizing()
