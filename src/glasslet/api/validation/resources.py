"""Requests, limits and claims of containers; pod overhead; resource claims of a pod."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.api.container import ResourceClaim, ResourceRequirements
from glasslet.api.field_errors import FieldPath, duplicate, forbidden, invalid, not_found, required
from glasslet.api.formats import dns_label_problems, dns_subdomain_problems, qualified_name_problems
from glasslet.api.pod import PodResourceClaim
from glasslet.api.quantity import Quantity
from glasslet.api.resource_names import (
    CONTAINER_RESOURCES,
    HUGE_PAGES_PREFIX,
    is_counted_whole,
    is_extended,
    is_huge_pages,
    is_native,
    is_standard,
    may_overcommit,
)
from glasslet.api.validation.rules import Errors, formatted


def requirement_errors(resources: ResourceRequirements, path: FieldPath, claim_names: frozenset[str]) -> Errors:
    """Requests and limits of one container (or, as limits, the overhead of a pod)."""
    limits, requests = resources.limits, resources.requests
    for name, amount in limits.items():
        yield from _resource(name, amount, path.child("limits").key(name))
    for name, amount in requests.items():
        yield from _resource(name, amount, path.child("requests").key(name))
        yield from _against_limit(name, amount, limits.get(name), path)
    names = limits.keys() | requests.keys()
    if any(map(is_huge_pages, names)) and not names & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")
    yield from _claims(resources.claims, path.child("claims"), claim_names)


def quantity_errors(name: str, amount: Quantity, path: FieldPath) -> Errors:
    """An amount of a resource: not negative, whole where pieces are counted."""
    if amount.nano_value() < 0:
        yield invalid(path, str(amount), "must be greater than or equal to 0")
    if is_counted_whole(name) and amount.milli_value() % 1000:
        yield invalid(path, amount, "must be an integer")


def resource_claim_errors(claims: tuple[PodResourceClaim, ...], path: FieldPath) -> Errors:
    """`spec.resourceClaims`."""
    seen: set[str] = set()
    for number, claim in enumerate(claims):
        here = path.at(number)
        if not claim.name:
            yield required(here.child("name"))
        elif claim.name in seen:
            yield duplicate(here.child("name"), claim.name)
        else:
            seen.add(claim.name)
            yield from formatted(claim.name, here.child("name"), dns_label_problems)
        given = [claim.resource_claim_name, claim.resource_claim_template_name]
        if None not in given:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(here, claim, text)
        elif given == [None, None]:
            yield invalid(here, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for field, name in zip(("resourceClaimName", "resourceClaimTemplateName"), given, strict=True):
            if name is not None:
                yield from formatted(name, here.child(field), dns_subdomain_problems)


def _resource(name: str, amount: Quantity, path: FieldPath) -> Errors:
    yield from _container_resource_name(name, path)
    yield from quantity_errors(name, amount, path)
    if is_huge_pages(name) and not _is_whole_pages(name, amount):
        yield invalid(path, str(amount), f"{amount} is not positive integer multiple of {name}")


def _container_resource_name(name: str, path: FieldPath) -> Errors:
    problems = qualified_name_problems(name)
    for problem in problems:
        yield invalid(path, name, problem)
    if "/" not in name:
        if not problems and not is_standard(name):
            yield invalid(path, name, "must be a standard resource type or fully qualified")
        if name not in CONTAINER_RESOURCES and not is_huge_pages(name):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _is_whole_pages(name: str, amount: Quantity) -> bool:
    try:
        page = Quantity.parse(name.removeprefix(HUGE_PAGES_PREFIX))
    except ValueError:
        return False
    return page.nano_value() > 0 and page.milli_value() % 1000 == 0 and amount.value() % page.value() == 0


def _against_limit(name: str, request: Quantity, limit: Quantity | None, path: FieldPath) -> Errors:
    here = path.child("requests")
    if limit is None:
        if not may_overcommit(name):
            yield required(path.child("limits"), "Limit must be set for non overcommitable resources")
    elif request != limit and not may_overcommit(name):
        yield invalid(here, str(request), f"must be equal to {name} limit of {limit}")
    elif request > limit:
        yield invalid(here, str(request), f"must be less than or equal to {name} limit of {limit}")


def _claims(claims: tuple[ResourceClaim, ...], path: FieldPath, known: frozenset[str]) -> Errors:
    seen: set[str] = set()
    for number, claim in enumerate(claims):
        here = path.at(number)
        if not claim.name:
            yield required(here)
            continue
        key = f"{claim.name}/{claim.request}" if claim.request else claim.name
        if claim.name in seen:
            yield duplicate(here, claim.name)
        else:
            if claim.request:
                yield from formatted(claim.request, here.child("request"), dns_label_problems)
            if key in seen:
                yield duplicate(here, key)
            elif not claim.request:
                for _ in (one for one in seen if one.startswith(f"{claim.name}/")):
                    yield duplicate(here, claim.name)
            seen.add(key)
        if claim.name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            yield replace(
                not_found(here, claim.name), detail=f"must be one of the names in pod.spec.resourceClaims{listed}"
            )
