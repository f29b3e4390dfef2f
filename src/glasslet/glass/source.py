"""The facts that the answers under /glass are made from, beside the record. The assembly fills them in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from glasslet.answers.agent import AgentAnswer, ManifestProblem
from glasslet.answers.eviction import EvictionAnswer
from glasslet.answers.images import ImagesAnswer
from glasslet.answers.pods import Hold
from glasslet.answers.requests import ExecRequest, LogRequest
from glasslet.answers.resources import ResourcesAnswer
from glasslet.answers.states import WorkerState
from glasslet.answers.volumes import VolumesAnswer
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.api.pod_status import PodStatus
from glasslet.glass.host_look import HostLook
from glasslet.glass.stuck import Stuck
from glasslet.glass.verdicts.node_rules import NodeSituation
from glasslet.probes.results import ProbeResult
from glasslet.runtime.images.progress_watch import PullView
from glasslet.runtime.observed import ObservedPods, RuntimeConditions
from glasslet.sources.desired import DesiredPods
from glasslet.sources.manifest import Problem


class SeenPod(Protocol):
    """A pod as its worker sees it (`census.PodView`). `source`: where it came from (`file`, `http`, `api`)."""

    @property
    def pod(self) -> Pod: ...
    @property
    def status(self) -> PodStatus: ...
    @property
    def lifecycle(self) -> WorkerState: ...
    @property
    def since(self) -> datetime: ...
    @property
    def source(self) -> str: ...


async def _no_outlook(_signal: str) -> EvictionAnswer:
    return EvictionAnswer(problem="this agent does not measure its node")


async def _no_volumes() -> VolumesAnswer:
    return VolumesAnswer(problem="this agent does not list volumes")


async def _no_images() -> ImagesAnswer:
    return ImagesAnswer(problem="this agent does not collect images")


def _no_resources() -> ResourcesAnswer:
    return ResourcesAnswer(problem="this agent gives out no CPUs or memory")


class GlassSource(Struct, frozen=True, kw_only=True):
    """Functions that read the agent. Only `read_logs`, `exec_url`, `outlook`, `images` and `volumes` do
    I/O."""

    pods: Callable[[], Sequence[SeenPod]]
    """Every pod that has a worker."""
    agent: Callable[[], AgentAnswer]
    """The agent itself; the handlers add `findings` and `record`."""
    node: Callable[[], NodeSituation]
    probes: Callable[[PodRef], Iterable[ProbeResult]]
    """The last results of the pod's probes, each probe's oldest first."""
    stuck: Callable[[PodUID], Stuck | None]
    """The action or call that keeps the pod from making progress."""
    pulls: Callable[[PodUID], Mapping[str, PullView]]
    """The pulls that the pod's containers wait for, by container."""
    hold_of: Callable[[PodUID], Hold | None]
    """The stop at which the pod is held."""
    look: HostLook
    """What the machine shows of a pod that waits. Blocking."""
    read_logs: Callable[[Pod, LogRequest], AsyncIterator[bytes]]
    """The log of one container (its name is set; the pod carries its status). Raises LogsNotAvailable, RuntimeCallError
    or OSError."""
    exec_url: Callable[[Pod, ExecRequest], Awaitable[str]]
    """The runtime's streaming URL of one command. Raises RequestRefused or RuntimeCallError."""
    outlook: Callable[[str], Awaitable[EvictionAnswer]] = _no_outlook
    """What eviction would do now, for one signal or ("") the most urgent."""
    images: Callable[[], Awaitable[ImagesAnswer]] = _no_images
    """The images, and what garbage collection would do with them."""
    resources: Callable[[], ResourcesAnswer] = _no_resources
    """How the machine is built, and who has which CPUs and memory."""
    volumes: Callable[[], Awaitable[VolumesAnswer]] = _no_volumes
    """The volumes as they are on disk."""


class AgentFacts(Struct, frozen=True, kw_only=True):
    """Describes the agent. `fixed` holds what does not change while it runs."""

    fixed: AgentAnswer
    conditions: RuntimeConditions
    observed: ObservedPods
    desired: DesiredPods
    broken_manifests: Callable[[], Iterable[Problem]]

    def __call__(self) -> AgentAnswer:
        """The agent as it is now."""
        runtime_error, network_error = self.conditions.runtime_error(), self.conditions.network_error()
        return replace(
            self.fixed,
            runtime_error=runtime_error or "",
            network_error=network_error or "",
            ready=not runtime_error and not network_error and self.desired.ready(),
            desired_pods=len(self.desired.all()),
            runtime_pods=len(self.observed.all()),
            broken_manifests=tuple(
                ManifestProblem(file=part.place, message=part.message, line=part.line)
                for problem in self.broken_manifests()
                for part in problem.parts or (problem,)
            ),
        )
