"""Critical pods make room for themselves."""

from __future__ import annotations

from typing import Any

import pytest

from glasslet.admission.predicates import predicates
from glasslet.admission.preemption import NoVictims, choose_victims
from glasslet.api.container import ResourceRequirements
from glasslet.api.object import PodUID
from glasslet.api.pod import Pod
from glasslet.exchange.admission import Admitted, Rejected
from tests.builders.admission import amounts, api_pod, candidate
from tests.builders.pod import container, pod

CRITICAL = 2_000_000_000


def guaranteed(name: str, cpu: str) -> Pod:
    both = amounts(cpu=cpu, memory="1Mi")
    main = container(resources=ResourceRequirements(requests=both, limits=both))
    return pod(main, name=name, uid=f"uid-{name}", source="api")


def burstable(name: str, cpu: str = "1", **fields: Any) -> Pod:
    return api_pod(name, requests={"cpu": cpu}, **fields)


def victims(wanted: Pod, others: list[Pod], **needs: int) -> list[str]:
    found = choose_victims(wanted, others, needs)
    assert not isinstance(found, NoVictims)
    return [one.metadata.name for one in found]


def critical(**requests: str) -> Pod:
    return api_pod("critical", requests=requests, priority=CRITICAL)


def test_least_guaranteed_pods_go_first() -> None:
    # behaviours.md §14: "chosen to free each short resource with as few Guaranteed, then Burstable, then BestEffort
    # pods as possible"
    others = [guaranteed("g", "2"), burstable("b", "2"), api_pod("e")]
    assert victims(critical(), others, cpu=1500) == ["b"]
    assert victims(critical(), others, cpu=2500) == ["b", "g"]
    assert victims(critical(), others, pods=1) == ["e"]


def test_smallest_pod_that_is_enough_goes() -> None:
    others = [burstable("large", "3"), burstable("right", "1"), burstable("small", "100m")]
    assert victims(critical(), others, cpu=900) == ["right"]


def test_critical_pods_are_never_victims_of_pods_without_higher_priority() -> None:
    others = [pod(uid="static", source="file"), burstable("system", "4", priority=CRITICAL)]
    found = choose_victims(critical(cpu="1"), others, {"cpu": 1000})
    assert found == NoVictims(missing={"cpu": 1000})


def test_lower_priority_may_be_preempted_by_higher() -> None:
    low, high = burstable("low", priority=CRITICAL), critical(cpu="1")
    higher = api_pod("higher", requests={"cpu": "1"}, priority=CRITICAL + 1)
    assert victims(higher, [low, high], cpu=1000) == ["low"]


def test_critical_pod_is_admitted_with_its_victims() -> None:
    # behaviours.md §14: "On resource shortage they preempt"
    verdict = predicates(candidate(critical(cpu="2"), burstable("b", "3")))
    assert verdict == Admitted(victims=(PodUID("uid-b"),), shortage="cpu")


def test_critical_pod_without_possible_victims_is_refused() -> None:
    verdict = predicates(candidate(critical(cpu="8")))
    assert verdict == Rejected(
        reason="UnexpectedAdmissionError",
        message=(
            "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of "
            "pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 4000), ]"
        ),
    )


def test_no_pod_is_preempted_for_one_that_could_not_run_anyway() -> None:
    # behaviours.md §14: "Other failure kinds (affinity, ports, taints) are not preempted for."
    wanted = api_pod("critical", requests={"cpu": "2"}, priority=CRITICAL, node_selector={"disk": "ssd"})
    verdict = predicates(candidate(wanted, burstable("b", "3")))
    assert isinstance(verdict, Rejected)
    assert verdict.reason == "NodeAffinity"


@pytest.mark.parametrize("priority", [None, CRITICAL - 1])
def test_an_ordinary_pod_preempts_no_other(priority: int | None) -> None:
    verdict = predicates(candidate(burstable("w", "2", priority=priority), burstable("b", "3", priority=0)))
    assert isinstance(verdict, Rejected)
    assert verdict.reason == "OutOfcpu"
