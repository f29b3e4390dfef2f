"""Whether the pod fits into the unused part of the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from glasslet.admission.candidate import Candidate
from glasslet.api.pod import Pod
from glasslet.api.quantity import ZERO, Quantity
from glasslet.exchange.admission import Rejected
from glasslet.podspec.pod_level import pod_requests

PODS = "pods"
_FIRST = ("cpu", "memory", "ephemeral-storage")


class Shortage(Struct, frozen=True, kw_only=True):
    """A resource that does not suffice: CPU in millicores, the rest in bytes or units."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def missing(self) -> int:
        """How much more must be free."""
        return self.requested - (self.capacity - self.used)

    def rejection(self) -> Rejected:
        """The refusal for this shortage."""
        amounts = f"requested: {self.requested}, used: {self.used}, capacity: {self.capacity}"
        message = f"Node didn't have enough resource: {self.resource}, {amounts}"
        return Rejected(reason=f"OutOf{self.resource}", message=message)


def shortages(candidate: Candidate) -> tuple[Shortage, ...]:
    """All shortages: pods, cpu, memory, ephemeral-storage, then the others by name. Extended resources that the node
    does not list belong to the whole cluster and are not checked here."""
    return tuple(_shortages(candidate))


def requested(pod: Pod) -> dict[str, int]:
    """The pod's requests with its overhead, by resource."""
    total = pod_requests(pod)
    for name, quantity in pod.spec.overhead.items():
        total[name] = total.get(name, ZERO) + quantity
    return {name: counted(name, amount) for name, amount in total.items()}


def counted(resource: str, quantity: Quantity) -> int:
    """A quantity as a whole number, rounded up."""
    return quantity.milli_value() if resource == "cpu" else quantity.value()


def _shortages(candidate: Candidate) -> Iterator[Shortage]:
    limits = candidate.allocatable
    places = counted(PODS, limits[PODS]) if PODS in limits else 0
    if len(candidate.others) + 1 > places:
        yield Shortage(resource=PODS, requested=1, used=len(candidate.others), capacity=places)
    wanted = {name: amount for name, amount in requested(candidate.pod).items() if amount > 0}
    if not wanted:
        return
    used: dict[str, int] = {}
    for other in candidate.others:
        for name, amount in requested(other).items():
            used[name] = used.get(name, 0) + amount
    for name in (*_FIRST, *sorted(wanted.keys() - set(_FIRST))):
        if name not in wanted or (is_extended(name) and name not in limits):
            continue
        capacity = counted(name, limits[name]) if name in limits else 0
        if wanted[name] > capacity - used.get(name, 0):
            yield Shortage(resource=name, requested=wanted[name], used=used.get(name, 0), capacity=capacity)


def not_offered(pod: Pod, limits: Mapping[str, Quantity]) -> list[str]:
    """The extended resources that the pod asks for and the node does not have: it is admitted without them, as with the
    Go kubelet, because another component may account for them."""
    return sorted(
        name for name, amount in requested(pod).items() if amount and is_extended(name) and name not in limits
    )


def is_extended(resource: str) -> bool:
    """Whether the resource is not one of Kubernetes' own (`example.com/gpu`)."""
    if "/" not in resource or "kubernetes.io/" in resource:
        return False
    return not resource.startswith("requests.")
