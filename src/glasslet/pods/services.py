"""Everything that a pod's work touches, and the stages of a pod's life built on it: shared by all workers."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from glasslet.api.object import ContainerID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import pod_ref
from glasslet.exchange.claims import NoDeviceClaims
from glasslet.exchange.shares import WholeMachine
from glasslet.pods.backoff import BackOffLimits
from glasslet.pods.collaborators import (
    Cgroups,
    ConfigurationData,
    Devices,
    FilesOfPods,
    Images,
    Observed,
    PodVolumes,
    ProbeOutcomes,
    ResourceClaims,
    RuntimeHandlers,
    Shares,
)
from glasslet.pods.executor import Executor, Verbs
from glasslet.pods.reporting import Reporting
from glasslet.pods.resize.allocations import Allocations
from glasslet.pods.resize.resizer import MemoryInUse, PodResizer
from glasslet.pods.runtime_handlers import PodRuntimeHandlers
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.status.last_words import LastWords
from glasslet.pods.sync import PodSync
from glasslet.pods.teardown import PodTeardown
from glasslet.pods.upkeep.refresh import VolumeRefresher
from glasslet.pods.verbs.create_sandbox import SandboxCreator
from glasslet.pods.verbs.hooks import HookRunner
from glasslet.pods.verbs.kill_container import ContainerKiller
from glasslet.pods.verbs.make_container import ContainerMaker
from glasslet.pods.verbs.post_start import PostStart
from glasslet.pods.verbs.prepare_pod import PodPreparer
from glasslet.pods.verbs.remove_pod import PodRemover
from glasslet.pods.verbs.start_container import ContainerStarter
from glasslet.pods.verbs.stop_pod import PodStopper
from glasslet.podspec.request import NodeFacts
from glasslet.runtime.protocols import RuntimeService


def default_handlers() -> RuntimeHandlers:
    """No classes, and a runtime that says nothing of its handlers."""
    return PodRuntimeHandlers(classes=None, handlers=tuple, ids=None)


async def _untold(_container: ContainerID) -> None:
    """For runtimes without statistics."""


class PodServices(Struct, frozen=True, kw_only=True):
    """Everything that a pod's work touches."""

    runtime: RuntimeService
    observed: Observed
    images: Images
    volumes: PodVolumes
    files: FilesOfPods
    cgroups: Cgroups
    node: Callable[[], NodeFacts]
    data: ConfigurationData
    devices: Devices
    shares: Shares = field(default_factory=WholeMachine)
    claims: ResourceClaims = field(default_factory=NoDeviceClaims)
    handlers: RuntimeHandlers = field(default_factory=default_handlers)
    network_error: Callable[[], str | None] = lambda: None
    """Why pods of the pod network cannot be started now. The workers are woken when it changes."""
    allocations: Allocations = field(default_factory=Allocations)
    memory_in_use: MemoryInUse = _untold
    cgroup_lost: Callable[[Pod], bool] = lambda pod: False
    """Whether the cgroup that the pod should have is not there."""


def build_executor(services: PodServices, report: Reporting, limits: BackOffLimits) -> Executor:
    """The executor with all verbs."""
    runtime, observed, files, node = services.runtime, services.observed, services.files, services.node

    def pod_ip(pod: Pod) -> str:
        sandbox = found.ready_sandbox() if (found := observed.get(pod_ref(pod).uid)) else None
        ips = node().host_ips if pod.spec.host_network else sandbox.ips if sandbox else ()
        return ips[0] if ips else ""

    hooks = HookRunner(runtime=runtime, recorder=report.recorder, pod_ip=pod_ip, metrics=report.work)
    killer = ContainerKiller(runtime=runtime, observed=observed, hooks=hooks, report=report)
    sandboxes = SandboxCreator(
        runtime=runtime,
        observed=observed,
        node=node,
        handlers=services.handlers,
        shares=services.shares,
        claims=services.claims,
        network_error=services.network_error,
        report=report,
    )
    verbs = Verbs(
        preparer=PodPreparer(
            volumes=services.volumes,
            data=services.data,
            files=files,
            cgroups=services.cgroups,
            handlers=services.handlers,
            report=report,
        ),
        sandboxes=sandboxes,
        starter=_starter(services, report, sandboxes, PostStart(hooks=hooks, killer=killer, report=report)),
        killer=killer,
        stopper=PodStopper(runtime=runtime, observed=observed, killer=killer, report=report),
        remover=PodRemover(runtime=runtime, observed=observed, files=files, report=report),
        resizer=PodResizer(
            runtime=runtime,
            observed=observed,
            cgroups=services.cgroups,
            allocations=services.allocations,
            in_use=services.memory_in_use,
            node=node,
            shares=services.shares,
            report=report,
        ),
    )
    return Executor(verbs=verbs, limits=limits, clock=report.clock, metrics=report.work)


def _starter(
    services: PodServices, report: Reporting, sandboxes: SandboxCreator, post_start: PostStart
) -> ContainerStarter:
    maker = ContainerMaker(
        runtime=services.runtime,
        observed=services.observed,
        images=services.images,
        data=services.data,
        devices=services.devices,
        shares=services.shares,
        claims=services.claims,
        volumes=services.volumes,
        files=services.files,
        sandboxes=sandboxes,
        node=services.node,
        report=report,
    )
    return ContainerStarter(
        runtime=services.runtime,
        observed=services.observed,
        maker=maker,
        post_start=post_start,
        files=services.files,
        allocations=services.allocations,
        report=report,
    )


class Stages(Struct, frozen=True, kw_only=True):
    """One object for each stage of a pod's life; what they remember of a pod is in its `PodMemory`."""

    sync: PodSync
    refresher: VolumeRefresher
    teardown: PodTeardown


def build_stages(services: PodServices, probes: ProbeOutcomes, report: Reporting, settings: WorkerSettings) -> Stages:
    """All stages, on one executor."""
    executor, observed = build_executor(services, report, settings.limits), services.observed
    last_words = LastWords(files=services.files, recorder=report.recorder)
    sync = PodSync(
        executor=executor,
        observed=observed,
        probes=probes,
        last_words=last_words,
        report=report,
        settings=settings,
        cgroup_lost=services.cgroup_lost,
        allocations=services.allocations,
    )
    return Stages(
        sync=sync,
        refresher=VolumeRefresher(executor=executor, observed=observed, every=settings.sync_frequency),
        teardown=PodTeardown(
            executor=executor, observed=observed, last_words=last_words, claims=services.claims, report=report
        ),
    )
