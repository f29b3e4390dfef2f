"""Requests and limits of all containers of a pod together, by resource.

Regular containers and sidecars run at the same time: sum. A plain init container runs with the sidecars that started
before it: the pod needs the largest of these moments.
"""

from __future__ import annotations

from collections.abc import Callable

from glasslet.api.container import ResourceRequirements
from glasslet.api.pod import PodSpec
from glasslet.api.quantity import Quantity
from glasslet.api.restarts import is_sidecar

Amounts = dict[str, Quantity]


def total_requests(spec: PodSpec) -> Amounts:
    """Requests of all containers, without pod-level resources and overhead."""
    return _total(spec, lambda resources: resources.requests)


def total_limits(spec: PodSpec) -> Amounts:
    """Limits of all containers; a resource is missing where no container limits it."""
    return _total(spec, lambda resources: resources.limits)


def _total(spec: PodSpec, pick: Callable[[ResourceRequirements], Amounts]) -> Amounts:
    total: Amounts = {}
    for container in spec.containers:
        _add(total, pick(container.resources))
    sidecars: Amounts = {}
    moment_peak: Amounts = {}
    for container in spec.init_containers:
        own = pick(container.resources)
        if is_sidecar(container):
            _add(total, own)
            _add(sidecars, own)
            _raise_to(moment_peak, sidecars)
        else:
            moment = dict(own)
            _add(moment, sidecars)
            _raise_to(moment_peak, moment)
    _raise_to(total, moment_peak)
    return total


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        if name not in total or total[name] < amount:
            total[name] = amount
