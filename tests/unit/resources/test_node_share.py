"""How much all pods may use, and what is reserved for others."""

from __future__ import annotations

from glasslet.api.quantity import Quantity
from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.resources.node_rules import limits_of_node, limits_of_reservation
from glasslet.resources.node_share import for_pods, over_reserved, reservations

MI, GI = 2**20, 2**30
CAPACITY = {
    "cpu": Quantity(4),
    "memory": Quantity.parse("8Gi"),
    "pid": Quantity(32_768),
    "hugepages-2Mi": Quantity.parse("64Mi"),
}


def test_pods_have_the_capacity_less_both_reservations() -> None:
    # behaviours.md §16: "kubepods: shares, memory limit, pids and hugetlb from capacity - kubeReserved - systemReserved
    # when `pods` is enforced (eviction threshold not subtracted), else from capacity"
    reserved = reservations({"cpu": "500m", "memory": "1Gi", "pid": "768"}, {"cpu": "500m", "memory": "1Gi"})
    assert limits_of_node(for_pods(CAPACITY, reserved)) == CgroupLimits(
        cpu_shares=3072, memory=6 * GI, pids=32_000, huge_pages={2 * MI: 64 * MI}
    )
    assert limits_of_node(for_pods(CAPACITY, ())).memory == 8 * GI


def test_nothing_is_below_zero() -> None:
    assert for_pods(CAPACITY, ({"memory": Quantity.parse("9Gi")},))["memory"] == Quantity(0)


def test_reserved_cpus_replace_both_reservations_of_cpu() -> None:
    # behaviours.md §17: "reservedSystemCPUs overrides CPU reservations with its count."
    system, kube = reservations({"cpu": "500m"}, {"cpu": "500m", "memory": "1Gi"}, reserved_cpus=2)
    assert system == {"cpu": Quantity(2)}
    assert kube == {"memory": Quantity.parse("1Gi")}


def test_more_reserved_than_there_is_stops_the_start() -> None:
    # behaviours.md §17: "Reservation above capacity: start failure."
    problem = over_reserved(CAPACITY, ({"memory": Quantity.parse("7Gi")}, {"memory": Quantity.parse("2Gi")}))
    assert problem == (
        'invalid Node Allocatable configuration. Resource "memory" has a reservation of 9Gi but capacity of 8Gi. '
        "Expected capacity >= reservation."
    )
    assert over_reserved(CAPACITY, ({"memory": Quantity.parse("8Gi")},)) == ""


def test_a_reservation_limits_memory_processes_and_cpu() -> None:
    # behaviours.md §16: "system-reserved/kube-reserved: cgroup must exist; memory, pids and CPU are limited; the
    # -compressible variants only CPU."
    amounts = {"cpu": Quantity(1), "memory": Quantity(GI), "pid": Quantity(100), "ephemeral-storage": Quantity(GI)}
    full = limits_of_reservation(amounts, compressible_only=False)
    assert full == CgroupLimits(cpu_shares=1024, memory=GI, pids=100)
    assert limits_of_reservation(amounts, compressible_only=True) == CgroupLimits(cpu_shares=1024)


def test_a_reservations_memory_is_protected_where_that_is_on() -> None:
    found = limits_of_reservation({"memory": Quantity(GI)}, compressible_only=False, memory_qos=True)
    assert found.memory_min == GI
