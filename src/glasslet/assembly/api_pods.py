"""Pods of the API server and mirrors of static ones: what is built for them on top of workers and desired pods."""

from __future__ import annotations

from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.pod_news import PodNews
from glasslet.mirror.manager import MirrorPods, MirrorViews
from glasslet.mirror.plan import FullName, full_name
from glasslet.pods.workers import PodWorkers
from glasslet.sources.api import APISource
from glasslet.sources.desired import DesiredPods


def build_api_source(foundation: Foundation, cluster: ClusterSide, news: PodNews) -> APISource:
    """The watch of this node's pods."""
    return APISource(
        client=cluster.clients.requests,
        node_name=foundation.node_name,
        deliver=news.listed,
        on_change=news.changed,
        recorder=foundation.record,
        wait_for_node=cluster.node.wait_registered,
    )


def build_mirrors(
    foundation: Foundation, cluster: ClusterSide, *, source: APISource, desired: DesiredPods, workers: PodWorkers
) -> MirrorPods:
    """Mirrors of what is desired, kept while a pod that is not desired any more is still being stopped."""

    def static() -> list[Pod]:
        return [pod for pod in desired.all() if is_static(pod)]

    def stopping() -> set[FullName]:
        return {full_name(pod) for pod in workers.ending() if is_static(pod)}

    return MirrorPods(
        client=cluster.clients.requests,
        node=lambda: cluster.node.known.node,
        views=MirrorViews(static=static, mirrors=source.mirrors, stopping=stopping, complete=desired.ready),
        recorder=foundation.record,
    )
