"""The pod resources API, v1 and v1alpha1: which pod has which devices, CPUs and memory. For monitoring agents on the
node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from google.protobuf.message import Message
from grpc import GenericRpcHandler, StatusCode, method_handlers_generic_handler, unary_unary_rpc_method_handler

from glasslet.api.container import Container
from glasslet.api.pod import Pod
from glasslet.devices._generated import podresources_alpha_pb2 as alpha
from glasslet.devices._generated import podresources_pb2 as v1
from glasslet.devices.inventory import NO_NUMA_NODE, by_numa_node
from glasslet.devices.manager import DeviceManager
from glasslet.devices.offers import Offers
from glasslet.exchange.claims import ContainerClaim

SOCKET = "pod-resources/kubelet.sock"
"""Below the root directory."""
QPS, BURST = 100.0, 10
"""podresources.qps, podresources.burst: of all calls together."""
KNOWN_SECONDS = 5.0
"""Counted from the first call; clients give up after 10 s."""
_ALWAYS = "Always"

R = TypeVar("R", bound=Message)

ByNode = Mapping[int, Sequence[str]]
"""Device ids by NUMA node."""


class ResourcePods(Protocol):
    """The pods of this node."""

    def all(self) -> Sequence[Pod]: ...

    def active(self) -> Sequence[Pod]:
        """Those that have not ended."""

    def named(self, namespace: str, name: str) -> Pod | None: ...


class AllocatedDevices(Protocol):
    """The devices of containers and of the node."""

    def of_container(self, uid: str, container: str) -> Mapping[str, ByNode]:
        """By resource."""

    def allocatable(self) -> Mapping[str, ByNode]:
        """Healthy ones, by resource."""


MemoryOfNodes = tuple[str, int, Sequence[int]]
"""A resource (memory, huge pages), its bytes, and the NUMA nodes it comes from."""


class AllocatedShares(Protocol):
    """The CPUs and memory that containers have for themselves, and what the node has of them."""

    def cpus_of(self, uid: str, container: str) -> Collection[int]: ...
    def memory_of(self, uid: str, container: str) -> Sequence[MemoryOfNodes]: ...
    def allocatable_cpus(self) -> Collection[int]: ...
    def allocatable_memory(self) -> Sequence[MemoryOfNodes]: ...


class AllocatedClaims(Protocol):
    """The resource claims of containers."""

    def claims_of(self, pod: Pod, container: Container) -> Sequence[ContainerClaim]: ...


class CallMetrics(Protocol):
    """Counts calls; `version` is v1 or v1alpha1, `verb` list, get or get_allocatable."""

    def called(self, version: str, verb: str) -> None: ...
    def failed(self, version: str, verb: str) -> None: ...


class CallRefused(Exception):
    """The answer is an error; `verb` names the call to be counted."""

    def __init__(self, message: str, verb: str) -> None:
        super().__init__(message)
        self.verb = verb


class PodResources:
    """Answers calls. `active_only`, `get_served`: the gates KubeletPodResourcesListUseActivePods and
    KubeletPodResourcesGet; `over_limit`: takes one call off the rate limit, True when there is none left."""

    def __init__(
        self,
        *,
        pods: ResourcePods,
        devices: AllocatedDevices,
        shares: AllocatedShares,
        claims: AllocatedClaims,
        metrics: CallMetrics,
        over_limit: Callable[[], bool],
        known: Callable[[], bool] = lambda: True,
        active_only: bool = True,
        get_served: bool = True,
    ) -> None:
        self._pods = pods
        self._devices = devices
        self._shares = shares
        self._claims = claims
        self._metrics = metrics
        self._over_limit = over_limit
        self._known = known
        self._known_by: float | None = None
        self._active_only = active_only
        self._get_served = get_served

    def services(self) -> tuple[GenericRpcHandler, ...]:
        """Both versions, for a gRPC server."""
        new = {
            "List": self._handler("v1", self.list, v1.ListPodResourcesRequest),
            "GetAllocatableResources": self._handler("v1", self.allocatable, v1.AllocatableResourcesRequest),
            "Get": self._handler("v1", self.get, v1.GetPodResourcesRequest),
        }
        old = {"List": self._handler("v1alpha1", self.list_alpha, alpha.ListPodResourcesRequest)}
        return (
            method_handlers_generic_handler("v1.PodResourcesLister", new),
            method_handlers_generic_handler("v1alpha1.PodResourcesLister", old),
        )

    def list(self, _request: v1.ListPodResourcesRequest) -> v1.ListPodResourcesResponse:
        """All pods that have not ended."""
        self._metrics.called("v1", "list")
        pods = self._pods.active() if self._active_only else self._pods.all()
        return v1.ListPodResourcesResponse(pod_resources=[self._pod(pod) for pod in pods])

    def allocatable(self, _request: v1.AllocatableResourcesRequest) -> v1.AllocatableResourcesResponse:
        """All allocatable devices, and with a static policy CPUs and memory, given out or not."""
        self._metrics.called("v1", "get_allocatable")
        return v1.AllocatableResourcesResponse(
            devices=_container_devices(self._devices.allocatable()),
            cpu_ids=sorted(self._shares.allocatable_cpus()),
            memory=_memory(self._shares.allocatable_memory()),
        )

    def get(self, request: v1.GetPodResourcesRequest) -> v1.GetPodResourcesResponse:
        """One pod. Raises CallRefused."""
        self._metrics.called("v1", "get")
        if not self._get_served:
            raise CallRefused("PodResources API Get method disabled", "get")
        pod = self._pods.named(request.pod_namespace, request.pod_name)
        if pod is None:
            raise CallRefused(f"pod {request.pod_name} in namespace {request.pod_namespace} not found", "get")
        return v1.GetPodResourcesResponse(pod_resources=self._pod(pod))

    def list_alpha(self, _request: alpha.ListPodResourcesRequest) -> alpha.ListPodResourcesResponse:
        """All pods, also those that have ended; without sidecars."""
        self._metrics.called("v1alpha1", "")
        answer = alpha.ListPodResourcesResponse()
        for pod in self._pods.all():
            entry = answer.pod_resources.add(name=pod.metadata.name, namespace=pod.metadata.namespace)
            for container in pod.spec.containers:
                inside = entry.containers.add(name=container.name)
                for one in self._container(pod, container).devices:
                    inside.devices.add(resource_name=one.resource_name, device_ids=one.device_ids)
        return answer

    def _pod(self, pod: Pod) -> v1.PodResources:
        """Sidecars and regular containers."""
        containers: Iterable[Container] = (
            *(one for one in pod.spec.init_containers if one.restart_policy == _ALWAYS),
            *pod.spec.containers,
        )
        return v1.PodResources(
            name=pod.metadata.name,
            namespace=pod.metadata.namespace,
            containers=[self._container(pod, container) for container in containers],
        )

    def _container(self, pod: Pod, container: Container) -> v1.ContainerResources:
        devices = self._devices.of_container(pod.metadata.uid, container.name)
        uid = pod.metadata.uid
        return v1.ContainerResources(
            name=container.name,
            devices=_container_devices(devices),
            cpu_ids=sorted(self._shares.cpus_of(uid, container.name)),
            memory=_memory(self._shares.memory_of(uid, container.name)),
            dynamic_resources=_dynamic(self._claims.claims_of(pod, container)),
        )

    def _handler(self, version: str, answer: Callable[[Any], R], request: type[Message]) -> Any:
        async def call(asked: Message, context: Any) -> R:
            if self._over_limit():
                await context.abort(StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
            await self._pods_known()
            try:
                return answer(asked)
            except CallRefused as error:
                self._metrics.failed(version, error.verb)
                await _abort(context, str(error))
                raise

        return unary_unary_rpc_method_handler(
            call, request_deserializer=request.FromString, response_serializer=_serialized
        )

    async def _pods_known(self) -> None:
        """After a start an answer waits until the node's pods are known, for a while in all: it would be as if nobody
        had any device."""
        loop = asyncio.get_running_loop()
        if self._known_by is None:
            self._known_by = loop.time() + KNOWN_SECONDS
        while not self._known() and loop.time() < self._known_by:  # noqa: ASYNC110 # sources have no event
            await asyncio.sleep(0.05)


def _abort(context: Any, why: str) -> Awaitable[None]:
    aborted: Awaitable[None] = context.abort(StatusCode.UNKNOWN, why)
    return aborted


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _container_devices(devices: Mapping[str, ByNode]) -> list[v1.ContainerDevices]:
    """One entry for each device and each of its NUMA nodes, as upstream."""
    return [
        v1.ContainerDevices(resource_name=resource, device_ids=[name], topology=_topology(node))
        for resource, by_node in devices.items()
        for node, names in by_node.items()
        for name in names
    ]


def _memory(blocks: Sequence[MemoryOfNodes]) -> list[v1.ContainerMemory]:
    return [
        v1.ContainerMemory(
            memory_type=resource,
            size=size,
            topology=v1.TopologyInfo(nodes=[v1.NUMANode(ID=node) for node in nodes]),
        )
        for resource, size, nodes in blocks
    ]


def _dynamic(claims: Sequence[ContainerClaim]) -> list[v1.DynamicResource]:
    return [
        v1.DynamicResource(
            claim_name=claim.name,
            claim_namespace=claim.namespace,
            claim_resources=[
                v1.ClaimResource(
                    cdi_devices=[v1.CDIDevice(name=name) for name in device.cdi_ids],
                    driver_name=device.driver,
                    pool_name=device.pool,
                    device_name=device.device,
                )
                for device in claim.devices
            ],
        )
        for claim in claims
    ]


def _topology(node: int) -> v1.TopologyInfo | None:
    return None if node == NO_NUMA_NODE else v1.TopologyInfo(nodes=[v1.NUMANode(ID=node)])


class DeviceBooks:
    """Implements `AllocatedDevices` for the device manager."""

    def __init__(self, manager: DeviceManager, offers: Offers) -> None:
        self._manager = manager
        self._offers = offers

    def of_container(self, uid: str, container: str) -> Mapping[str, ByNode]:
        """By resource."""
        had = self._manager.allocations.of_container(uid, container)
        return {resource: one.by_node for resource, one in had.items()}

    def allocatable(self) -> Mapping[str, ByNode]:
        """Healthy devices, by resource."""
        healthy = self._offers.healthy()
        return {name: by_numa_node(ids, self._offers.devices(name)) for name, ids in sorted(healthy.items())}


class PodsOfNode:
    """Implements `ResourcePods` for the desired pods (`wanted`) and those that have not ended (`active`)."""

    def __init__(self, *, wanted: Callable[[], Sequence[Pod]], active: Callable[[], Sequence[Pod]]) -> None:
        self._wanted = wanted
        self._active = active

    def all(self) -> Sequence[Pod]:
        """All desired pods."""
        return self._wanted()

    def active(self) -> Sequence[Pod]:
        """Those that have not ended."""
        return self._active()

    def named(self, namespace: str, name: str) -> Pod | None:
        """The desired pod of that name."""
        wanted = (pod for pod in self._wanted() if (pod.metadata.namespace, pod.metadata.name) == (namespace, name))
        return next(wanted, None)
