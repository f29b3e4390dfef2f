"""Builds the sources of pods: folder, URL and API server, with mirrors of static pods and the last known API pods."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.api.pod_origin import is_static
from glasslet.api.pod_update import PodUpdate
from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.foundation import Foundation
from glasslet.kubeapi.objects.services import Services
from glasslet.mirror.manager import MirrorPods, MirrorViews
from glasslet.mirror.plan import FullName, full_name
from glasslet.pods.census import PodCensus
from glasslet.sources.api import APISource
from glasslet.sources.desired import DesiredPods
from glasslet.sources.file import FileSource, FileSourceConfig
from glasslet.sources.last_known import VERSION, LastKnown, LastKnownPods, needed_by, remembers_api_pods
from glasslet.sources.manifest import ManifestReader
from glasslet.sources.names import API, FILE, HTTP
from glasslet.sources.url import URLSource, URLSourceConfig


def source_kinds(foundation: Foundation) -> list[str]:
    """The sources that must report before anything is cleaned up."""
    configuration = foundation.configuration
    there = {
        FILE: configuration.static_pod_path,
        HTTP: configuration.static_pod_url,
        API: foundation.clients is not None,
    }
    return [kind for kind, given in there.items() if given]


def build_desired(foundation: Foundation) -> DesiredPods:
    """The desired pods of all sources. Built before what works on them; the intake of pods subscribes to it."""
    return DesiredPods(
        sources=source_kinds(foundation),
        clock=foundation.clock,
        recorder=foundation.record,
        events=foundation.events.pod,
    )


def build_static_sources(foundation: Foundation, desired: DesiredPods) -> tuple[FileSource | URLSource, ...]:
    """The sources that the configuration names; they deliver into `desired`."""
    configuration = foundation.configuration
    reader = ManifestReader(
        node_name=foundation.node_name,
        prevent_api_references=foundation.loaded.gates.enabled("PreventStaticPodAPIReferences"),
    )
    sources: list[FileSource | URLSource] = []
    if configuration.static_pod_path:
        config = FileSourceConfig(
            paths=(configuration.static_pod_path,), check_seconds=configuration.file_check_frequency
        )
        deliver = partial(desired.update_source, FILE)
        sources.append(FileSource(config=config, reader=reader, deliver=deliver, recorder=foundation.record))
    if configuration.static_pod_url:
        url = URLSourceConfig(
            url=configuration.static_pod_url,
            headers=configuration.static_pod_url_header,
            check_seconds=configuration.http_check_frequency,
        )
        deliver = partial(desired.update_source, HTTP)
        sources.append(URLSource(config=url, reader=reader, deliver=deliver, recorder=foundation.record))
    return tuple(sources)


class APIPods(Struct, frozen=True, kw_only=True):
    """The parts for pods of the API server. `last_known` is None unless it is switched on."""

    source: APISource
    mirrors: MirrorPods
    last_known: LastKnownPods | None

    @property
    def services(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """The services of these parts."""
        services: dict[str, Callable[[], Awaitable[None]]] = {
            "source API": self.source.run,
            "mirror pods": self.mirrors.run,
        }
        if self.last_known is not None:
            services["last known pods"] = self.last_known.run
        return services

    def desired_changed(self, updates: Sequence[PodUpdate]) -> None:
        """Wakes the mirrors of static pods, and has all pods remembered."""
        if not updates or any(update.source != API for update in updates):
            self.mirrors.wake()
        if self.last_known is not None:
            self.last_known.changed()


def build_api_pods(
    foundation: Foundation, cluster: ClusterSide, *, desired: DesiredPods, census: PodCensus, services: Services
) -> APIPods:
    """Built before the workers. `services`: those of the cluster, which environments name."""
    source = APISource(
        client=cluster.clients.requests,
        node_name=foundation.node_name,
        deliver=partial(desired.update_source, API),
        recorder=foundation.record,
        wait_for_node=cluster.node.wait_registered,
    )
    mirrors = _build_mirrors(foundation, cluster, source, desired, census)
    last_known = None
    if remembers_api_pods(os.environ):
        last_known = _build_last_known(foundation, cluster, source, desired, census, services)

    def api_changed(uid: PodUID) -> None:
        pod = desired.get(uid)
        if pod is None or is_static(pod):
            mirrors.wake()

    source.subscribe(api_changed)
    cluster.node.known.subscribe(lambda _node: mirrors.wake())
    return APIPods(source=source, mirrors=mirrors, last_known=last_known)


def _build_mirrors(
    foundation: Foundation, cluster: ClusterSide, source: APISource, desired: DesiredPods, census: PodCensus
) -> MirrorPods:
    """A mirror stays while its pod, which no source wants any more, is being stopped."""

    def static() -> list[Pod]:
        return [pod for pod in desired.all() if is_static(pod)]

    def stopping() -> set[FullName]:
        return {full_name(pod) for pod in census.ending() if is_static(pod)}

    return MirrorPods(
        client=cluster.clients.requests,
        node=lambda: cluster.node.known.node,
        views=MirrorViews(static=static, mirrors=source.mirrors, stopping=stopping, complete=desired.ready),
        recorder=foundation.record,
    )


def _build_last_known(
    foundation: Foundation,
    cluster: ClusterSide,
    source: APISource,
    desired: DesiredPods,
    census: PodCensus,
    services: Services,
) -> LastKnownPods:
    """Raises ValueError for an invalid setting."""

    def now() -> LastKnown:
        pods = tuple(census.with_status(pod) for pod in desired.given_by(API))
        known = needed_by(pods, services.known() or ())
        return LastKnown(version=VERSION, node=cluster.node.current(), services=known, pods=pods)

    def recall(state: LastKnown) -> None:
        if state.node is not None:
            cluster.node.recall(state.node)
        services.recall(state.services)
        desired.recall(API, state.pods)

    return LastKnownPods(
        path=f"{foundation.root.root_dir}/glasslet/api-pods",
        listed=source.synced,
        now=now,
        recall=recall,
        threads=foundation.threads,
        recorder=foundation.record,
    )
