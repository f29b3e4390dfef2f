"""Thresholds, from the configuration."""

from __future__ import annotations

from glasslet.config.kubelet_configuration import KubeletConfiguration
from glasslet.eviction.signals import Signal
from glasslet.eviction.thresholds import Threshold, configured_thresholds, with_container_disk


def thresholds(**fields: object) -> tuple[Threshold, ...]:
    return configured_thresholds(KubeletConfiguration(enforce_node_allocatable=[], **fields))  # type: ignore[arg-type]


def test_soft_thresholds_have_their_grace_and_share_the_minimum_reclaim() -> None:
    found = thresholds(
        eviction_hard={"nodefs.available": "10%"},
        eviction_soft={"nodefs.available": "15%"},
        eviction_soft_grace_period={"nodefs.available": "1m30s"},
        eviction_minimum_reclaim={"nodefs.available": "1Gi"},
    )
    assert found == (
        Threshold(signal=Signal.NODEFS, amount="10%", minimum_reclaim="1Gi"),
        Threshold(signal=Signal.NODEFS, amount="15%", minimum_reclaim="1Gi", grace=90.0),
    )
    assert [one.hard for one in found] == [True, False]


def test_thresholds_of_0_and_100_per_cent_do_not_exist() -> None:
    # behaviours.md §15: "Thresholds of 0 % or 100 % are ignored."
    assert thresholds(eviction_hard={"memory.available": "0%", "pid.available": "100%"}) == ()


def test_hard_memory_threshold_holds_for_the_cgroup_of_all_pods_as_well() -> None:
    # behaviours.md §15: "memory allocatable: a hidden threshold on the kubepods cgroup copies the hard memory threshold
    # when `pods` is enforced."
    configuration = KubeletConfiguration(
        enforce_node_allocatable=["pods"],
        eviction_hard={"memory.available": "100Mi"},
        eviction_soft={"memory.available": "200Mi"},
        eviction_soft_grace_period={"memory.available": "1m"},
    )
    copied = [one for one in configured_thresholds(configuration) if one.signal is Signal.ALLOCATABLE_MEMORY]
    assert copied == [Threshold(signal=Signal.ALLOCATABLE_MEMORY, amount="100Mi")]
    assert len(configured_thresholds(configuration, ignore_allocatable=True)) == 2


def test_writable_layers_have_the_thresholds_of_the_disk_that_they_are_on() -> None:
    # behaviours.md §15: "containerfs thresholds are derived (from nodefs or imagefs), not configurable."
    given = thresholds(
        eviction_hard={"nodefs.available": "10%", "imagefs.available": "15%", "containerfs.available": "50%"}
    )
    for layers_apart, amount in ((False, "10%"), (True, "15%")):
        found = with_container_disk(given, layers_apart=layers_apart)
        assert [one.amount for one in found if one.signal is Signal.CONTAINERFS] == [amount]


def test_percentages_refer_to_the_capacity_in_single_precision() -> None:
    # behaviours.md §15: "Percentages refer to capacity."
    tenth = Threshold(signal=Signal.NODEFS, amount="10%", minimum_reclaim="5%")
    assert tenth.line(100 * 1024**3).value() == 10737418400
    assert str(Threshold(signal=Signal.PIDS, amount="50%").line(131072)) == "64Ki"
    assert tenth.wanted(1000).value() == 150
