"""What pods ask for, in the whole numbers that admission counts with: millicores, bytes, units."""

from __future__ import annotations

from glasslet.api.pod import Pod
from glasslet.api.quantity import ZERO, Quantity
from glasslet.podspec.pod_level import pod_requests


def requested(pod: Pod) -> dict[str, int]:
    """The pod's requests with its overhead, by resource."""
    total = pod_requests(pod)
    for name, quantity in pod.spec.overhead.items():
        total[name] = total.get(name, ZERO) + quantity
    return {name: counted(name, amount) for name, amount in total.items()}


def counted(resource: str, quantity: Quantity) -> int:
    """A quantity as a whole number, rounded up."""
    return quantity.milli_value() if resource == "cpu" else quantity.value()
