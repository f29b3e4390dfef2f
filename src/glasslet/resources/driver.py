"""The choice of the cgroup driver: the runtime's if it reports one, else the configured one. Pure."""

from __future__ import annotations

from glasslet.resources.node_cgroups import CgroupSetupFailed

SYSTEMD, CGROUPFS = "systemd", "cgroupfs"


def choose_driver(*, configured: str, of_runtime: str | None, systemd_runs: bool) -> tuple[str, str]:
    """Returns the driver and a remark for the operator ("": none). `of_runtime` None: it reports none. Raises
    CgroupSetupFailed for a runtime that wants systemd where that does not run."""
    driver = of_runtime or (SYSTEMD if configured == SYSTEMD else CGROUPFS)
    if driver == CGROUPFS or systemd_runs:
        return driver, ""
    if of_runtime is None:
        return CGROUPFS, "cgroupDriver systemd without systemd on this machine: cgroupfs is used"
    raise CgroupSetupFailed(
        f'the container runtime uses the cgroup driver "{SYSTEMD}", but systemd not running on this host, cannot use '
        f'systemd cgroups manager: run systemd as process 1, or set "{CGROUPFS}" in the container runtime'
    )


def driver_mismatch(driver: str, *, runtime_sets: str | None) -> str:
    """A remark on a runtime whose settings name another driver; "" while both agree or it does not say."""
    if runtime_sets is None or runtime_sets == driver:
        return ""
    return (
        f'the cgroup driver is "{driver}", the container runtime\'s "{runtime_sets}": no pod can start, or containers '
        "escape their pod's limits; set the same in both (cgroupDriver; containerd: SystemdCgroup)"
    )
