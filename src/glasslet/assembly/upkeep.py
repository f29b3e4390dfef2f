"""Builds the upkeep of pods beside their workers: garbage collection, orphans, figures of volumes, the watch for stuck
pods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import partial

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_ref import PodRef
from glasslet.assembly.dra import claim_services
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.platform import Platform
from glasslet.assembly.pod_parts import PodParts, log_layout
from glasslet.assembly.runtime import RuntimeSide
from glasslet.assembly.volumes import build_claim_usage
from glasslet.glass.stuck_watch import StuckWatch
from glasslet.host.mounts.table import read_mount_table
from glasslet.pods.census import PodCensus
from glasslet.pods.upkeep.housekeeping import Housekeeping
from glasslet.pods.upkeep.orphan_folders import OrphanFolders
from glasslet.pods.upkeep.remains import Remains
from glasslet.pods.wakes import PodWakes
from glasslet.pods.workers import PodWorkers
from glasslet.record.stations import WaitKind
from glasslet.resources.orphan_cgroups import OrphanCgroups
from glasslet.runtime.garbage import DeadContainerLimits, GarbageCollector, LogFolders
from glasslet.runtime.garbage.image_rules import ImageLimits, image_names
from glasslet.runtime.garbage.images import ImageCollector, InUse, image_disk
from glasslet.runtime.garbage.reporting import CollectionReporting
from glasslet.stats.disks.log_usage import LogUsage

Services = Mapping[str, Callable[[], Awaitable[None]]]


class Upkeep(Struct, frozen=True, kw_only=True):
    """`services` holds all of it; the other fields are the parts that other rooms read."""

    housekeeping: Housekeeping
    garbage: GarbageCollector
    image_garbage: ImageCollector
    progress: StuckWatch
    services: Services


def build_upkeep(
    platform: Platform, parts: PodParts, census: PodCensus, workers: PodWorkers, wakes: PodWakes
) -> Upkeep:
    """Built after workers and sources, which it reads."""
    foundation, runtime, cgroups = platform.foundation, platform.runtime, parts.cgroups
    remains = Remains(
        census=census, desired=platform.desired, observed=runtime.observed, mounted=partial(_holds_mounts, foundation)
    )
    housekeeping = Housekeeping(observed=runtime.observed, remains=remains, stop=workers.stop_orphan)
    images = build_image_collection(foundation, runtime, census.syncing)
    progress = StuckWatch(
        workers=census, record=foundation.record, clock=foundation.clock, held=foundation.holds.held_seconds
    )
    report = CollectionReporting(recorder=foundation.record, clock=foundation.clock, events=foundation.events.node)
    garbage = GarbageCollector(
        runtime=runtime.connection.runtime,
        observed=runtime.observed,
        pods=remains,
        logs=parts.files,
        folders=LogFolders(log_layout(foundation)),
        report=report,
        limits=_limits(foundation),
    )
    folders = OrphanFolders(
        folders=parts.files,
        pods=remains,
        stop=workers.stop_orphan,
        recorder=foundation.record,
        swept=foundation.metrics.pod_workers.folders_swept,
    )
    services = {
        **cgroups.services,
        **claim_services(platform.dra, remains, wakes, foundation.record),
        "housekeeping": housekeeping.run,
        "garbage collection": garbage.run,
        "image garbage collection": images.run,
        "progress of pods": progress.run,
        "figures of claims": build_claim_usage(
            foundation, parts.volumes, census.snapshot, parts.volumes_of_drivers.figures
        ).run,
        "orphaned pod folders": folders.run,
        "sizes of container logs": _log_usage(foundation, runtime).run,
    }
    if cgroups.owned is not None:
        services["orphaned cgroups"] = OrphanCgroups(cgroups=cgroups.owned, pods=remains).run
    return Upkeep(
        housekeeping=housekeeping, garbage=garbage, image_garbage=images, progress=progress, services=services
    )


def _log_usage(foundation: Foundation, runtime: RuntimeSide) -> LogUsage:
    def containers() -> Iterator[tuple[PodRef, str]]:
        for pod in runtime.observed.all():
            ref = PodRef(pod.namespace, pod.name, pod.uid)
            yield from ((ref, name) for name in {container.name for container in pod.containers})

    usage = LogUsage(containers=containers, logs=log_layout(foundation), threads=foundation.threads)
    foundation.metrics.count_log_sizes(usage.figures)
    return usage


async def _holds_mounts(foundation: Foundation, uid: PodUID) -> bool:
    table = await foundation.threads.run(read_mount_table, on="mount table", kind=WaitKind.CGROUP)
    return bool(table.at_or_below(foundation.root.pod(uid)))


def _limits(foundation: Foundation) -> DeadContainerLimits:
    options = foundation.options
    return DeadContainerLimits(
        per_container=options.maximum_dead_containers_per_container,
        total=options.maximum_dead_containers,
        minimum_age=timedelta(seconds=options.minimum_container_ttl_duration),
    )


def build_image_collection(
    foundation: Foundation, runtime: RuntimeSide, pods: Callable[[], Iterable[Pod]]
) -> ImageCollector:
    """`pods`: those that are to run; their images are in use even before a container exists."""
    configuration = foundation.configuration
    images = runtime.connection.images
    return ImageCollector(
        images=images,
        in_use=InUse(
            synced=runtime.observed.synced,
            pods=runtime.observed.all,
            names=lambda: image_names(pods()),
            sandbox_image=runtime.connection.runtime.sandbox_image,
        ),
        disk=partial(image_disk, images, foundation.threads),
        limits=ImageLimits(
            high_percent=configuration.image_gc_high_threshold_percent,
            low_percent=configuration.image_gc_low_threshold_percent,
            minimum_age=timedelta(seconds=configuration.image_minimum_gc_age),
            maximum_age=timedelta(seconds=configuration.image_maximum_gc_age),
            by_handler=foundation.loaded.gates.enabled("RuntimeClassInImageCriApi"),
        ),
        metrics=foundation.metrics.images,
        report=CollectionReporting(recorder=foundation.record, clock=foundation.clock, events=foundation.events.node),
        collected=runtime.verification.prune if runtime.verification is not None else None,
    )
