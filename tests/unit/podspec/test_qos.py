from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from glasslet.api.quantity import Quantity
from glasslet.podspec.pod_level import pod_limits, pod_memory_limit, pod_requests
from glasslet.podspec.qos import is_critical, qos_class
from tests.builders.podspec import pod_of


def container_of(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **more: Any) -> Any:
    return {"image": "busybox", "resources": {"requests": requests or {}, "limits": limits or {}}} | more


BOTH = {"cpu": "1", "memory": "1Gi"}
FULL = container_of(BOTH, BOTH)


@pytest.mark.parametrize(
    ("containers", "qos"),
    [
        # behaviours.md §16: "Guaranteed: every container (incl. init) has CPU and memory limits equal to requests.
        # BestEffort: none has any CPU/memory request or limit. Else Burstable."
        ([{}], "BestEffort"),
        ([container_of({"cpu": "0"}, {"memory": "0"})], "BestEffort"),
        ([container_of({"ephemeral-storage": "1Gi"})], "BestEffort"),
        ([FULL], "Guaranteed"),
        ([FULL, FULL], "Guaranteed"),
        ([container_of({"cpu": "1000m", "memory": "1024Mi"}, BOTH)], "Guaranteed"),
        ([FULL, {}], "Burstable"),
        ([container_of(BOTH)], "Burstable"),
        ([container_of({}, BOTH)], "Burstable"),
        ([container_of({"cpu": "1"}, {"cpu": "1"})], "Burstable"),
        ([container_of({"cpu": "500m", "memory": "1Gi"}, BOTH)], "Burstable"),
    ],
)
def test_the_class_follows_from_requests_and_limits(containers: list[Any], qos: str) -> None:
    assert qos_class(pod_of(*containers)) == qos


def test_init_containers_count() -> None:
    assert qos_class(pod_of(FULL, initContainers=[{"name": "setup", "image": "busybox"}])) == "Burstable"


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        # behaviours.md §16: "With pod-level resources those alone decide."
        ({"requests": BOTH, "limits": BOTH}, "Guaranteed"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": BOTH}, "Burstable"),
        ({}, "BestEffort"),
    ],
)
def test_pod_level_resources_alone_decide(resources: dict[str, Any], qos: str) -> None:
    assert qos_class(pod_of(container_of({"cpu": "3"}), resources=resources)) == qos


def test_a_class_in_the_status_stays() -> None:
    # behaviours.md §16: "Fixed at creation."
    pod = pod_of(FULL)
    assert qos_class(replace(pod, status=replace(pod.status, qos_class="Burstable"))) == "Burstable"


@pytest.mark.parametrize(
    ("annotations", "priority", "critical"),
    [
        ({}, None, False),
        ({}, 1_999_999_999, False),
        ({}, 2_000_000_000, True),
        ({"kubernetes.io/config.source": "http"}, None, True),
        ({"kubernetes.io/config.source": "api"}, None, False),
        ({"kubernetes.io/config.mirror": "x"}, None, True),
    ],
)
def test_static_mirror_and_system_priority_pods_are_critical(annotations: Any, priority: Any, critical: bool) -> None:
    # behaviours.md §14: "Critical pods: static, mirror, or priority >= 2000000000."
    # behaviours.md §0: "critical.priority 2000000000: pod priority from which a pod is critical"; §13: "Static pods are
    # critical"
    assert is_critical(pod_of(meta={"annotations": annotations}, priority=priority)) is critical


def sidecar(name: str, **amounts: str) -> Any:
    return container_of(amounts, name=name, restartPolicy="Always")


def test_a_pod_needs_the_sum_or_the_largest_init_step() -> None:
    # behaviours.md §3: "Effective request of a pod = max(sum(regular)+sum(sidecars), for each init container: its
    # request + sidecars before it) + overhead"
    init = [
        container_of({"cpu": "1"}, name="first"),
        sidecar("log", cpu="2"),
        container_of({"cpu": "7"}, name="second"),
        sidecar("late", cpu="1"),
    ]
    pod = pod_of(container_of({"cpu": "1", "memory": "2"}), container_of({"cpu": "2"}), initContainers=init)
    assert pod_requests(pod) == {"cpu": Quantity(9), "memory": Quantity(2)}


def test_pod_level_amounts_replace_those_of_the_containers_one_by_one() -> None:
    own = {"requests": {"cpu": "5"}, "limits": {"memory": "64"}}
    pod = pod_of(container_of({"cpu": "1", "memory": "2"}, {"cpu": "3"}), resources=own)
    assert pod_requests(pod) == {"cpu": Quantity(5), "memory": Quantity(2)}
    assert pod_limits(pod) == {"cpu": Quantity(3), "memory": Quantity(64)}


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        # behaviours.md §16: "memory only if every container (incl. init) has that limit or the pod level has it"
        ({}, 3),
        ({"initContainers": [container_of(name="setup")]}, 0),
        ({"initContainers": [container_of(name="setup")], "resources": {"limits": {"memory": "9"}}}, 9),
        ({"overhead": {"memory": "10"}}, 13),
    ],
)
def test_a_pods_memory_is_limited_if_all_its_containers_are(spec: dict[str, Any], limit: int) -> None:
    assert (
        pod_memory_limit(pod_of(container_of({}, {"memory": "1"}), container_of({}, {"memory": "2"}), **spec)) == limit
    )
