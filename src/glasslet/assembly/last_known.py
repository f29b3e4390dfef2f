"""What is kept of the API server's word for an agent that starts without it, put together."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.assembly.cluster import ClusterSide
from glasslet.assembly.foundation import Foundation
from glasslet.kubeapi.objects.services import ServiceAddress, Services
from glasslet.pods.workers import PodWorkers
from glasslet.sources.api import APISource
from glasslet.sources.desired import DesiredPods
from glasslet.sources.last_known import VERSION, LastKnown, LastKnownPods, remembers_api_pods
from glasslet.sources.names import API

_OFFERED_EVERYWHERE = "default"
"""The namespace whose `kubernetes` service every container is told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Who knows what is kept, and takes it back."""

    cluster: ClusterSide
    source: APISource
    desired: DesiredPods
    workers: PodWorkers
    services: Services

    def now(self) -> LastKnown:
        """What is worth keeping now."""
        pods = tuple(self._with_status(pod) for pod in self.desired.given_by(API))
        return LastKnown(
            version=VERSION,
            node=self.cluster.node.current(),
            services=needed_by(pods, self.services.known() or ()),
            pods=pods,
        )

    def recall(self, state: LastKnown) -> None:
        """Goes on with what was kept."""
        if state.node is not None:
            self.cluster.node.recall(state.node)
        self.services.recall(state.services)
        self.desired.recall(API, state.pods)

    def _with_status(self, pod: Pod) -> Pod:
        view = self.workers.view(PodUID(pod.metadata.uid))
        return pod if view is None else replace(pod, status=view.status)


def build_last_known(foundation: Foundation, remembered: Remembered) -> LastKnownPods | None:
    """None unless it is switched on. Raises ValueError for a setting that cannot be."""
    if not remembers_api_pods(os.environ):
        return None
    return LastKnownPods(
        path=f"{foundation.root.root_dir}/glasslet/api-pods",
        listed=remembered.source.synced,
        now=remembered.now,
        recall=remembered.recall,
        threads=foundation.threads,
        recorder=foundation.record,
    )


def needed_by(pods: Iterable[Pod], services: Iterable[ServiceAddress]) -> tuple[ServiceAddress, ...]:
    """Services that the environments of these pods may name."""
    namespaces = {pod.metadata.namespace for pod in pods} | {_OFFERED_EVERYWHERE}
    return tuple(service for service in services if service.metadata.namespace in namespaces)
