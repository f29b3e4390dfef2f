"""The values of the cgroups of classes."""

from __future__ import annotations

from glasslet.host.cgroups.limits import CgroupLimits, settings
from glasslet.resources.pod_limits import PodDemand
from glasslet.resources.qos_limits import QoSRules, limits_of_classes, raised_to_use

MI, GI = 2**20, 2**30
GUARANTEED = PodDemand(uid="g", qos="Guaranteed", cpu_request=2000, memory_request=GI)
BURSTABLE = PodDemand(uid="b", qos="Burstable", cpu_request=500, memory_request=512 * MI)
BEST_EFFORT = PodDemand(uid="e", qos="BestEffort")
ALL = (GUARANTEED, BURSTABLE, BEST_EFFORT)


def test_burstable_has_the_shares_of_its_pods_and_best_effort_the_least() -> None:
    # behaviours.md §16: "QoS level: Burstable shares = sum of its pods' requests (at least 2), BestEffort 2"
    found = limits_of_classes((*ALL, BURSTABLE), QoSRules())
    assert found["Burstable"].cpu_shares == 1024
    assert found["BestEffort"].cpu_shares == 2
    assert found["Guaranteed"] == CgroupLimits()


def test_burstable_without_pods_has_the_least_shares() -> None:
    assert limits_of_classes((), QoSRules())["Burstable"].cpu_shares == 2


def test_classes_may_use_any_number_of_huge_pages() -> None:
    # behaviours.md §16: "hugetlb unlimited (2^62)"
    found = limits_of_classes(ALL, QoSRules(page_sizes=(2 * MI,)))
    for qos in ("Burstable", "BestEffort"):
        written = {s.file: s.value for s in settings(found[qos], version=1, page_sizes=(2 * MI,))}
        assert written["hugetlb.2MB.limit_in_bytes"] == str(2**62)


def test_reserved_memory_is_kept_from_the_classes_below() -> None:
    # config-fields: "qosReserved: Share of a resource kept for higher QoS classes"
    found = limits_of_classes(ALL, QoSRules(memory_reserve=50, allocatable_memory=4 * GI))
    assert found["Burstable"].memory == 4 * GI - GI // 2
    assert found["BestEffort"].memory == 4 * GI - GI // 2 - 256 * MI


def test_nothing_is_reserved_where_the_nodes_memory_is_unknown() -> None:
    found = limits_of_classes(ALL, QoSRules(memory_reserve=50))
    assert found["Burstable"].memory is None


def test_more_requested_than_there_is_leaves_the_least() -> None:
    found = limits_of_classes(ALL, QoSRules(memory_reserve=100, allocatable_memory=GI))
    assert found["BestEffort"].memory == 1


def test_a_limit_below_the_present_use_becomes_it() -> None:
    wanted = {
        "Burstable": CgroupLimits(memory=100),
        "BestEffort": CgroupLimits(memory=100),
        "Guaranteed": CgroupLimits(),
    }
    found = raised_to_use(wanted, {"Burstable": 150, "BestEffort": 50})
    assert (found["Burstable"].memory, found["BestEffort"].memory) == (150, 100)


def test_requested_memory_is_protected_on_the_way_down() -> None:
    found = limits_of_classes(ALL, QoSRules(memory_qos=True))
    assert found["Guaranteed"].memory_min == GI + 512 * MI
    assert found["Burstable"].memory_min == 512 * MI
