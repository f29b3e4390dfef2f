"""Names and properties of slices."""

from __future__ import annotations

import pytest

from glasslet.host.cgroups.limits import CgroupLimits
from glasslet.host.cgroups.slice_properties import (
    INFINITY,
    cpu_mask,
    creation_properties,
    limit_properties,
    parent_of,
    quota_per_second,
    unit_of,
)

BURSTABLE = "/kubepods.slice/kubepods-burstable.slice"


@pytest.mark.parametrize(
    ("path", "unit", "parent"),
    [
        ("/kubepods.slice", "kubepods.slice", "-.slice"),
        (BURSTABLE, "kubepods-burstable.slice", "kubepods.slice"),
        (f"{BURSTABLE}/kubepods-burstable-pod1.slice", "kubepods-burstable-pod1.slice", "kubepods-burstable.slice"),
        ("/", "-.slice", "-.slice"),
    ],
)
def test_a_cgroup_is_a_unit_in_the_unit_around_it(path: str, unit: str, parent: str) -> None:
    assert (unit_of(path), parent_of(path)) == (unit, parent)


@pytest.mark.parametrize(("version", "io"), [(2, "IOAccounting"), (1, "BlockIOAccounting")])
def test_a_slice_is_made_with_accounting_and_without_limits(version: int, io: str) -> None:
    # The order of upstream, whose libcontainer sends these.
    assert [tuple(one) for one in creation_properties(BURSTABLE, version=version)] == [
        ("Description", "s", "libcontainer container kubepods-burstable.slice"),
        ("Wants", "as", ["kubepods.slice"]),
        ("MemoryAccounting", "b", True),
        ("CPUAccounting", "b", True),
        (io, "b", True),
        ("TasksAccounting", "b", True),
        ("DefaultDependencies", "b", False),
    ]


LIMITS = CgroupLimits(
    cpu_shares=102, cpu_quota=10_000, cpu_period=100_000, memory=67_108_864, pids=777, cpus="0-1", memory_min=4096
)


def test_limits_of_version_2_have_the_order_and_types_of_upstream() -> None:
    assert [tuple(one) for one in limit_properties(LIMITS, version=2, systemd=252)] == [
        ("MemoryMax", "t", 67_108_864),
        ("CPUWeight", "t", 4),
        ("CPUQuotaPeriodUSec", "t", 100_000),
        ("CPUQuotaPerSecUSec", "t", 100_000),
        ("TasksMax", "t", 777),
        ("AllowedCPUs", "ay", b"\x03"),
        ("MemoryMin", "t", 4096),
    ]


def test_version_1_has_names_of_its_own_and_protects_no_memory() -> None:
    found = [tuple(one)[::2] for one in limit_properties(LIMITS, version=1, systemd=252)]
    assert found[:2] == [("MemoryLimit", 67_108_864), ("CPUShares", 102)]
    assert "MemoryMin" not in [name for name, _ in found]


@pytest.mark.parametrize(("systemd", "missing"), [(241, {"CPUQuotaPeriodUSec", "AllowedCPUs"}), (243, {"AllowedCPUs"})])
def test_an_older_systemd_is_not_asked_for_what_it_does_not_know(systemd: int, missing: set[str]) -> None:
    everything = {one.name for one in limit_properties(LIMITS, version=2, systemd=252)}
    assert everything - {one.name for one in limit_properties(LIMITS, version=2, systemd=systemd)} == missing


def test_a_lifted_limit_is_systemds_infinity() -> None:
    lifted = CgroupLimits(memory=-1, cpu_quota=-1, cpu_period=100_000, pids=-1)
    found = {one.name: one.value for one in limit_properties(lifted, version=2, systemd=252)}
    assert found == {
        "MemoryMax": INFINITY,
        "CPUQuotaPeriodUSec": 100_000,
        "CPUQuotaPerSecUSec": INFINITY,
        "TasksMax": INFINITY,
    }


def test_what_is_not_limited_is_not_sent() -> None:
    assert limit_properties(CgroupLimits(huge_pages={2 << 20: 0}), version=2, systemd=252) == ()


@pytest.mark.parametrize(
    ("quota", "period", "per_second"),
    [
        (10_000, 100_000, 100_000),
        (12_345, 100_000, 130_000),
        (1_000, 100_000, 10_000),
        (25_000, 0, 250_000),
        (-1, 100_000, INFINITY),
    ],
)
def test_a_quota_is_rounded_up_to_a_whole_per_cent(quota: int, period: int, per_second: int) -> None:
    # Upstream: "quota*1000000/period (period 0 = 100000), rounded up to a multiple of 10000"
    assert quota_per_second(quota, period) == per_second


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [("0-8", b"\xff\x01"), ("0", b"\x01"), ("1,3", b"\x0a"), ("8-9", b"\x00\x03"), ("0-3,16", b"\x0f\0\x01")],
)
def test_cpus_are_bits_the_lowest_first(cpus: str, mask: bytes) -> None:
    assert cpu_mask(cpus) == mask


@pytest.mark.parametrize("cpus", ["", "a", "3-1", "-"])
def test_what_is_no_list_of_cpus_is_an_error(cpus: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal|no CPU"):
        cpu_mask(cpus)
