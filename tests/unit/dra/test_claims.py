"""The claims of a pod, and what its containers name of them."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.api.codec import decode, encode
from glasslet.api.pod import Pod
from glasslet.api.resource_claim import ResourceClaimObject
from glasslet.dra.claims import WantedClaim, cdi_problem, check_claim, drivers_of, named_requests, wanted_claims
from glasslet.exchange.claims import DeviceClaimProblem


def pod(claims: list[dict[str, Any]], *, named: tuple[dict[str, Any], ...] = (), **status: Any) -> Pod:
    resources = {"claims": list(named), "requests": {"example.com/gpu": "1", "example.com/none": "0"}}
    spec = {"resourceClaims": claims, "containers": [{"name": "main", "resources": resources}]}
    plain = {"metadata": {"name": "web", "namespace": "shop", "uid": "u1"}, "spec": spec, "status": status}
    return decode(encode(plain), Pod)


def claim(**fields: Any) -> ResourceClaimObject:
    results = [{"driver": "a"}, {"driver": "b"}, {"driver": "a"}]
    plain: dict[str, Any] = {
        "metadata": {"name": "c1", "namespace": "shop", "uid": "c1-uid"},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": [{"uid": "u0"}, {"uid": "u1"}]},
    }
    return decode(encode(plain | fields), ResourceClaimObject)


DIRECT = {"name": "direct", "resourceClaimName": "c1"}
MADE = {"name": "made", "resourceClaimTemplateName": "t"}
EXTENDED = {
    "resourceClaimName": "web-extended",
    "requestMappings": [
        {"containerName": "main", "resourceName": "example.com/none", "requestName": "r9"},
        {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r0"},
        {"containerName": "other", "resourceName": "example.com/gpu", "requestName": "r1"},
    ],
}


def test_a_claim_of_a_template_has_the_name_in_the_pods_status() -> None:
    it = pod([DIRECT, MADE], resourceClaimStatuses=[{"name": "made", "resourceClaimName": "web-made-7"}])
    assert wanted_claims(it, extended=False) == (
        WantedClaim(entry="direct", name="c1"),
        WantedClaim(entry="made", name="web-made-7", of_template=True),
    )


def test_a_claim_of_a_template_that_the_pod_does_not_need_is_left_out() -> None:
    it = pod([MADE], resourceClaimStatuses=[{"name": "made"}], named=({"name": "made"},))
    assert wanted_claims(it, extended=False) == ()
    assert named_requests(it, it.spec.containers[0], extended=False) == ()


def test_a_claim_of_a_template_that_was_not_made_yet_is_waited_for() -> None:
    with pytest.raises(DeviceClaimProblem, match=r'^pod "shop/web": ResourceClaim not created yet$'):
        wanted_claims(pod([MADE]), extended=False)


def test_an_entry_without_a_claim_is_named() -> None:
    text = r'^pod "shop/web", spec.resourceClaim "empty": none of the supported fields are set$'
    with pytest.raises(DeviceClaimProblem, match=text):
        wanted_claims(pod([{"name": "empty"}]), extended=False)


def test_extended_resources_have_a_claim_with_the_gate_alone() -> None:
    it = pod([], extendedResourceClaimStatus=EXTENDED)
    assert wanted_claims(it, extended=False) == ()
    assert wanted_claims(it, extended=True) == (WantedClaim(entry="", name="web-extended"),)
    assert named_requests(it, it.spec.containers[0], extended=False) == ()
    assert [(one.claim, one.request) for one in named_requests(it, it.spec.containers[0], extended=True)] == [
        ("web-extended", "r0")
    ]


def test_a_container_names_requests_in_the_order_of_the_pods_claims() -> None:
    second = {"name": "second", "resourceClaimName": "c2"}
    it = pod([DIRECT, second], named=({"name": "second", "request": "r"}, {"name": "direct"}))
    found = named_requests(it, it.spec.containers[0], extended=False)
    assert [(one.claim, one.request) for one in found] == [("c1", ""), ("c2", "r")]


@pytest.mark.parametrize(
    ("name", "version", "knows"),
    [
        ("containerd", "1.6.20~ds1", False),
        ("containerd", "v1.6.33", False),
        ("containerd", "1.7.2", True),
        ("containerd", "v2.4.2", True),
        ("cri-o", "1.6.0", True),
        ("containerd", "devel", True),
    ],
)
def test_a_runtime_without_cdi_is_known_by_its_version(name: str, version: str, knows: bool) -> None:
    assert (cdi_problem(name, version) == "") is knows


def test_each_driver_of_a_claim_comes_once() -> None:
    assert drivers_of(claim()) == ("a", "b")


def test_a_claim_must_be_reserved_for_the_pod() -> None:
    # behaviours.md §24: "the claim must be reserved for the pod"
    check_claim(claim(), WantedClaim(entry="direct", name="c1"), pod([DIRECT]))
    reserved = claim(status={"allocation": {}, "reservedFor": [{"uid": "u0"}]})
    with pytest.raises(DeviceClaimProblem, match=r"^pod web \(u1\) is not allowed to use ResourceClaim c1 \(c1-uid\)$"):
        check_claim(reserved, WantedClaim(entry="direct", name="c1"), pod([DIRECT]))


def test_a_claim_must_be_allocated() -> None:
    with pytest.raises(DeviceClaimProblem, match=r"^ResourceClaim c1: not allocated$"):
        check_claim(claim(status={"reservedFor": [{"uid": "u1"}]}), WantedClaim(entry="", name="c1"), pod([]))


def test_a_claim_of_a_template_must_be_the_pods_own() -> None:
    wanted = WantedClaim(entry="made", name="c1", of_template=True)
    owned = claim(metadata={"name": "c1", "ownerReferences": [{"uid": "u1", "controller": True}]})
    check_claim(owned, wanted, pod([MADE]))
    text = r"^ResourceClaim shop/c1 was not created for pod shop/web \(pod is not owner\)$"
    with pytest.raises(DeviceClaimProblem, match=text):
        check_claim(claim(), wanted, pod([MADE]))
