"""Which cgroup driver counts."""

from __future__ import annotations

import pytest

from glasslet.resources.driver import choose_driver
from glasslet.resources.node_cgroups import CgroupSetupFailed


@pytest.mark.parametrize("configured", ["cgroupfs", "systemd"])
def test_the_runtimes_word_counts(configured: str) -> None:
    # config-fields: "replaced by the runtime's answer (CRI RuntimeConfig)"
    assert choose_driver(configured=configured, of_runtime="cgroupfs", systemd_runs=True) == ("cgroupfs", "")


@pytest.mark.parametrize("configured", ["cgroupfs", "", "something"])
def test_what_is_not_systemd_is_cgroupfs(configured: str) -> None:
    # config-fields: "not validated: systemd means systemd, anything else cgroupfs"
    assert choose_driver(configured=configured, of_runtime=None, systemd_runs=True) == ("cgroupfs", "")


@pytest.mark.parametrize(
    ("of_runtime", "said"), [(None, r"cgroupDriver \(--cgroup-driver\) is"), ("systemd", "the container runtime uses")]
)
def test_systemds_driver_is_refused_with_one_clear_error(of_runtime: str | None, said: str) -> None:
    with pytest.raises(CgroupSetupFailed, match=f'{said} "systemd".* want "cgroupfs"'):
        choose_driver(configured="systemd", of_runtime=of_runtime, systemd_runs=True)


def test_a_machine_without_systemd_uses_the_other_driver_and_says_so() -> None:
    driver, remark = choose_driver(configured="systemd", of_runtime=None, systemd_runs=False)
    assert driver == "cgroupfs"
    assert "without systemd" in remark


def test_a_runtime_that_uses_systemd_is_believed_even_there() -> None:
    with pytest.raises(CgroupSetupFailed):
        choose_driver(configured="systemd", of_runtime="systemd", systemd_runs=False)
