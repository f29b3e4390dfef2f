"""The pod resources API, over the pods and the devices of this agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glasslet.answers.states import WorkerState
from glasslet.api.pod import Pod
from glasslet.assembly.foundation import Foundation
from glasslet.assembly.pods import PodSide
from glasslet.concurrency.token_bucket import TokenBucket
from glasslet.devices.inventory import by_numa_node
from glasslet.devices.manager import DeviceManager
from glasslet.devices.offers import Offers
from glasslet.devices.pod_resources import BURST, QPS, SOCKET, ByNode, PodResources
from glasslet.devices.unix_server import UnixServer
from glasslet.exchange.finality import has_ended

_LIVING = (WorkerState.SYNCING, WorkerState.TERMINATING)


class _Pods:
    """Implements `devices.pod_resources.Pods`."""

    def __init__(self, pods: PodSide) -> None:
        self._pods = pods

    def all(self) -> Sequence[Pod]:
        return self._pods.desired.all()

    def active(self) -> Sequence[Pod]:
        views = self._pods.workers.snapshot()
        return [view.pod for view in views if view.lifecycle in _LIVING and not has_ended(view.status)]

    def named(self, namespace: str, name: str) -> Pod | None:
        for pod in self._pods.desired.all():
            if (pod.metadata.namespace, pod.metadata.name) == (namespace, name):
                return pod
        return None


class _Books:
    """Implements `devices.pod_resources.DeviceBooks`."""

    def __init__(self, manager: DeviceManager, offers: Offers) -> None:
        self._manager = manager
        self._offers = offers

    def of_container(self, uid: str, container: str) -> Mapping[str, ByNode]:
        had = self._manager.allocations.of_container(uid, container)
        return {resource: one.by_node for resource, one in had.items()}

    def allocatable(self) -> Mapping[str, ByNode]:
        healthy = self._offers.healthy()
        return {name: by_numa_node(ids, self._offers.devices(name)) for name, ids in sorted(healthy.items())}


def build_pod_resources(foundation: Foundation, pods: PodSide) -> UnixServer:
    """The server of both versions."""
    gates = foundation.loaded.gates
    bucket = TokenBucket(rate=QPS, burst=BURST)
    service = PodResources(
        pods=_Pods(pods),
        devices=_Books(pods.devices.manager, pods.devices.offers),
        metrics=foundation.metrics.pod_resources,
        over_limit=lambda: not bucket.take(foundation.clock.monotonic()),
        active_only=gates.enabled("KubeletPodResourcesListUseActivePods"),
        get_served=gates.enabled("KubeletPodResourcesGet"),
    )
    path = f"{foundation.root.root_dir}/{SOCKET}"
    return UnixServer(path=path, handlers=service.services(), recorder=foundation.record)
