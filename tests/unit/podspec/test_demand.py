"""Demands of pods, computed once."""

from __future__ import annotations

from msgspec.structs import replace

from glasslet.podspec.demand import PodDemands, pod_demand
from tests.builders.podspec import pod_of

FIRST = pod_of({"resources": {"requests": {"cpu": "1"}}}, meta={"uid": "u1"})
SECOND = pod_of({"resources": {"requests": {"cpu": "2"}}}, meta={"uid": "u2"})


def test_a_demand_is_computed_once_for_each_spec() -> None:
    demands = PodDemands()
    before = demands.of([FIRST, SECOND])
    again = demands.of([replace(FIRST, metadata=replace(FIRST.metadata, labels={"a": "b"})), SECOND])
    assert [one is other for one, other in zip(before, again, strict=True)] == [True, True]


def test_another_spec_is_another_demand() -> None:
    demands = PodDemands()
    demands.of([FIRST])
    changed = replace(FIRST, spec=SECOND.spec)
    assert demands.of([changed])[0].cpu_request == 2000


def test_only_the_pods_that_are_given_count() -> None:
    demands = PodDemands()
    demands.of([FIRST, SECOND])
    assert [demand.uid for demand in demands.of([SECOND])] == ["u2"]


def test_sidecars_and_the_largest_init_container_count() -> None:
    # behaviours.md §3: "Effective request of a pod = max(sum(regular)+sum(sidecars), for each init container: its
    # request + sidecars before it) + overhead"
    def init(name: str, cpu: str, **more: str) -> dict[str, object]:
        return {"name": name, "image": "busybox", "resources": {"requests": {"cpu": cpu}}, **more}

    pod = pod_of(
        {"resources": {"requests": {"cpu": "100m"}}},
        initContainers=[init("side", "50m", restartPolicy="Always"), init("large", "300m")],
        overhead={"cpu": "10m"},
    )
    assert pod_demand(pod).cpu_request == 360
