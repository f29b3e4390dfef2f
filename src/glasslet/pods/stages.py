"""What all workers have their pods' work done by: one object for each stage of a pod's life."""

from __future__ import annotations

from dataclasses import dataclass

from glasslet.pods.assembly import PodServices, build_executor
from glasslet.pods.collaborators import ProbeOutcomes
from glasslet.pods.reporting import Reporting
from glasslet.pods.settings import WorkerSettings
from glasslet.pods.status.last_words import LastWords
from glasslet.pods.sync import PodSync
from glasslet.pods.upkeep.refresh import VolumeRefresher
from glasslet.pods.way_out import WayOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Shared by all workers; what they remember of a pod is in its `PodMemory`."""

    sync: PodSync
    refresher: VolumeRefresher
    way_out: WayOut


def build_stages(services: PodServices, probes: ProbeOutcomes, report: Reporting, settings: WorkerSettings) -> Stages:
    """All of them, on one executor."""
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
        way_out=WayOut(executor=executor, observed=observed, last_words=last_words, report=report),
    )
