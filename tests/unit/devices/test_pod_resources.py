"""What monitoring agents are told of pods and their devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.devices._generated import podresources_alpha_pb2 as alpha
from glasslet.devices._generated import podresources_pb2 as v1
from glasslet.devices.pod_resources import CallRefused, MemoryOfNodes, PodResources
from glasslet.exchange.claims import ClaimedDevice, ContainerClaim
from glasslet.telemetry.metrics.catalog import Metrics
from tests.builders.pod import container, pod, sidecar

GPU = "example.com/gpu"


class Node:
    """The pods and their devices: every container called `main` or `side` has two."""

    pods: Sequence[Pod] = (
        pod(container("main"), container("plain"), init=(container("init"), sidecar("side")), name="lives"),
    )
    ended: Sequence[Pod] = (pod(name="ended", uid="e"),)

    def all(self) -> Sequence[Pod]:
        return (*self.pods, *self.ended)

    def active(self) -> Sequence[Pod]:
        return self.pods

    def named(self, namespace: str, name: str) -> Pod | None:
        return next((it for it in self.all() if it.metadata.name == name and it.metadata.namespace == namespace), None)

    def of_container(self, uid: str, container: str) -> Mapping[str, Mapping[int, Sequence[str]]]:
        return {GPU: {-1: ("a",), 0: ("b",)}} if container in ("main", "side") else {}

    def claims_of(self, pod: Pod, container: Container) -> Sequence[ContainerClaim]:
        device = ClaimedDevice(driver="gpu.example", pool="pool", device="gpu-0", cdi_ids=("gpu.example/gpu=0",))
        claim = ContainerClaim(namespace="default", name="gpu-1", devices=(device,))
        return (claim,) if container.name == "main" else ()

    def cpus_of(self, uid: str, container: str) -> frozenset[int]:
        return frozenset({3, 1}) if container == "main" else frozenset()

    def memory_of(self, uid: str, container: str) -> Sequence[MemoryOfNodes]:
        return [("memory", 64, (0, 1))] if container == "main" else []

    def allocatable_cpus(self) -> frozenset[int]:
        return frozenset({1, 2, 3})

    def allocatable_memory(self) -> Sequence[MemoryOfNodes]:
        return [("memory", 512, (0,)), ("hugepages-2Mi", 128, (1,))]

    def allocatable(self) -> Mapping[str, Mapping[int, Sequence[str]]]:
        return {GPU: {0: ("a", "b")}}


def service(metrics: Metrics | None = None, **gates: Any) -> PodResources:
    node = Node()
    told = (metrics or Metrics()).pod_resources
    return PodResources(
        pods=node, devices=node, shares=node, claims=node, metrics=told, over_limit=lambda: False, **gates
    )


def devices_of(told: v1.ContainerResources) -> list[tuple[str, list[str], list[int]]]:
    return [(one.resource_name, list(one.device_ids), [n.ID for n in one.topology.nodes]) for one in told.devices]


def test_regular_containers_and_sidecars_are_told_without_init_containers() -> None:
    # behaviours.md §24: "regular containers and sidecars, no plain init containers; List shows active pods only"
    (told,) = service().list(v1.ListPodResourcesRequest()).pod_resources
    assert [one.name for one in told.containers] == ["side", "main", "plain"]
    assert devices_of(told.containers[1]) == [(GPU, ["a"], []), (GPU, ["b"], [0])]
    assert devices_of(told.containers[2]) == []


def test_the_devices_of_resource_claims_are_told() -> None:
    # behaviours.md §24: "dynamic resources (gate KubeletPodResourcesDynamicResources, beta, on)"
    (told,) = service().list(v1.ListPodResourcesRequest()).pod_resources
    [claim] = told.containers[1].dynamic_resources
    assert (claim.claim_namespace, claim.claim_name) == ("default", "gpu-1")
    [device] = claim.claim_resources
    assert (device.driver_name, device.pool_name, device.device_name) == ("gpu.example", "pool", "gpu-0")
    assert [one.name for one in device.cdi_devices] == ["gpu.example/gpu=0"]
    assert not told.containers[0].dynamic_resources


def test_without_its_gate_pods_that_have_ended_are_told_too() -> None:
    told = service(active_only=False).list(v1.ListPodResourcesRequest()).pod_resources
    assert [one.name for one in told] == ["lives", "ended"]


def test_one_pod_can_be_asked_for() -> None:
    told = service().get(v1.GetPodResourcesRequest(pod_name="lives", pod_namespace="default"))
    assert told.pod_resources.name == "lives"


@pytest.mark.parametrize(
    ("served", "name", "why"),
    [
        (True, "nobody", "pod nobody in namespace default not found"),
        (False, "lives", "PodResources API Get method disabled"),
    ],
)
def test_get_is_refused_in_upstreams_words(served: bool, name: str, why: str) -> None:
    with pytest.raises(CallRefused, match=why):
        service(get_served=served).get(v1.GetPodResourcesRequest(pod_name=name, pod_namespace="default"))


def test_all_healthy_devices_are_allocatable_taken_or_not() -> None:
    told = service().allocatable(v1.AllocatableResourcesRequest())
    assert [list(one.device_ids) for one in told.devices] == [["a"], ["b"]]


def test_the_first_version_tells_all_pods_without_topology() -> None:
    told = service().list_alpha(alpha.ListPodResourcesRequest()).pod_resources
    assert [one.name for one in told] == ["lives", "ended"]
    assert [list(one.device_ids) for one in told[0].containers[0].devices] == [["a"], ["b"]]


def test_calls_are_counted_by_verb_and_version() -> None:
    metrics = Metrics()
    it = service(metrics)
    it.list(v1.ListPodResourcesRequest())
    it.allocatable(v1.AllocatableResourcesRequest())
    it.list_alpha(alpha.ListPodResourcesRequest())
    told = metrics.registry.expose().decode()
    prefix = "kubelet_pod_resources_endpoint_requests"
    assert f'{prefix}_total{{server_api_version="v1"}} 2' in told
    assert f'{prefix}_total{{server_api_version="v1alpha1"}} 1' in told
    assert f'{prefix}_list{{server_api_version="v1"}} 1' in told
    assert f'{prefix}_get_allocatable{{server_api_version="v1"}} 1' in told


def memory_told(blocks: Sequence[v1.ContainerMemory]) -> list[tuple[str, int, list[int]]]:
    return [(one.memory_type, one.size, [node.ID for node in one.topology.nodes]) for one in blocks]


def test_cpus_and_memory_of_a_container_are_told() -> None:
    # behaviours.md §24: "cpu_ids only for exclusive CPUs; memory only for static policy"
    (told,) = service().list(v1.ListPodResourcesRequest()).pod_resources
    by_name = {one.name: one for one in told.containers}
    assert (list(by_name["main"].cpu_ids), memory_told(by_name["main"].memory)) == ([1, 3], [("memory", 64, [0, 1])])
    assert (list(by_name["plain"].cpu_ids), memory_told(by_name["plain"].memory)) == ([], [])


def test_cpus_and_memory_of_the_node_are_told_given_out_or_not() -> None:
    told = service().allocatable(v1.AllocatableResourcesRequest())
    assert list(told.cpu_ids) == [1, 2, 3]
    assert memory_told(told.memory) == [("memory", 512, [0]), ("hugepages-2Mi", 128, [1])]
