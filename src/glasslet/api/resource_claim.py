"""Claims of devices, as far as a node needs them (resource.k8s.io/v1 at v1.34)."""

from __future__ import annotations

from glasslet.api.meta import ObjectMeta
from glasslet.api.object import Object


class DeviceRequestAllocationResult(Object, frozen=True, kw_only=True):
    """`resource.k8s.io/v1.DeviceRequestAllocationResult`: a device that was chosen for a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""


class DeviceAllocationResult(Object, frozen=True, kw_only=True):
    """`resource.k8s.io/v1.DeviceAllocationResult`."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()


class AllocationResult(Object, frozen=True, kw_only=True):
    """`resource.k8s.io/v1.AllocationResult`."""

    devices: DeviceAllocationResult = DeviceAllocationResult()


class ResourceClaimConsumerReference(Object, frozen=True, kw_only=True):
    """`resource.k8s.io/v1.ResourceClaimConsumerReference`."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Object, frozen=True, kw_only=True):
    """`resource.k8s.io/v1.ResourceClaimStatus`. `allocation` None: no devices were chosen."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()


class ResourceClaimObject(Object, frozen=True, kw_only=True):
    """`resource.k8s.io/v1.ResourceClaim`. `core/v1.ResourceClaim`, a container's reference to one, has the name."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    status: ResourceClaimStatus = ResourceClaimStatus()
