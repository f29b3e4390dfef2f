"""Defaults of `spec.resources`: limits and requests of a pod as a whole, where some are given."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.api.pod import PodSpec
from glasslet.api.pod_resources import total_limits, total_requests
from glasslet.api.resource_names import is_huge_pages, may_be_set_for_pod, may_overcommit


def default_pod_resources(spec: PodSpec) -> PodSpec:
    """Fills pod-level limits of huge pages from the containers', and pod-level requests from containers' or limits."""
    resources = spec.resources
    if resources is None or not (resources.limits or resources.requests):
        return spec
    given = resources.limits.keys() | resources.requests.keys()
    pages = {name: amount for name, amount in total_limits(spec).items() if is_huge_pages(name) and name not in given}
    limits = {**resources.limits, **pages} if pages else resources.limits
    requests = dict(resources.requests)
    if limits:
        for name, amount in total_requests(spec).items():
            if may_be_set_for_pod(name) and may_overcommit(name):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if may_be_set_for_pod(name):
                requests.setdefault(name, amount)
    if requests == resources.requests and limits is resources.limits:
        return spec
    return replace(spec, resources=replace(resources, limits=limits, requests=requests))
