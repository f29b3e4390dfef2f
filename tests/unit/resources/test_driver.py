"""Which cgroup driver counts."""

from __future__ import annotations

import pytest

from glasslet.resources.driver import choose_driver, driver_mismatch
from glasslet.resources.node_cgroups import CgroupSetupFailed


@pytest.mark.parametrize("configured", ["cgroupfs", "systemd"])
def test_the_runtimes_word_counts(configured: str) -> None:
    # config-fields: "replaced by the runtime's answer (CRI RuntimeConfig)"
    assert choose_driver(configured=configured, of_runtime="cgroupfs", systemd_runs=True) == ("cgroupfs", "")


@pytest.mark.parametrize("configured", ["cgroupfs", "", "something"])
def test_what_is_not_systemd_is_cgroupfs(configured: str) -> None:
    # config-fields: "not validated: systemd means systemd, anything else cgroupfs"
    assert choose_driver(configured=configured, of_runtime=None, systemd_runs=True) == ("cgroupfs", "")


@pytest.mark.parametrize(("configured", "of_runtime"), [("systemd", None), ("cgroupfs", "systemd")])
def test_systemds_driver_is_used_where_systemd_runs(configured: str, of_runtime: str | None) -> None:
    assert choose_driver(configured=configured, of_runtime=of_runtime, systemd_runs=True) == ("systemd", "")


@pytest.mark.parametrize(
    ("driver", "runtime_sets"), [("systemd", "systemd"), ("cgroupfs", "cgroupfs"), ("systemd", None)]
)
def test_drivers_that_agree_are_not_remarked_on(driver: str, runtime_sets: str | None) -> None:
    assert driver_mismatch(driver, runtime_sets=runtime_sets) == ""


def test_drivers_that_differ_are_named_both() -> None:
    assert driver_mismatch("cgroupfs", runtime_sets="systemd").startswith(
        'the cgroup driver is "cgroupfs", the container runtime\'s "systemd": '
    )


def test_a_machine_without_systemd_uses_the_other_driver_and_says_so() -> None:
    driver, remark = choose_driver(configured="systemd", of_runtime=None, systemd_runs=False)
    assert driver == "cgroupfs"
    assert "without systemd" in remark


def test_a_runtime_that_uses_systemd_where_it_does_not_run_stops_the_start() -> None:
    # Upstream: "systemd not running on this host, cannot use systemd cgroups manager"
    with pytest.raises(CgroupSetupFailed, match="systemd not running on this host"):
        choose_driver(configured="cgroupfs", of_runtime="systemd", systemd_runs=False)
