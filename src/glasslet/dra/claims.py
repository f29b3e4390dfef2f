"""Which claims a pod has, whether it may use them, and which requests of them a container names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from glasslet.api.container import Container
from glasslet.api.pod import Pod, PodResourceClaim
from glasslet.api.resource_claim import ResourceClaimObject
from glasslet.exchange.claims import DeviceClaimProblem


class WantedClaim(Struct, frozen=True, kw_only=True):
    """A ResourceClaim of a pod by its `name`. `entry`: its name in the pod; "" for the claim that the scheduler made
    for extended resources. `of_template`: it was made for this pod."""

    entry: str
    name: str
    of_template: bool = False


def wanted_claims(pod: Pod, *, extended: bool) -> tuple[WantedClaim, ...]:
    """All claims of the pod, also those that no container uses. `extended`: gate DRAExtendedResource. Raises
    DeviceClaimProblem, where a claim of a template was not made yet."""
    return tuple(_wanted(pod, extended=extended))


def _wanted(pod: Pod, *, extended: bool) -> Iterator[WantedClaim]:
    for entry in pod.spec.resource_claims:
        name = claim_name(pod, entry)
        if name is not None:
            yield WantedClaim(entry=entry.name, name=name, of_template=entry.resource_claim_name is None)
    made = pod.status.extended_resource_claim_status
    if extended and made is not None:
        yield WantedClaim(entry="", name=made.resource_claim_name)


def claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """The ResourceClaim behind an entry; None where the pod needs none. Raises DeviceClaimProblem."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    who = f'pod "{pod.metadata.namespace}/{pod.metadata.name}"'
    if entry.resource_claim_template_name is None:
        raise DeviceClaimProblem(f'{who}, spec.resourceClaim "{entry.name}": none of the supported fields are set')
    for made in pod.status.resource_claim_statuses:
        if made.name == entry.name:
            return made.resource_claim_name
    raise DeviceClaimProblem(f"{who}: ResourceClaim not created yet")


def check_claim(claim: ResourceClaimObject, wanted: WantedClaim, pod: Pod) -> None:
    """Whether the pod may use the claim now. Raises DeviceClaimProblem."""
    of, meta = claim.metadata, pod.metadata
    owners = (one for one in of.owner_references if one.controller)
    if wanted.of_template and not any(one.uid == meta.uid for one in owners):
        raise DeviceClaimProblem(
            f"ResourceClaim {of.namespace}/{of.name} was not created for pod {meta.namespace}/{meta.name} "
            "(pod is not owner)"
        )
    if not any(one.uid == meta.uid for one in claim.status.reserved_for):
        raise DeviceClaimProblem(
            f"pod {meta.name} ({meta.uid}) is not allowed to use ResourceClaim {of.name} ({of.uid})"
        )
    if claim.status.allocation is None:
        raise DeviceClaimProblem(f"ResourceClaim {of.name}: not allocated")


def drivers_of(claim: ResourceClaimObject) -> tuple[str, ...]:
    """The drivers of the allocated devices, each once."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return tuple(dict.fromkeys(one.driver for one in results))


def cdi_problem(runtime: str, version: str) -> str:
    """Why the runtime cannot give containers CDI devices: it would start them without. "" if it can, or may: containerd
    1.7 has it if `enable_cdi` is set, later ones by default."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    if runtime != "containerd" or found is None or (int(found[1]), int(found[2])) >= (1, 7):
        return ""
    return f"{runtime} {version} gives containers no CDI devices; containerd 1.7 and later do"


class NamedRequest(Struct, frozen=True, kw_only=True):
    """What a container names: a ResourceClaim, and one `request` of it, "" for all of its devices."""

    claim: str
    request: str = ""


def named_requests(pod: Pod, container: Container, *, extended: bool) -> tuple[NamedRequest, ...]:
    """In the order of the pod's claims, then extended resources by their names. Raises DeviceClaimProblem."""
    named = container.resources.claims if container.resources is not None else ()
    found = [
        NamedRequest(claim=name, request=one.request)
        for entry in pod.spec.resource_claims
        for one in named
        if one.name == entry.name and (name := claim_name(pod, entry)) is not None
    ]
    made = pod.status.extended_resource_claim_status
    if extended and made is not None and container.resources is not None:
        asked = {name for name, amount in container.resources.requests.items() if amount.value()}
        found += [
            NamedRequest(claim=made.resource_claim_name, request=mapping.request_name)
            for mapping in sorted(made.request_mappings, key=lambda one: one.resource_name)
            if mapping.container_name == container.name and mapping.resource_name in asked
        ]
    return tuple(found)
