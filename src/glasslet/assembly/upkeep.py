"""What looks after the node's pods beside their workers: garbage, orphans, figures, an eye on progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from glasslet.answers.states import WorkerState
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.images import build_image_collection
from glasslet.assembly.known_pods import KnownPods
from glasslet.assembly.pod_files import log_layout
from glasslet.assembly.pod_news import PodNews
from glasslet.assembly.pod_parts import PodParts
from glasslet.assembly.sides import Sides
from glasslet.assembly.volumes import build_claim_usage
from glasslet.glass.stuck_watch import ProgressWatch
from glasslet.pods.upkeep.orphan_folders import OrphanFolders
from glasslet.pods.upkeep.remains import Remains
from glasslet.resources.orphan_cgroups import OrphanCgroups
from glasslet.runtime.garbage import GarbageCollector, Limits, LogFolders
from glasslet.runtime.garbage.images import ImageCollector
from glasslet.runtime.garbage.reporting import CollectionReporting

Services = Mapping[str, Callable[[], Awaitable[None]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """`services` holds everything that runs, also what others need to ask (the other fields)."""

    garbage: GarbageCollector
    image_garbage: ImageCollector
    progress: ProgressWatch
    services: Services


def build_upkeep(sides: Sides, parts: PodParts, news: PodNews) -> Upkeep:
    """Works on what workers and sources know, so it comes after them."""
    foundation, runtime, cgroups = sides.foundation, sides.runtime, parts.cgroups
    desired, workers = news.desired, news.workers
    images = build_image_collection(
        foundation, runtime, lambda: [view.pod for view in workers.snapshot() if view.lifecycle is WorkerState.SYNCING]
    )
    progress = ProgressWatch(workers=workers, record=foundation.record, clock=foundation.clock)
    report = CollectionReporting(recorder=foundation.record, clock=foundation.clock, events=foundation.events.node)
    known = KnownPods(foundation=foundation, observed=runtime.observed, desired=desired, workers=workers)
    garbage = GarbageCollector(
        runtime=runtime.connection.runtime,
        observed=runtime.observed,
        pods=Remains(workers=workers, sources_ready=desired.ready),
        logs=parts.files,
        folders=LogFolders(log_layout(foundation)),
        report=report,
        limits=_limits(foundation),
    )
    folders = OrphanFolders(
        folders=parts.files,
        pods=known,
        workers=workers,
        recorder=foundation.record,
        swept=foundation.metrics.pod_workers.folders_swept,
    )
    services = {
        **cgroups.services,
        "housekeeping": news.housekeeping.run,
        "garbage collection": garbage.run,
        "image garbage collection": images.run,
        "progress of pods": progress.run,
        "figures of claims": build_claim_usage(foundation, parts.volumes, workers.snapshot).run,
        "orphaned pod folders": folders.run,
    }
    if cgroups.owned is not None:
        services["orphaned cgroups"] = OrphanCgroups(cgroups=cgroups.owned, pods=known).run
    return Upkeep(garbage=garbage, image_garbage=images, progress=progress, services=services)


def _limits(foundation: Foundation) -> Limits:
    options = foundation.options
    return Limits(
        per_container=options.maximum_dead_containers_per_container,
        total=options.maximum_dead_containers,
        minimum_age=timedelta(seconds=options.minimum_container_ttl_duration),
    )
